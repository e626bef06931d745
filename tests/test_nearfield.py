"""The recommended classifier: what it averages, how it weighs, and that it keeps its word."""

import copy
from functools import partial

import numpy as np
import pytest
from plain import minus_log_posterior
from scikit_checks import expected_failures
from scipy.optimize import approx_fprime, minimize
from scipy.special import softmax
from scipy.stats import skew
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearfield
from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield.datasets import load_crabs, load_iris, load_wine, stratified_split
from nearfield.distances import PowerTransform, distance_matrix
from nearfield.distances.power import yeo_johnson
from nearfield.estimators._stacking import deal_folds, stacking_weights
from nearfield.field import DistanceFamily
from nearfield.inference import Posterior, Priors, Pseudolikelihood
from nearfield.inference.intercepts import maximize_intercepts
from nearfield.prediction import grid
from nearfield.prediction.grid import GridSettings, HeldOutPrior
from nearfield.prediction.heldout import HeldOutField, HeldOutFold
from nearfield.prediction.mixture import weighted_quantiles

SMALL = {"kernels": ("gaussian",), "metrics": ("euclidean", "within"), "random_state": 0}


@parametrize_with_checks(
    [NearfieldClassifier(n_folds=2, **SMALL), PowerTransform()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_the_classifier_and_its_transform(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    train, test = stratified_split(y, 0.25, random_state=0)
    return X[train], y[train], X[test], y[test]


@pytest.fixture(scope="module")
def model(wine):
    return NearfieldClassifier(random_state=0).fit(*wine[:2])


def test_wine_is_classified_well_without_settings(model, wine):
    # 5% of 133 is more than two standard errors above the 3% that it has on average.
    assert model.score(*wine[2:]) > 0.93


def test_probabilities_are_the_weighted_mean_of_the_candidates(model, wine):
    points = model.power_transform_.transform(wine[2])
    pairs = zip(model.weights_, model.estimators_, strict=True)
    expected = sum(weight * candidate.predict_proba(points) for weight, candidate in pairs)
    np.testing.assert_allclose(model.predict_proba(wine[2]), expected, atol=1e-12)
    assert model.predict_proba(wine[2]).sum(axis=1) == pytest.approx(1.0)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (model.weights_ >= 0.01).all()


def test_summary_has_a_row_a_candidate_with_or_without_weight_the_weightiest_first(model):
    summary = model.summary()
    assert list(summary.columns) == [
        "features",
        "kernel",
        "metric",
        "weight",
        "log_score",
        "beta",
        "sigma",
    ]
    assert len(summary) == 12
    assert summary["weight"].is_monotonic_decreasing
    assert (summary["weight"] > 0.0).sum() == len(model.estimators_)


def test_candidates_are_complete_classifiers(model, wine):
    candidate = model.estimators_[0]
    assert isinstance(candidate, DistanceNeighborsClassifier)
    assert candidate.inference_ == "pseudolikelihood"
    assert set(candidate.predict(model.power_transform_.transform(wine[2]))) <= set(model.classes_)


def test_intervals_hold_the_probabilities_and_grow_with_the_level(model, wine):
    X = wine[2][:40]
    narrow, wide = (model.predict_proba_interval(X, level) for level in (0.5, 0.99))
    probabilities = model.predict_proba(X)
    assert ((wide[0] <= probabilities + 1e-9) & (probabilities <= wide[1] + 1e-9)).all()
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[1] <= wide[1]).all()
    with pytest.raises(ValueError, match="0 < level < 1"):
        model.predict_proba_interval(X, level=1.0)


def test_an_outlier_scores_ever_higher(model, wine):
    away = wine[0].mean(axis=0) + np.array([0, 5, 50, 500])[:, None] * wine[0].std(axis=0)
    assert (np.diff(model.outlier_score(away)) > 0.0).all()


def test_class_prior_multiplies_the_odds(model, wine):
    X = wine[2]
    given = np.array([0.2, 0.3, 0.5])
    trained = np.bincount(wine[1]) / len(wine[1])
    odds = model.predict_proba(X) * given / trained
    expected = odds / odds.sum(axis=1, keepdims=True)
    shifted = copy.copy(model).set_params(class_prior=given)
    np.testing.assert_allclose(shifted.predict_proba(X), expected, atol=1e-9)
    assert (shifted.predict(X) == expected.argmax(axis=1)).all()
    lower, upper = shifted.predict_proba_interval(X)
    assert (lower <= expected + 0.02).all()
    assert (expected - 0.02 <= upper).all()
    never = copy.copy(model).set_params(class_prior=[0.0, 0.5, 0.5])
    assert (never.predict_joint(X[:5], n_draws=50, random_state=0) != 0).all()


def test_joint_draws_agree_with_the_probabilities_where_points_are_far_apart():
    X, y = load_iris(return_X_y=True)
    model = NearfieldClassifier(**SMALL).fit(X[::3], y[::3])
    draws = model.predict_joint(X[1:2], n_draws=400, random_state=1)
    assert draws.shape == (400, 1)
    share = (draws == model.classes_).mean(axis=0)
    # One new point: the joint is the predictive; four standard errors of 400 draws.
    np.testing.assert_allclose(share, model.predict_proba(X[1:2])[0], atol=0.1)


def test_one_seed_gives_one_answer_whatever_the_number_of_jobs(wine):
    first = NearfieldClassifier(n_jobs=1, **SMALL).fit(*wine[:2]).predict_proba(wine[2])
    second = NearfieldClassifier(n_jobs=2, **SMALL).fit(*wine[:2]).predict_proba(wine[2])
    np.testing.assert_array_equal(first, second)


def test_a_saved_model_predicts_the_same_to_the_last_bit(model, wine, tmp_path):
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(wine[2]), model.predict_proba(wine[2]))


def test_evidence_weighs_candidates_by_path_sampling():
    X, y = load_iris(return_X_y=True)
    X, y = X[::6], y[::6]
    model = NearfieldClassifier(averaging="evidence", **SMALL).fit(X, y)
    evidences = [candidate.log_evidence_ for candidate in model.estimators_]
    np.testing.assert_array_equal(model.log_scores_, evidences)
    weights = softmax(evidences)
    weights[weights < 0.01] = 0.0
    np.testing.assert_allclose(model.weights_, weights / weights.sum())


def test_features_can_be_left_as_they_are(wine):
    model = NearfieldClassifier(power_transform=False, **SMALL).fit(*wine[:2])
    assert model.power_transform_ is None
    assert model.score(*wine[2:]) > 0.9


def test_with_more_features_than_points_no_powers_are_taken():
    rng = np.random.default_rng(5)
    y = np.arange(20) % 2
    X = rng.lognormal(size=(20, 40)) + 3.0 * y[:, None]
    model = NearfieldClassifier(**SMALL).fit(X, y)
    assert model.power_transform_ is None
    assert model.predict(X).tolist() == y.tolist()


def test_sparse_features_give_the_answers_of_dense_ones(wine):
    from scipy.sparse import csr_matrix

    dense = NearfieldClassifier(**SMALL).fit(*wine[:2]).predict_proba(wine[2])
    sparse = NearfieldClassifier(**SMALL).fit(csr_matrix(wine[0]), wine[1])
    np.testing.assert_allclose(sparse.predict_proba(csr_matrix(wine[2])), dense, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernels": "gaussian"}, "kernels as a list"),
        ({"metrics": ()}, "metrics as a list"),
        ({"kernels": ("radius",)}, "kernels among"),
        ({"metrics": ("precomputed",)}, "metrics of features"),
        ({"averaging": "voting"}, "averaging among"),
        ({"fit_intercept": "free"}, "fit_intercept as True or False"),
        ({"power_transform": 1}, "power_transform as True or False"),
        ({"class_prior": [0.5, 0.5]}, "class_prior of 3 proportions"),
        ({"n_folds": 1}, "n_folds >= 2"),
        ({"concentration": -1.0}, "concentration >= 0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises((TypeError, ValueError), match=message):
        NearfieldClassifier(**settings).fit(X, y)


def test_a_class_of_one_point_and_text_labels_are_no_obstacle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(13, 2)) + np.r_[np.zeros(6), np.full(6, 5.0), -9.0][:, None]
    y = np.array(["a"] * 6 + ["b"] * 6 + ["c"])
    model = NearfieldClassifier(random_state=0).fit(X, y)
    assert model.predict(X[:12]).tolist() == y[:12].tolist()


def test_learned_metrics_get_the_weight_where_they_are_needed():
    X, y = load_crabs(return_X_y=True)
    train, _ = stratified_split(y, 0.25, random_state=1)
    model = NearfieldClassifier(random_state=0).fit(X[train], y[train])
    summary = model.summary().groupby("metric")["weight"].sum()
    assert summary["within"] + summary["discriminant"] > 0.7


def test_it_works_inside_cross_validation():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(NearfieldClassifier(**SMALL), X[::2], y[::2], cv=3)
    assert scores.mean() > 0.85


def test_intercepts_favour_what_neighbours_cannot_tell():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(120, 2)), (np.arange(120) >= 90).astype(int)  # noise, three to one
    fitted = NearfieldClassifier(**SMALL).fit(X, y)
    for candidate in fitted.estimators_:
        assert candidate.intercept_[0] > candidate.intercept_[1]
        assert candidate.intercept_.sum() == pytest.approx(0.0)
    without = NearfieldClassifier(fit_intercept=False, **SMALL).fit(X, y)
    assert all((candidate.intercept_ == 0.0).all() for candidate in without.estimators_)


def test_fitted_intercepts_are_the_most_probable_ones():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], [30, 10, 5])
    support = rng.dirichlet(np.ones(3), size=45) + 0.5 * np.eye(3)[labels]
    supports = np.stack([support, 0.2 * support, support[::-1]])  # the last is against the labels
    prior = {"prior_sd": 1.0, "prior_beta": (0.0, 50.0)}
    start, beta_range = (np.zeros(3), 3.0), (0.02, 300.0)
    found = maximize_intercepts(supports, labels, **prior, beta_range=beta_range, start=start)
    assert found.beta[1] > found.beta[0] > 1.0 > found.beta[2] == beta_range[0]
    for k, each in enumerate(supports):
        objective = partial(minus_log_posterior, support=each, labels=labels, **prior)
        bounds = [(None, None)] * 3 + [beta_range]
        best = minimize(objective, [0.0, 0.0, 0.0, 3.0], jac=True, bounds=bounds)
        np.testing.assert_allclose([*found.alpha[k], found.beta[k]], best.x, atol=2e-3)
        assert found.alpha[k].sum() == pytest.approx(0.0)


