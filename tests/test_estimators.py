"""The classifiers: what they promise of their data, arguments, priors and predictions."""

import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_iris, stratified_split
from nearfield.distances import LEARNED_METRICS, distance_matrix
from nearfield.estimators import _metric, _settings
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import Exchange, Posterior, Priors, Pseudolikelihood
from nearfield.inference.intercepts import fit_external_field
from nearfield.prediction import Predictor

FAST = "pseudolikelihood"
SAME = 2e-4  # twice what averages over the posterior may be off by
MODELS = {
    "gaussian": DistanceNeighborsClassifier("gaussian", inference=FAST),
    "radius": DistanceNeighborsClassifier("radius", inference=FAST),
    "exponential": DistanceNeighborsClassifier("exponential", inference=FAST),
    "symmetric": ProbabilisticKNeighborsClassifier("symmetric", inference=FAST),
    "directed": ProbabilisticKNeighborsClassifier("directed"),
    "cv": KNeighborsClassifierCV(),
}


@dataclass(frozen=True)
class FixedPosterior:
    """An engine that answers at once, and notes what it was asked."""

    beta: float = 3.0
    sigma: float = 0.7
    asked: tuple = ()

    def infer(self, rng, family, labels, priors, *, n_jobs, verbose):
        self.asked[:] = [rng, family, labels, priors, n_jobs, verbose]
        return Posterior.from_nodes([self.beta], [self.sigma], [1.0], family.scale_name)


def gaussian(**arguments):
    return DistanceNeighborsClassifier(**{"inference": FAST} | arguments)


def fixed(**arguments):
    return DistanceNeighborsClassifier(inference=FixedPosterior(asked=[]), **arguments)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    train, test = stratified_split(y, 0.25, random_state=0)
    return X[train], y[train], X[test], y[test]


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def test_probabilities_are_those_of_the_model_on_standardized_points(iris):
    X, y, new, _ = iris
    model = fixed().fit(X, y)
    scaler = StandardScaler().fit(X)
    points, new_points = scaler.transform(X), scaler.transform(new)
    family = DistanceFamily(distance_matrix(points), "gaussian", 3)
    posterior = Posterior.from_nodes([3.0], [0.7], [1.0], "sigma")
    labels = np.unique(y, return_inverse=True)[1]
    expected = Predictor(posterior, family, labels, "joint").probabilities(
        distance_matrix(new_points, points)
    )
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)


def test_posterior_is_that_of_the_engine_on_the_family(iris):
    X, y, _, _ = iris
    model = gaussian(kernel="exponential", standardize=False).fit(X, y)
    labels = np.unique(y, return_inverse=True)[1]
    family = DistanceFamily(distance_matrix(X), "exponential", 3)
    priors = Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))
    expected = Pseudolikelihood().infer(None, family, labels, priors)
    # The estimator measures by its own kernel, whose last digits may differ.
    np.testing.assert_allclose(model.posterior_.beta, expected.beta, rtol=1e-12)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence, rel=1e-12)


def test_models_classify_iris_well(model, iris):
    X, y, new, new_y = iris
    assert model.fit(X, y).score(new, new_y) > 0.85
    probabilities = 0.99 * model.predict_proba(new) + 0.01 / 3
    assert log_loss(new_y, probabilities) < 0.6


@pytest.mark.parametrize("kind", ["text", "truth", "whole", "floats"])
def test_classes_come_back_as_they_were_given(model, kind, rng):
    X = np.concatenate([rng.normal(size=(12, 2)), rng.normal(size=(12, 2)) + 5.0])
    classes = {
        "text": np.array(["red", "blue"]),
        "truth": np.array([True, False]),
        "whole": np.array([7, -3]),
        "floats": np.array([2.0, 1.0]),
    }[kind]
    y = np.repeat(classes, 12)
    model.fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.sort(classes))
    assert model.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(model.predict(X), y)


