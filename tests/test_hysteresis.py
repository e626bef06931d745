"""Chains whose auxiliary labels depend on their start warn; others do not."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.datasets import load_crabs, load_iris, load_wine
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import AuxiliaryVariable, Exchange, Posterior, Priors, auxiliary

SHORT = {"n_draws": 750, "n_burn": 750, "n_sweeps": 200, "n_chains": 2}


def hysteresis_warnings(engine, family, labels, priors=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        engine.infer(np.random.default_rng(0), family, labels, priors)
    return [str(w.message) for w in caught if "depend on where" in str(w.message)]


def uniform_field(n_points, n_classes, share):
    n_first = round(share * n_points)
    labels = np.append(np.zeros(n_first, int), 1 + np.arange(n_points - n_first) % (n_classes - 1))
    return DistanceFamily(1.0 - np.eye(n_points), "gaussian", n_classes), labels


@pytest.mark.parametrize(
    "engine",
    [Exchange(**SHORT), Exchange(**SHORT, start="data")],
    ids=["random", "data"],
)
def test_a_first_order_transition_warns(engine):
    # The field orders at beta = 2.46, where labels are drawn in the phase that they start in.
    (message,) = hysteresis_warnings(engine, *uniform_field(100, 10, 0.82))
    assert "Use PathSampling" in message


def test_the_auxiliary_variable_method_warns_too(monkeypatch):
    # Its chains mix too slowly for a short run: draws from about where they end up stand in.
    betas = np.random.default_rng(1).normal(2.55, 0.06, size=(2, 1_500))
    posterior = Posterior.from_draws(betas, np.ones_like(betas), "sigma")
    monkeypatch.setattr(auxiliary, "run_chains", lambda *args, **kwargs: posterior)
    engine = AuxiliaryVariable(**SHORT)
    assert hysteresis_warnings(engine, *uniform_field(100, 10, 0.82))


@pytest.mark.parametrize("start", ["random", "data"])
def test_labels_that_freeze_where_neighbours_repel_warn(start):
    # Labels of a chessboard: a quench from random labels leaves walls between domains.
    points = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    family = NeighborFamily.from_distances(distance_matrix(points), 2)
    labels = points.sum(axis=1).astype(int) % 2
    engine = Exchange(**(SHORT | {"n_sweeps": 50}), start=start)
    frozen = Priors(stats.norm(-40.0, 10.0), stats.randint(4, 5))
    assert hysteresis_warnings(engine, family, labels, frozen)
    weak = Priors(stats.norm(-1.0, 0.2), stats.randint(4, 5))
    assert not hysteresis_warnings(engine, family, labels, weak)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_two_classes_have_no_such_transition(share):
    assert not hysteresis_warnings(Exchange(**SHORT), *uniform_field(100, 2, share))


@pytest.mark.parametrize("kernel", ["gaussian", "radius"])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_crabs])
def test_ordinary_data_do_not_warn(load, kernel):
    X, y = load(return_X_y=True)
    chosen = np.random.default_rng(1).permutation(len(y))[:75]
    labels = np.unique(y, return_inverse=True)[1][chosen]
    features = ((X - X.mean(axis=0)) / X.std(axis=0))[chosen]
    family = DistanceFamily(distance_matrix(features), kernel, labels.max() + 1)
    assert not hysteresis_warnings(Exchange(**SHORT), family, labels)