def test_the_log_mass_of_intercepts_is_that_of_laplace():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], [30, 15])
    prior = {"prior_sd": 1.0, "prior_beta": (0.0, 50.0)}
    support = rng.dirichlet(np.ones(2), size=45) + 0.5 * np.eye(2)[labels]
    found = maximize_intercepts(
        support, labels, **prior, beta_range=(0.02, 300.0), start=(np.zeros(2), 3.0)
    )
    objective = partial(minus_log_posterior, support=support, labels=labels, **prior)
    best = np.append(found.alpha, found.beta)
    curvature = approx_fprime(best, lambda x: objective(x)[1], 1e-6)
    expected = -objective(best)[0] - 0.5 * np.linalg.slogdet(curvature)[1]
    np.testing.assert_allclose(found.log_mass, expected, rtol=1e-4)


def test_classes_of_different_spread_are_told_apart_by_wide_kernels_and_intercepts():
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    X = rng.normal(size=(900, 20)) * (1 + y)[:, None]
    model = NearfieldClassifier(random_state=0).fit(X[:300], y[:300])
    analysis = QuadraticDiscriminantAnalysis().fit(X[:300], y[:300])
    losses = [log_loss(y[300:], each.predict_proba(X[300:])) for each in (model, analysis)]
    assert losses[0] < 1.5 * losses[1]