def test_form_of_the_array_does_not_matter(model, iris):
    X, y, new, _ = iris
    X, new = X.astype(np.float32), new.astype(np.float32)
    expected = model.fit(X.astype(float), y).predict_proba(new.astype(float))
    frozen = X.copy()
    frozen.flags.writeable = False
    for form in (X, np.asfortranarray(X), X[::-1].copy()[::-1], frozen, X.tolist()):
        np.testing.assert_array_equal(model.fit(form, y).predict_proba(new), expected)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "chebyshev", "within"])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_sparse_features_give_what_dense_ones_give_as_they_are(make, metric, rng):
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.6)
    X[:, 0] += 1.0
    y = np.arange(30) % 2
    dense = gaussian(metric=metric, standardize=False).fit(X, y)
    sparse = gaussian(metric=metric).fit(make(X), y)
    for new in (X[:7], make(X[:7])):
        np.testing.assert_allclose(sparse.predict_proba(new), dense.predict_proba(X[:7]), atol=SAME)
        np.testing.assert_allclose(dense.predict_proba(new), dense.predict_proba(X[:7]))


def test_frames_bring_their_names(model, iris):
    X, y, new, _ = iris
    names = ["a", "b", "c", "d"]
    model.fit(pd.DataFrame(X, columns=names), pd.Series(y, dtype="category"))
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == 4
    frame = pd.DataFrame(new, columns=names)
    np.testing.assert_array_equal(model.predict(frame), clone(model).fit(X, y).predict(new))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])


def test_copies_predict_the_same(model, iris):
    X, y, new, _ = iris
    expected = model.fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), expected)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(new)
    np.testing.assert_array_equal(again.fit(X, y).predict_proba(new), expected)


def test_priors_survive_pickling(iris):
    X, y, _, _ = iris
    own = stats.rv_histogram((np.ones(4), np.linspace(0.0, 2.0, 5))).freeze()
    model = gaussian(prior_beta=stats.gamma(2.0, scale=3.0), prior_sigma=own).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.prior_beta.mean() == model.prior_beta.mean() == again.priors_.beta.mean()
    assert again.prior_sigma.mean() == model.prior_sigma.mean() == again.priors_.scale.mean()


def test_grid_search_chooses_kernel_and_metric(iris):
    X, y, new, new_y = iris
    grid = {"kernel": ["gaussian", "radius"], "metric": ["euclidean", "manhattan", "within"]}
    search = GridSearchCV(gaussian(), grid, cv=2, scoring="neg_log_loss", error_score="raise")
    search.fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.score(new, new_y) > -0.6


def test_models_end_pipelines(model, iris):
    X, y, new, new_y = iris
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), model).fit(X, y)
    assert pipeline.score(new, new_y) > 0.8
    np.testing.assert_array_equal(
        pipeline.predict_proba(new), clone(model).fit(np.sqrt(X), y).predict_proba(np.sqrt(new))
    )


