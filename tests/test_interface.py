"""What a user of scikit-learn expects of names, defaults and forms."""

import inspect
import re
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import nearfield.dask
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    plotting,
)
from nearfield.datasets import load_iris
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference import Exchange, PathSampling, posterior_predictive_check, prior_predictive
from nearfield.log_partition import log_partition_curve
from nearfield.prediction import draw_joint_labels
from nearfield.sampling import draw_labels, draw_labels_perfect

X, Y = (part[::3] for part in load_iris(return_X_y=True))
FAST = {"inference": "pseudolikelihood"}
FITTED = {
    "d-nn": DistanceNeighborsClassifier(**FAST),
    "graph": DistanceNeighborsClassifier(n_neighbors=5, **FAST),
    "pk-nn": ProbabilisticKNeighborsClassifier(**FAST),
    "k-nn": KNeighborsClassifierCV(),
    "average": NearfieldClassifier(("gaussian",), ("euclidean",), n_folds=2, random_state=0),
}
CLASSES = [
    *dict.fromkeys(type(model) for model in FITTED.values()),
    *(getattr(nearfield.dask, name) for name in nearfield.dask.__all__),
]
DISPLAYS = [getattr(plotting, name) for name in plotting.__all__ if name.endswith("Display")]


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_jobs_seed_and_verbosity_come_last_and_no_seed_is_fixed(estimator):
    parameters = list(inspect.signature(estimator).parameters)
    last = [name for name in ("n_jobs", "random_state", "verbose") if name in parameters]
    assert parameters[-len(last) :] == last
    assert inspect.signature(estimator).parameters["random_state"].default is None
    assert not {"external_field", "normalize"} & set(parameters)


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_every_parameter_is_documented_in_its_order(estimator):
    text = _doc(estimator).split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = re.findall(r"^(\w.*?)(?: :|$)", text.replace("\\\n", ""), re.MULTILINE)
    documented = [name.strip() for head in heads for name in head.split(",")]
    assert documented == list(inspect.signature(estimator).parameters)


@pytest.mark.parametrize("name", FITTED)
def test_fitted_attributes_are_documented_or_private(name):
    model = FITTED[name].fit(X, Y)
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    documented = _doc(type(model)).split("Attributes\n")[1]
    assert {key for key in fitted if not re.search(rf"\b{key}\b", documented)} == set()
    assert {key for key in vars(model) if not key.startswith("_")} - fitted <= set(
        model.get_params()
    )


def test_low_level_functions_take_a_seed_for_a_generator():
    family = DistanceFamily(distance_matrix(X[:12]), "gaussian", 2)
    field, labels, rng = family.at(1.0), np.arange(12) % 2, np.random.default_rng
    posterior = PathSampling().infer(0, family, labels)
    short = Exchange(n_draws=4, n_burn=4, n_chains=1, n_sweeps=2)
    calls = [
        lambda seed: draw_labels(seed, field, 1.0),
        lambda seed: draw_labels_perfect(seed, field, 1.0),
        lambda seed: log_partition_curve(seed, field, [0.5])[0],
        lambda seed: prior_predictive(seed, family, n_draws=3).labels,
        lambda seed: (
            posterior_predictive_check(seed, family, labels, posterior, n_draws=3).replicated
        ),
        lambda seed: posterior.sample(5, seed)[0],
        lambda seed: posterior.sample_nodes(5, seed)[0],
        lambda seed: draw_joint_labels(seed, posterior, family, labels[:8], n_draws=3),
        lambda seed: short.infer(seed, family, labels).beta,
    ]
    for call in calls:
        with warnings.catch_warnings(action="ignore"):  # so few draws do not converge
            expected, found = (np.asarray(call(seed)) for seed in (rng(5), 5))
        np.testing.assert_array_equal(found, expected)


def test_what_is_no_seed_is_refused():
    field = DistanceFamily(distance_matrix(X[:12]), "gaussian", 2).at(1.0)
    for seed, error in (("seed", TypeError), (-1, ValueError)):
        with pytest.raises(error, match=r"Expected rng as numpy.random.default_rng takes it"):
            draw_labels(seed, field, 1.0)


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_displays_are_made_of_estimators_and_pass_keywords_on(display):
    signature = inspect.signature(display.from_estimator)
    assert "ax" in signature.parameters
    for method in (display.from_estimator, display.plot):
        kinds = [p.kind for p in inspect.signature(method).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD in kinds


def test_predictions_suffice_for_reliability_and_maps():
    model = FITTED["d-nn"].fit(X, Y)
    probabilities = model.predict_proba(X)
    names = np.array(["a", "b", "c"])
    of_model = plotting.ReliabilityDisplay.from_estimator(model, X, Y, color="black")
    given = plotting.ReliabilityDisplay.from_predictions(
        names[Y], probabilities, classes=names, marker="s"
    )
    np.testing.assert_array_equal(given.bins.n_true, of_model.bins.n_true)
    assert of_model.ax_.lines[-1].get_color() == "black"
    assert given.ax_.lines[1].get_marker() == "s"
    grid = np.full((2, 3, 2), 0.5)
    shown = plotting.ClassMapDisplay.from_predictions([0, 1, 2], [0, 1], grid, alpha=0.5)
    assert shown.ax_.collections[0].get_alpha() == 0.5
    with pytest.raises(ValueError, match=r"Expected y_prob of shape \(n_y, n_x, n_classes\)"):
        plotting.ClassMapDisplay.from_predictions([0, 1], [0, 1], grid)
    plt.close("all")


def test_keywords_reach_the_artists():
    model = FITTED["d-nn"].fit(X, Y)
    bars = plotting.InfluenceDisplay.from_estimator(model, X[:1], linewidth=3.0)
    assert bars.ax_.patches[0].get_linewidth() == 3.0
    contours = plotting.PosteriorDisplay.from_estimator(model, linewidths=4.0)
    widths = [artist.get_linewidths() for artist in contours.ax_.collections]
    assert any(4.0 in width for width in widths)
    curve = plotting.LeaveOneOutDisplay.from_estimator(FITTED["k-nn"].fit(X, Y), linestyle=":")
    assert curve.ax_.lines[0].get_linestyle() == ":"
    plt.close("all")


def _doc(estimator):
    return inspect.getdoc(estimator)