def test_scales_far_from_the_points_are_no_obstacle(held_out):
    _, labels, _, parts = held_out
    field = HeldOutField(parts, labels, "gaussian", 3)
    tiny, huge = field.support(np.array([1e-4, 1e4]))
    # The nearest training point alone, and all of them alike; each both ways.
    assert tiny.sum(axis=1).min() >= 1.0 - 1e-5
    np.testing.assert_allclose(huge.sum(axis=1), 2.0, rtol=0.02)


# Many points


@pytest.fixture
def few_are_many(use_sizes):
    """Take 400 points for many."""
    use_sizes(
        max_dense_automatic=400, max_folds=400, n_sample=150, max_learning=400, n_learning=150
    )


@pytest.mark.filterwarnings("ignore:Expected class probabilities")
def test_many_points_are_seen_from_near_neighbours(few_are_many, tmp_path):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(900, 3))
    y = np.where(np.hypot(X[:, 0], X[:, 1]) > 1.2, "out", "in")
    model = NearfieldClassifier(random_state=0, metrics=("euclidean", "ard")).fit(X[:600], y[:600])
    assert 1 <= len(model.estimators_) <= 3
    assert all(c.family_.has_graph for c in model.estimators_)
    probabilities = model.predict_proba(X[600:])
    expected = sum(
        weight * candidate.predict_proba(model.power_transform_.transform(X[600:]))
        for weight, candidate in zip(model.weights_, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(probabilities, expected, atol=1e-12)
    assert model.score(X[600:], y[600:]) > 0.9
    lower, upper = model.predict_proba_interval(X[600:620])
    assert ((lower <= probabilities[:20] + 0.01) & (probabilities[:20] <= upper + 0.01)).all()
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X[600:]), probabilities)
    assert len(model.summary()) == len(model.estimators_)