def test_cross_validation_predicts_every_point(model, iris):
    X, y, _, _ = iris
    probabilities = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert probabilities.shape == (len(y), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_cross_validation_cuts_precomputed_distances(iris):
    X, y, _, _ = iris
    points = StandardScaler().fit_transform(X)
    by_features = gaussian(standardize=False)
    by_distances = gaussian(metric="precomputed")
    np.testing.assert_allclose(
        cross_val_predict(by_distances, distance_matrix(points), y, cv=3, method="predict_proba"),
        cross_val_predict(by_features, points, y, cv=3, method="predict_proba"),
        atol=SAME,
    )


METRIC_NAMES = set(get_args(_metric.MetricName))


def test_type_checkers_know_every_metric_by_name():
    assert {*LEARNED_METRICS, *_metric.PAIRWISE_BOOLEAN_FUNCTIONS} < METRIC_NAMES


@pytest.mark.parametrize("metric", sorted(METRIC_NAMES - {"precomputed"}))
@pytest.mark.parametrize("name", ["gaussian", "cv"])
def test_every_named_metric_measures_training_and_new_points(name, metric, rng):
    X = rng.uniform(0.1, 1.0, size=(24, 2))
    if metric in (*_metric.PAIRWISE_BOOLEAN_FUNCTIONS, "sokalmichener"):
        X = X > 0.5
    params = {"p": 3} if metric in ("p", "minkowski") else None
    model = clone(MODELS[name]).set_params(metric=metric, metric_params=params)
    model.fit(X, np.arange(24) % 2)
    np.testing.assert_allclose(
        model.metric_space_.distances_to(X),
        model.metric_space_.training_distances(X),
        atol=1e-7,
    )
    np.testing.assert_allclose(model.predict_proba(X[:3]).sum(axis=1), 1.0)


def test_metrics_with_a_scale_keep_that_of_the_training_points(rng):
    X, y = rng.normal(size=(20, 3)) * [1.0, 10.0, 100.0], np.arange(20) % 2
    variance, precision = X.var(axis=0, ddof=1), np.linalg.inv(np.cov(X.T))
    for metric, params in (("seuclidean", {"V": variance}), ("mahalanobis", {"VI": precision})):
        by_itself = gaussian(metric=metric, standardize=False).fit(X, y)
        given = gaussian(metric=metric, metric_params=params, standardize=False).fit(X, y)
        np.testing.assert_allclose(
            by_itself.predict_proba(X[:4]), given.predict_proba(X[:4]), atol=SAME
        )


def test_standardized_features_have_no_units(model, rng):
    X, y, new = rng.normal(size=(30, 4)), np.arange(30) % 2, rng.normal(size=(8, 4))
    expected = model.fit(X, y).predict_proba(new)
    units, origin = np.array([1e-200, 1e200, 3.0, 0.01]), np.array([0.0, 1e200, -7.0, 100.0])
    other = model.fit(X * units + origin, y).predict_proba(new * units + origin)
    np.testing.assert_allclose(other, expected, atol=SAME)


def test_constant_feature_carries_no_distance(iris):
    X, y, new, _ = iris
    expected = gaussian().fit(X, y).predict_proba(new)
    for value in (0.0, 0.1, 1e9):
        wider = np.column_stack([X, np.full(len(X), value)])
        new_wider = np.column_stack([new, np.arange(len(new))])
        model = gaussian().fit(wider, y)
        np.testing.assert_allclose(model.predict_proba(new_wider), expected, atol=SAME)


def test_missing_values_are_passed_over_by_a_metric_that_allows_them(iris, rng):
    X, y, new, new_y = iris
    X, new = X.copy(), new.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    new[::5, 1] = np.nan
    model = gaussian(metric="nan_euclidean").fit(X, y)
    assert model.score(new, new_y) > 0.85
    assert model.__sklearn_tags__().input_tags.allow_nan


def test_more_features_than_points_are_fine(model, rng):
    X, y = rng.normal(size=(16, 200)), np.arange(16) % 2
    X[y == 1] += 1.0
    assert model.fit(X, y).score(X + 0.1, y) > 0.9


def test_points_that_are_all_the_same_say_nothing(model):
    probabilities = model.fit(np.ones((12, 2)), np.arange(12) % 2).predict_proba([[1.0, 1.0]])
    np.testing.assert_allclose(probabilities, 0.5, atol=0.02)


@pytest.mark.parametrize("name", ["gaussian", "exponential", "symmetric", "directed"])
def test_fitted_external_field_favours_large_classes(name, rng):
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [32, 8])  # the neighbours know nothing
    plain = clone(MODELS[name]).fit(X, y)
    np.testing.assert_array_equal(plain.intercept_, [0.0, 0.0])
    model = clone(plain).set_params(fit_intercept=True).fit(X, y)
    alpha = fit_external_field(plain.family_, plain.labels_, plain.priors_)
    np.testing.assert_allclose(model.intercept_, alpha)
    np.testing.assert_array_equal(model.family_.external_field, model.intercept_)
    assert alpha[0] > 0.3 > -0.3 > alpha[1]
    far = [[50.0, 50.0]]  # where no neighbour is near
    assert model.predict_proba(far)[0, 0] > 0.6


def test_a_kernel_of_ones_own_does_all_that_a_kernel_by_name_does(iris, tmp_path):
    X, y, new = iris[0], iris[1], iris[2][:6]

    def log_gaussian(distances, sigma):
        return -0.5 * (distances / sigma) ** 2

    own, named = (
        DistanceNeighborsClassifier(kernel, inference="pseudolikelihood", random_state=0).fit(X, y)
        for kernel in (log_gaussian, "gaussian")
    )
    np.testing.assert_allclose(own.predict_proba(new), named.predict_proba(new), atol=1e-6)
    np.testing.assert_array_equal(own.predict_set(new), named.predict_set(new))
    np.testing.assert_array_equal(own.decide(new), named.decide(new))
    assert own.predict_joint(new, n_draws=3).shape == (3, 6)
    with pytest.raises(ValueError, match="n_neighbors=None with a kernel of one's own"):
        clone(own).set_params(n_neighbors=5).fit(X, y)
    with pytest.raises(TypeError, match="by name"):
        nearfield.save(own, tmp_path / "own.model")
    assert not list(tmp_path.iterdir())