# Folds and weights


def test_folds_hold_out_every_point_once_and_share_the_classes():
    labels = np.repeat([0, 1, 2], [20, 10, 5])
    folds = deal_folds(np.random.default_rng(0), labels, 5)
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert sorted(held_out) == list(range(35))
    for fold in folds:
        assert np.bincount(labels[fold.held_out]).tolist() == [4, 2, 1]
        assert sorted([*fold.training, *fold.held_out]) == list(range(35))


def test_stacking_weights_are_those_of_a_general_optimiser():
    rng = np.random.default_rng(1)
    log_densities = rng.normal(size=(60, 3)) + np.array([0.5, 0.0, -1.0])
    weights = stacking_weights(log_densities, concentration=0.25)

    def loss(logits):
        w = softmax(logits)
        return -np.log(np.exp(log_densities) @ w).sum() - 0.25 * np.log(w).sum()

    np.testing.assert_allclose(weights, softmax(minimize(loss, np.zeros(3)).x), atol=1e-3)


def test_stacking_finds_the_true_mixture_and_no_data_leave_equal_weights():
    rng = np.random.default_rng(2)
    good = np.where(rng.random(5_000) < 0.7, np.log(0.9), np.log(0.1))
    log_densities = np.column_stack([good, good[::-1] - 3.0])
    assert stacking_weights(log_densities, 0.0)[0] > 0.99
    np.testing.assert_allclose(stacking_weights(np.zeros((1, 4)), 0.25), 0.25)


# Inference from held-out points


@pytest.fixture(scope="module")
def held_out():
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    points = (X - X.mean(axis=0)) / X.std(axis=0)
    folds = deal_folds(np.random.default_rng(0), y, 10)
    parts = [
        HeldOutFold(
            fold.held_out,
            y[fold.training],
            distance_matrix(points[fold.training]),
            distance_matrix(points[fold.held_out], points[fold.training]),
        )
        for fold in folds
    ]
    return points, y, folds, parts