def test_learned_metric_is_kept(iris):
    X, y, new, new_y = iris
    model = gaussian(metric="within").fit(X, y)
    assert isinstance(model.metric_learner_, LEARNED_METRICS["within"])
    assert model.score(new, new_y) > 0.85
    with pytest.raises(AttributeError, match="learned metric"):
        _ = gaussian().fit(X, y).metric_learner_


def test_function_as_metric_measures_like_the_named_one(iris):
    X, y, new, _ = iris

    def city_block(a, b):
        return np.abs(a - b).sum()

    np.testing.assert_allclose(
        gaussian(metric=city_block).fit(X, y).predict_proba(new),
        gaussian(metric="manhattan").fit(X, y).predict_proba(new),
        atol=SAME,
    )


def test_class_prior_multiplies_the_odds(iris):
    X, y, new, _ = iris
    X, y = X[:-4], y[:-4]  # unequal classes
    model = gaussian().fit(X, y)
    trained = np.unique(y, return_counts=True)[1] / len(y)
    plain, expected = model.predict_proba(new), np.array([0.6, 0.3, 0.1])
    weighted = plain * expected / trained
    np.testing.assert_allclose(
        model.set_params(class_prior=expected).predict_proba(new),
        weighted / weighted.sum(axis=1, keepdims=True),
    )
    np.testing.assert_allclose(model.set_params(class_prior=trained).predict_proba(new), plain)
    assert (model.set_params(class_prior=[0.0, 0.5, 0.5]).predict_proba(new)[:, 0] == 0.0).all()


def test_class_prior_multiplies_the_odds_at_every_draw_of_an_interval(iris):
    X, y, new, _ = iris
    is_first = y == y[0]
    model = gaussian().fit(X, is_first)
    trained, given = np.array([(~is_first).mean(), is_first.mean()]), np.array([0.9, 0.1])
    plain = model.predict_proba_interval(new)
    shifted = model.set_params(class_prior=given).predict_proba_interval(new)
    ratio = given / trained
    # With two classes the change is monotone, and so commutes with quantiles.
    for before, after in zip(plain, shifted, strict=True):
        p = before[:, 1]
        expected = p * ratio[1] / (p * ratio[1] + (1.0 - p) * ratio[0])
        # A quantile is interpolated between two of 512 draws.
        np.testing.assert_allclose(after[:, 1], expected, atol=1e-3)


def test_class_prior_holds_for_joint_draws(iris):
    X, y, new, _ = iris
    model = gaussian(class_prior=[0.8, 0.1, 0.1]).fit(X, y)
    draws = model.predict_joint(new[:1], n_draws=4_000, random_state=0)
    share = (draws == model.classes_[:, None, None]).mean(axis=(1, 2))
    error = np.sqrt(share * (1.0 - share) / 4_000)
    assert (np.abs(share - model.predict_proba(new[:1])[0]) < 4.0 * error + 0.01).all()


def test_class_prior_is_all_that_is_left_of_a_class_that_cannot_be(rng):
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.repeat(["a", "b", "c"], [10, 5, 5])
    posterior = FixedPosterior(beta=2_000.0, sigma=0.01, asked=[])
    model = DistanceNeighborsClassifier(inference=posterior).fit(X, y)
    probabilities = model.set_params(class_prior=[0.0, 0.25, 0.75]).predict_proba([[0.0]])
    np.testing.assert_allclose(probabilities.sum(), 1.0)
    assert probabilities[0, 0] == 0.0


def test_interval_holds_the_probability_and_grows_with_the_level(iris):
    X, y, new, _ = iris
    model = gaussian().fit(X, y)
    lower, upper = model.predict_proba_interval(new)
    narrow_lower, narrow_upper = model.predict_proba_interval(new, level=0.5)
    assert lower.shape == upper.shape == (len(new), 3)
    assert (lower <= narrow_lower + 1e-9).all()
    assert (narrow_upper <= upper + 1e-9).all()
    probabilities = model.predict_proba(new)
    assert np.mean((lower <= probabilities) & (probabilities <= upper)) > 0.95


def test_far_points_have_high_outlier_scores(iris):
    X, y, _, _ = iris
    model = gaussian().fit(X, y)
    scores = model.outlier_score(X.mean(axis=0) + np.outer([1.0, 5.0, 25.0], X.std(axis=0)))
    assert (np.diff(scores) > 0.0).all()


def test_joint_draws_are_classes_and_follow_their_seed(iris):
    X, y, new, _ = iris
    model = gaussian(random_state=3).fit(X, y)
    draws = model.predict_joint(new[:5], 40)
    assert draws.shape == (40, 5)
    assert set(draws.ravel()) <= set(model.classes_)
    np.testing.assert_array_equal(model.predict_joint(new[:5], 40), draws)
    np.testing.assert_array_equal(model.predict_joint(new[:5], 40, random_state=3), draws)
    other = model.predict_joint(new[:5], 40, random_state=np.random.default_rng(8))
    assert (other != draws).any()


@pytest.mark.parametrize("n_new", [1, 4])
def test_joint_draws_take_precomputed_distances_of_all_points(iris, n_new):
    X, y, new, _ = iris
    new = new[:n_new]
    by_features = fixed(standardize=False, random_state=1).fit(X, y)
    by_distances = fixed(metric="precomputed", random_state=1).fit(distance_matrix(X), y)
    distances = distance_matrix(new, np.concatenate([X, new]))
    np.testing.assert_array_equal(
        by_distances.predict_joint(distances, 30), by_features.predict_joint(new, 30)
    )


def test_prediction_can_change_without_a_new_fit(iris):
    X, y, new, _ = iris
    model = gaussian().fit(X, y)
    joint = model.predict_proba(new)
    printed = model.set_params(predictive="printed").predict_proba(new)
    np.testing.assert_array_equal(
        printed, gaussian(predictive="printed").fit(X, y).predict_proba(new)
    )
    assert np.abs(joint - printed).max() > 0.01


def test_engine_hears_what_the_estimator_was_told(iris):
    X, y, _, _ = iris
    seed = np.random.default_rng(1)
    model = fixed(n_jobs=2, verbose=1, random_state=seed).fit(X, y)
    rng, family, labels, priors, n_jobs, verbose = model.inference.asked
    assert (rng, n_jobs, verbose) == (seed, 2, 1)
    assert family.kernel == model.family_.kernel
    np.testing.assert_array_equal(family.distances, model.family_.distances)
    assert priors is model.priors_
    np.testing.assert_array_equal(model.classes_[labels], y)
    assert model.inference_ == "FixedPosterior"


@pytest.mark.parametrize("kind", [int, np.int64, np.random.RandomState, np.random.default_rng])
def test_every_kind_of_seed_repeats_the_draws(kind, iris):
    X, y, _, _ = iris
    settings = Exchange(n_draws=50, n_burn=50, n_sweeps=2, n_chains=1)
    with pytest.warns(UserWarning, match="R-hat"):
        first, second = (
            gaussian(inference=settings, random_state=kind(5)).fit(X, y).posterior_
            for _ in range(2)
        )
    np.testing.assert_array_equal(first.beta, second.beta)


def test_no_seed_follows_the_global_state_of_numpy():
    np.random.seed(4)  # noqa: NPY002 the global state is what this is about
    first = _settings.make_rng(None).random()
    np.random.seed(4)  # noqa: NPY002 the global state is what this is about
    assert _settings.make_rng(None).random() == first
    assert _settings.make_rng(None).random() != first


@pytest.mark.parametrize(
    ("n_points", "is_directed", "expected"),
    [(40, False, "path"), (41, False, "pseudolikelihood"), (10, True, "pseudolikelihood")],
)
def test_automatic_engine_is_path_sampling_up_to_a_size(
    n_points, is_directed, expected, use_sizes, rng
):
    use_sizes(max_path=40)
    distances = distance_matrix(rng.normal(size=(n_points, 2)))
    family = NeighborFamily.from_distances(distances, 2, is_directed=is_directed)
    name, engine = _settings.choose_engine("auto", family)
    assert name == expected
    assert type(engine).__name__ == _settings.ENGINES[expected]