@pytest.mark.parametrize(("kernel", "sigma"), [("gaussian", 0.4), ("exponential", 3.0)])
def test_held_out_support_is_that_of_the_last_point_of_a_larger_field(held_out, kernel, sigma):
    points, labels, folds, parts = held_out
    support = HeldOutField(parts, labels, kernel, 3).support(np.array([sigma]))[0]
    for fold in folds[:3]:
        for i in fold.held_out:
            rows = [*fold.training, i]
            family = DistanceFamily(distance_matrix(points[rows]), kernel, 3)
            expected = family.at(sigma).support(labels[rows])[-1]  # whatever its own label is
            np.testing.assert_allclose(support[i], expected, rtol=1e-5, atol=1e-5)


def test_leaving_out_one_at_a_time_gives_the_pseudolikelihood_posterior(held_out):
    from scipy import stats

    points, labels, _, _ = held_out
    parts = []
    for i in range(len(labels)):
        rest = np.delete(np.arange(len(labels)), i)
        parts.append(
            HeldOutFold(
                np.array([i]),
                labels[rest],
                distance_matrix(points[rest]),
                distance_matrix(points[[i]], points[rest]),
            )
        )
    priors = Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))
    family = DistanceFamily(distance_matrix(points), "gaussian", 3)
    field = HeldOutField(parts, labels, "gaussian", 3)
    expected = Pseudolikelihood().infer(None, family, labels, priors)
    coarse = field.infer(HeldOutPrior(50.0, 100.0), family.scale_range).posterior
    settings = GridSettings(n_scan_scales=30, n_scales=16, n_betas=24, reach=10.0)
    fine = field.infer(HeldOutPrior(50.0, 100.0), family.scale_range, settings).posterior
    for found, error, evidence_error in ((coarse, 0.2, 0.2), (fine, 0.03, 0.01)):
        for name, sd in expected.sd().items():
            assert found.mean()[name] == pytest.approx(expected.mean()[name], abs=error * sd)
            assert found.sd()[name] == pytest.approx(sd, rel=error)
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=evidence_error)


def test_log_densities_take_a_label_s_own_say_out(held_out):
    _, labels, _, parts = held_out
    found = HeldOutField(parts, labels, "gaussian", 3).infer(
        HeldOutPrior(50.0, 100.0), (0.05, 10.0)
    )
    # A proper log score: worse than the fit, better than guessing.
    assert -np.log(3.0) < found.log_densities.mean() < 0.0


def test_weighted_quantiles_are_those_of_repeated_values():
    rng = np.random.default_rng(3)
    values, counts = rng.normal(size=(20, 3)), rng.integers(1, 9, size=20)
    repeated = np.repeat(values, counts, axis=0)
    for level, found in zip(
        (0.1, 0.8), weighted_quantiles(values.T, counts.astype(float), (0.1, 0.8)), strict=True
    ):
        expected = np.quantile(repeated, level, axis=0, method="inverted_cdf")
        np.testing.assert_array_equal(found, expected)


# The power transform


def test_power_transform_takes_the_skewness_and_leaves_gaussians_alone():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.lognormal(size=400), -rng.lognormal(size=400), rng.normal(size=400)])
    transform = PowerTransform().fit(X)
    assert (np.abs(skew(transform.transform(X))[:2]) < 0.4 * np.abs(skew(X)[:2])).all()
    assert transform.powers_[0] < 0.5
    assert transform.powers_[1] > 1.5
    assert transform.powers_[2] == 1.0
    np.testing.assert_allclose(
        transform.transform(X)[:, 2], (X[:, 2] - X[:, 2].mean()) / X[:, 2].std()
    )