def test_records_of_settings_are_known_by_name(iris):
    X, y, _, _ = iris
    model = gaussian(inference=Pseudolikelihood(density=2.0)).fit(X, y)
    assert model.inference_ == "pseudolikelihood"


def test_default_priors_are_the_papers_for_beta_above_zero(iris):
    X, y, _, _ = iris
    priors = gaussian().fit(X, y).priors_
    assert priors.beta.support() == (0.0, np.inf)
    grid = np.linspace(0.0, 200.0, 9)
    np.testing.assert_allclose(priors.beta.pdf(grid), 2.0 * stats.norm(0.0, 50.0).pdf(grid))
    assert priors.scale.support() == (0.0, 100.0)
    k_prior = MODELS["symmetric"].fit(X, y).priors_.scale
    assert k_prior.support() == (1, len(y) // 2)


@pytest.mark.parametrize("kernel", ["gaussian", "radius", "exponential"])
def test_default_prior_of_sigma_has_the_unit_of_the_distances(kernel, iris):
    X, y, new, _ = iris

    def probabilities(unit):
        return gaussian(kernel=kernel, standardize=False).fit(unit * X, y).predict_proba(unit * new)

    np.testing.assert_allclose(probabilities(1e6), probabilities(1e-6), atol=SAME)
    np.testing.assert_allclose(probabilities(1e6), probabilities(1.0), atol=0.05)


def test_prior_given_is_the_prior_used(iris):
    X, y, _, _ = iris
    beta, sigma = stats.norm(0.0, 50.0), stats.uniform(0.0, 10.0)
    priors = gaussian(prior_beta=beta, prior_sigma=sigma).fit(X, y).priors_
    assert priors.beta is beta
    assert priors.scale is sigma


def test_posterior_of_k_is_a_table(iris):
    X, y, _, _ = iris
    table = MODELS["symmetric"].fit(X, y).posterior_.table()
    assert table.index.name == "k"
    assert table.index.min() >= 1
    assert table.index.max() <= len(y) // 2
    np.testing.assert_allclose(table.sum(), 1.0)


def test_evidence_is_there_only_if_the_engine_gives_it(iris):
    X, y, _, _ = iris
    assert np.isfinite(gaussian().fit(X, y).log_evidence_)
    model = fixed().fit(X, y)
    for name in ("log_evidence_", "log_evidence_error_"):
        with pytest.raises(AttributeError, match=f'gives the {name[:-1]}.* inference="path"'):
            getattr(model, name)
    assert not hasattr(gaussian(), "log_evidence_")


def test_fit_that_is_stopped_leaves_nothing_half_done(iris):
    X, y, new, _ = iris

    class Stopped(FixedPosterior):
        def infer(self, *arguments, **options):
            raise KeyboardInterrupt

    model = gaussian(inference=Stopped())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(new)


def test_number_of_threads_changes_nothing(model, iris):
    X, y, new, _ = iris
    one = model.fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).fit(X, y).predict_proba(new), one)


def test_models_show_themselves_in_notebooks(model, iris):
    X, y, _, _ = iris
    assert type(model).__name__ in model._repr_html_()
    assert type(model).__name__ in model.fit(X, y)._repr_html_()
    assert repr(gaussian(kernel="radius")).startswith("DistanceNeighborsClassifier(")


def test_log_probabilities_are_the_logs(iris):
    X, y, new, _ = iris
    model = MODELS["cv"].fit(X, y)
    with np.errstate(divide="ignore"):
        expected = np.log(model.predict_proba(new))
    np.testing.assert_array_equal(model.predict_log_proba(new), expected)


def test_package_lists_its_names_and_no_others():
    assert {"DistanceNeighborsClassifier", "save", "load"} <= set(dir(nearfield))
    for name in nearfield.__all__:
        assert getattr(nearfield, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = nearfield.nonsense


@pytest.mark.parametrize(
    ("script", "heavy"),
    [
        ("import nearfield", {"numpy", "sklearn"}),
        ("from nearfield import KNeighborsClassifierCV, save", {"matplotlib", "arviz"}),
    ],
)
def test_heavy_libraries_are_imported_only_when_used(script, heavy):
    command = [
        sys.executable,
        "-c",
        f"import sys; {script}; print(*{heavy!r} & sys.modules.keys())",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