def test_power_transform_is_that_of_yeo_and_johnson_and_increases_to_the_ends():
    from scipy.stats import yeojohnson

    x = np.linspace(-3.9, 3.9, 41)
    for power in (-1.0, 0.0, 0.7, 2.0, 3.0):
        np.testing.assert_allclose(
            yeo_johnson(x[:, None], np.array([power]))[:, 0], yeojohnson(x, power), atol=1e-9
        )
        far = np.array([-1e6, -10.0, -4.0, 0.0, 4.0, 10.0, 1e6])
        assert (np.diff(yeo_johnson(far[:, None], np.array([power]))[:, 0]) > 0.0).all()


def test_settings_survive_a_clone():
    model = NearfieldClassifier(random_state=0, metrics=["ard"], concentration=1.0)
    assert clone(model).get_params() == model.get_params()


def test_added_points_change_no_weight_and_no_parameter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(160, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=160) > 0.0, "right", "left")
    model = NearfieldClassifier(random_state=0, metrics=("euclidean", "within")).fit(
        X[:100], y[:100]
    )
    weights = model.weights_.copy()
    model.partial_fit(X[100:120], y[100:120]).partial_fit(X[120:140], y[120:140])
    np.testing.assert_array_equal(model.weights_, weights)
    points = model.power_transform_.transform(X[140:])
    expected = sum(
        weight * candidate.predict_proba(points)
        for weight, candidate in zip(model.weights_, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(X[140:]), expected, atol=1e-4)
    assert len(model.labels_) == 140
    for candidate in model.estimators_:
        assert candidate.family_.n_points == 140
    with pytest.raises(ValueError, match="Expected classes that the estimator was fitted to"):
        model.partial_fit(X[:2], ["left", "up"])


def test_draws_of_folds_are_averaged():
    def found(beta, density):
        posterior = Posterior.from_nodes(
            [beta, beta + 1.0], [1.0, 2.0], [0.5, 0.5], "sigma", log_evidence=-beta
        )
        alpha = np.array([2.0, -2.0])
        return grid.HeldOutPosterior(posterior, np.log([density, density]), alpha)

    posterior, log_densities, alpha = grid.average_posteriors([found(1.0, 0.2), found(3.0, 0.6)])
    assert posterior.mean()["beta"] == pytest.approx(2.5)
    assert posterior.log_evidence == pytest.approx(-2.0)
    np.testing.assert_allclose(np.exp(log_densities), [0.2, 0.2, 0.6, 0.6])
    np.testing.assert_allclose(alpha, [2.0, -2.0])


def test_seeds_matter_less_the_more_often_folds_are_drawn(use_sizes):
    X, y = load_crabs(return_X_y=True)
    train, test = stratified_split(y, 0.25, random_state=0)

    def difference():
        found = [
            NearfieldClassifier(metrics=("within", "discriminant"), random_state=seed)
            .fit(X[train], y[train])
            .predict_proba(X[test])
            for seed in range(4)
        ]
        return np.std(found, axis=0).mean()

    repeated = difference()
    use_sizes(repeats=())
    assert repeated < 0.6 * difference()  # 8 draws: about 0.35


@pytest.mark.parametrize("exponent", [1020, -900])
def test_features_of_any_size_count_as_in_other_units(exponent):
    """Their sums or squares are no numbers; a power of two leaves their digits alone."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.uniform(-1.0, 1.0, (60, 3)) + 0.3 * labels[:, None]
    other = X * np.array([1.0, 2.0**exponent, 1.0])
    plain, extreme = (
        NearfieldClassifier(metrics=("euclidean", "within"), random_state=0).fit(points, labels)
        for points in (X, other)
    )
    np.testing.assert_array_equal(extreme.predict_proba(other), plain.predict_proba(X))
    np.testing.assert_array_equal(extreme.membership(other), plain.membership(X))
    effects = [
        [effect.attribution for effect in model.explain(points[:1])[0].features]
        for model, points in ((extreme, other), (plain, X))
    ]
    np.testing.assert_allclose(*effects)
