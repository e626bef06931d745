"""The learned metrics: what they claim to learn, and that they survive awkward data."""

import numpy as np
import pytest
from plain_scales import PlainObjective, field_gradient, squared_distances
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_crabs, load_iris, load_wine, stratified_split
from nearfield.distances import (
    LEARNED_METRICS,
    ArdMetric,
    DiscriminantMetric,
    QuadraticMetric,
    WithinMetric,
)
from nearfield.distances import _relevance as relevance
from nearfield.distances._scale_objective import ScaleObjective, ScaleProblem
from nearfield.distances._scale_search import quasi_newton, search_scales
from nearfield.distances.discriminant import discriminant_axes
from nearfield.distances.learned import class_means, standardize
from nearfield.distances.within import most_probable_shrinkage, whiten_within
from nearfield.field import DistanceFamily
from nearfield.inference.pseudolikelihood import log_pseudolikelihood

METRICS = [
    WithinMetric(),
    ArdMetric(max_iter=10),
    DiscriminantMetric(max_iter=10),
    QuadraticMetric(),
]


@parametrize_with_checks(METRICS)
def test_scikit_learn_accepts_the_metric_as_a_transformer(estimator, check):
    check(estimator)


@pytest.fixture
def crabs():
    return load_crabs(return_X_y=True)


def test_within_whitens_the_classes_when_it_need_not_shrink():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 4_000)
    mixing = rng.normal(size=(3, 3))
    X = rng.normal(size=(8_000, 3)) @ mixing + 5.0 * labels[:, None]
    metric = WithinMetric().fit(X, labels)
    white = metric.transform(X)
    within = np.cov((white - class_means(white, labels)[labels]).T)
    # Shrinkage distorts by about itself; a sample variance by sqrt(2/n).
    assert metric.shrinkage_ < 0.01
    np.testing.assert_allclose(within, np.eye(3), atol=0.01)


def test_left_out_likelihood_of_the_shrinkage_equals_leaving_out_in_earnest(monkeypatch):
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    points = standardize(rng.normal(size=(12, 3)) @ np.diag([3.0, 1.0, 0.2])).points
    grid = np.array([0.1, 0.3, 0.7])
    monkeypatch.setattr("nearfield.distances.within._SHRINKAGES", grid)
    residuals = points - class_means(points, labels)[labels]
    spectrum, vectors = np.linalg.eigh(residuals.T @ residuals)
    level = spectrum.mean() / 9
    scores = []
    for shrinkage in grid:
        total = 0.0
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            means = class_means(points[rest], labels[rest])
            others = points[rest] - means[labels[rest]]
            covariance = (1 - shrinkage) * others.T @ others / 8 + shrinkage * level * np.eye(3)
            total += multivariate_normal(means[labels[i]], covariance).logpdf(points[i])
        scores.append(total)
    sizes = np.bincount(labels)[labels]
    chosen = most_probable_shrinkage(
        residuals @ vectors, spectrum, np.ones(len(spectrum)), sizes, level, 0.0
    )
    assert chosen == grid[np.argmax(scores)]


def test_quadratic_coordinates_are_mahalanobis_distances_from_the_classes():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1], [6_000, 3_000])
    roots = np.array([rng.normal(size=(3, 3)), 4.0 * np.diag([1.0, 0.2, 3.0])])
    X = np.einsum("nf,nfg->ng", rng.normal(size=(9_000, 3)), roots[labels]) + 2.0 * labels[:, None]
    pooled = np.cov((X - class_means(X, labels)[labels]).T)
    expected = []
    for g in (0, 1):
        own = X[labels == g]
        residuals = X - own.mean(axis=0)
        inverse = np.linalg.inv(np.cov(own.T) + 0.01 * pooled)
        expected.append(np.sqrt(np.einsum("nf,fg,ng->n", residuals, inverse, residuals)))
    found = QuadraticMetric().fit_transform(X, labels)
    # Shrinkage, about one in the number of points, distorts by about itself.
    np.testing.assert_allclose(found, np.transpose(expected), rtol=0.01, atol=0.01)


def test_quadratic_metric_tells_classes_of_one_centre_and_different_spread_apart():
    rng = np.random.default_rng(4)
    labels = np.arange(600) % 2
    X = rng.normal(size=(600, 20)) * (1 + labels)[:, None]
    errors = {
        metric: 1.0
        - DistanceNeighborsClassifier(metric=metric, inference="pseudolikelihood", random_state=0)
        .fit(X[:300], labels[:300])
        .score(X[300:], labels[300:])
        for metric in ("quadratic", "within")
    }
    assert errors["quadratic"] < 0.06 < 0.2 < errors["within"]  # QDA: 0.05


def test_quadratic_metric_takes_classes_of_one_and_two_points():
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(23, 4)), np.repeat([0, 1, 2], [20, 2, 1])
    placed = QuadraticMetric().fit_transform(X, labels)
    assert np.isfinite(placed).all()
    assert placed[-1, 2] < 1e-12  # the only point of its class is its mean


def test_shrinkage_is_small_where_the_covariance_is_clear_and_full_where_it_is_a_multiple_of_one():
    rng = np.random.default_rng(2)
    labels = np.arange(60) % 3
    round_cloud = rng.normal(size=(60, 20))
    spectra = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 200)) + 0.01 * rng.normal(
        size=(60, 200)
    )
    assert WithinMetric().fit(round_cloud, labels).shrinkage_ > 0.5
    assert WithinMetric().fit(spectra, labels).shrinkage_ < 0.05


def test_more_features_than_points_leave_as_many_dimensions_as_the_points_span():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(20, 50)), np.arange(20) % 2
    for metric, n_components in [
        (WithinMetric(), 19),
        (DiscriminantMetric(), 19),
        (ArdMetric(), 50),
    ]:
        assert metric.fit(X, labels).n_components_ == n_components
        assert metric.transform(X).shape == (20, n_components)
        assert metric.get_feature_names_out().shape == (n_components,)


def test_what_a_point_has_outside_of_the_span_leaves_the_order_of_its_distances_alone():
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(12, 30)), np.arange(12) % 2
    metric = WithinMetric().fit(X, labels)
    outside = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0))[2][-1] * X.std(axis=0)
    np.testing.assert_allclose(metric.transform(X + 7.0 * outside), metric.transform(X), atol=1e-9)


def test_field_gradient_is_the_pseudolikelihood_of_the_field_and_its_slope():
    rng = np.random.default_rng(5)
    points, labels = rng.normal(size=(15, 4)), np.arange(15) % 3
    is_class = (labels[:, None] == np.arange(3)).astype(float)
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    value, _, by_beta = field_gradient(distances**2, is_class, 2.5)
    support = DistanceFamily(distances, "gaussian", 3).at(1.0).support(labels)
    log_likelihood = log_pseudolikelihood(support, labels, np.zeros(3))
    assert value == pytest.approx(log_likelihood(np.array([2.5]))[0])
    above, below = log_likelihood(np.array([2.5 + 1e-5, 2.5 - 1e-5]))
    assert by_beta == pytest.approx((above - below) / 2e-5, rel=1e-6)


COMMON = [1.0, 0.3, 0.0, 0.0, 1.0]


def _scale_problem(independence, n_features=5):
    rng = np.random.default_rng(6)
    points, labels = standardize(rng.normal(size=(25, n_features))).points, np.arange(25) % 3
    own = None if independence is None else np.array(independence)
    return ScaleProblem.from_points(points, labels, 1.0, own), rng


@pytest.mark.parametrize("independence", [None, COMMON])
def test_analytic_gradient_of_the_scales_equals_finite_differences(independence):
    problem, rng = _scale_problem(independence)
    objective = PlainObjective(problem)
    parameters = np.append(0.5 * rng.normal(size=objective.n_parameters - 1), np.log(3.0))
    slope = approx_fprime(parameters, lambda p: objective(p, 0.3)[0], 1e-7)
    np.testing.assert_allclose(objective(parameters, 0.3)[1], slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("independence", [None, COMMON])
def test_the_compiled_objective_equals_the_plain_one(independence):
    problem, rng = _scale_problem(independence)
    plain, compiled = PlainObjective(problem), ScaleObjective(problem)
    parameters = np.append(0.5 * rng.normal(size=plain.n_parameters - 1), np.log(3.0))
    (value, gradient), (other, other_gradient) = (o(parameters, 0.3) for o in (plain, compiled))
    assert other == pytest.approx(value, abs=1e-4)  # float32
    np.testing.assert_allclose(other_gradient, gradient, atol=1e-4)
    for around in (0.0, 1.3):
        expected = plain.best_length(parameters, around)
        assert compiled.best_length(parameters, around) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("n_kept", [1, 3, 4, 6])
def test_quasi_newton_steps_are_those_of_the_updated_matrix(n_kept):
    rng = np.random.default_rng(n_kept)
    moves, changes = rng.normal(size=(2, 4, 5))
    changes = changes + 3.0 * moves
    rows = [t % 4 for t in range(max(n_kept - 4, 0), n_kept)]
    last_move, last_change = moves[rows[-1]], changes[rows[-1]]
    inverse = np.eye(5) * (last_move @ last_change) / (last_change @ last_change)
    for move, change in zip(moves[rows], changes[rows], strict=True):  # Nocedal and Wright, 7.16
        left = np.eye(5) - np.outer(move, change) / (move @ change)
        inverse = left @ inverse @ left.T + np.outer(move, move) / (move @ change)
    gradient = rng.normal(size=5)
    direction = quasi_newton(gradient, moves, changes, n_kept)
    np.testing.assert_allclose(direction, -inverse @ gradient, rtol=1e-9)


def test_quasi_newton_steps_solve_a_quadratic_problem():
    rng = np.random.default_rng(10)
    factor = rng.normal(size=(4, 4))
    curvature = factor @ factor.T + np.eye(4)
    moves = np.linalg.eigh(curvature)[1].T  # conjugate directions: after all four BFGS is exact
    gradient = rng.normal(size=4)
    direction = quasi_newton(gradient, moves, moves @ curvature, 4)
    np.testing.assert_allclose(direction, -np.linalg.solve(curvature, gradient), rtol=1e-9)


def test_both_objectives_lead_to_the_same_scales():
    X, y = load_wine(return_X_y=True)
    points, labels = standardize(X[::2]).points, y[::2]
    problem = ScaleProblem.from_points(points, labels, 1.0)
    objectives = PlainObjective(problem), ScaleObjective(problem)
    found = [search_scales(objective, 50) for objective in objectives]
    plain, compiled = (o.log_scales(f.parameters) for o, f in zip(objectives, found, strict=True))
    np.testing.assert_allclose(compiled, plain, atol=0.05)
    plain, compiled = (
        o.penalty(f.parameters) - f.value for o, f in zip(objectives, found, strict=True)
    )
    assert compiled == pytest.approx(plain, abs=0.1)


def test_scales_keep_the_mean_squared_distance():
    X, y = load_iris(return_X_y=True)
    metric = ArdMetric().fit(X, y)
    assert np.mean(metric.scales_**2) == pytest.approx(1.0)
    np.testing.assert_array_equal(metric.components_, np.diag(metric.map_))
    assert np.mean(metric.transform(X).var(axis=0)) == pytest.approx(1.0)


def test_ard_finds_the_features_that_matter():
    learned = []
    for seed in range(5):  # one sample may be explained by chance; their median not
        X = np.random.default_rng(seed).normal(size=(120, 6))
        is_outside = np.hypot(X[:, 1], X[:, 4]) > 1.2
        learned.append(ArdMetric().fit(X, is_outside).scales_)
    scales = np.median(learned, axis=0)
    assert scales[[1, 4]].min() > 3.0 * scales[[0, 2, 3, 5]].max()


def test_a_tight_prior_keeps_all_scales_alike():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_allclose(ArdMetric(spread=1e-3).fit(X, y).scales_, 1.0, atol=0.01)


def test_best_length_is_the_best_of_a_dense_search():
    X, y = load_iris(return_X_y=True)
    points, labels = standardize(X[::2]).points, y[::2]
    objective = ScaleObjective(ScaleProblem.from_points(points, labels, 1.0))
    length, beta = objective.best_length(np.zeros(5), 0.0)
    is_class = (labels[:, None] == np.arange(3)).astype(float)
    squared = squared_distances(points, np.zeros(4))
    best = field_gradient(squared / length**2, is_class, beta)[0]
    around = [
        field_gradient(squared / s**2, is_class, b)[0]
        for s in np.geomspace(0.05, 5.0, 30)
        for b in np.geomspace(0.5, 40.0, 30)
    ]
    # The grid of lengths is coarse, and a length is weighed by the mass of its betas.
    assert best > max(around) - 3.0


def test_weights_of_far_points_are_zero_and_not_denormal():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    points = rng.normal(size=(60, 3)) + np.linspace(0.0, 40.0, 60)[:, None]
    objective = ScaleObjective(ScaleProblem.from_points(points, labels, 1.0))
    objective(np.zeros(objective.n_parameters), 0.0)
    slopes = np.abs(objective._weights)
    assert (slopes == 0.0).mean() > 0.5
    # Arithmetic with denormal numbers takes the processor a hundred times as long.
    assert (slopes[slopes > 0.0] > np.finfo(np.float32).tiny).all()


def test_discriminant_axes_are_orthonormal_and_hold_the_class_means(crabs):
    X, y = crabs
    points = standardize(X).points
    axes, independence = discriminant_axes(points, y)
    assert (independence[:3] > 0.99).all()
    assert (independence[3:] == 0.0).all()
    np.testing.assert_allclose(axes @ axes.T, np.eye(5), atol=1e-12)
    rest = class_means(points @ axes.T, y)[:, 3:]
    np.testing.assert_allclose(rest, 0.0, atol=1e-10)


def test_discriminant_metric_shrinks_axes_that_tell_nothing():
    rng = np.random.default_rng(8)
    labels = np.arange(90) % 3
    X = rng.normal(size=(90, 12))
    X[:, 0] += 4.0 * (labels == 1)
    X[:, 1] += 4.0 * (labels == 2)
    metric = DiscriminantMetric().fit(X, labels)
    assert metric.n_discriminant_ == 2
    assert metric.scales_[:2].min() > 3.0 * np.median(metric.scales_[2:])


def test_learned_metrics_separate_what_euclidean_distances_do_not():
    for X, y in (load_crabs(return_X_y=True), load_wine(return_X_y=True)):
        train, test = stratified_split(y, 0.25, random_state=0)
        errors = {
            name: _one_nearest_error(metric().fit(X[train], y[train]), X, y, train, test)
            for name, metric in LEARNED_METRICS.items()
        }
        plain = _one_nearest_error(None, X, y, train, test)
        assert min(errors["within"], errors["discriminant"]) <= plain
        assert errors["discriminant"] < 0.1


def _one_nearest_error(metric, X, y, train, test):
    points = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    if metric is not None:
        points = metric.transform(X)
    distances = ((points[test][:, None] - points[train]) ** 2).sum(axis=2)
    return np.mean(y[train][distances.argmin(axis=1)] != y[test])


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: type(m).__name__)
def test_units_of_the_features_do_not_matter(metric, crabs):
    X, y = crabs
    X, y = X[::4], y[::4]
    units = 2.0 ** np.array([0, 14, -14, 3, 5])  # powers of two: without rounding
    plain, scaled = clone(metric).fit(X, y), clone(metric).fit(X * units, y)
    np.testing.assert_array_equal(scaled.transform(X * units), plain.transform(X))


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((6, 3)), [0, 0, 0, 1, 1, 1]),
        (np.c_[np.arange(6.0), np.full(6, 0.1)], [0, 1, 0, 1, 0, 1]),
        (np.arange(8.0)[:, None], ["a", "a", "a", "a", "b", "b", "b", "c"]),
        (np.repeat(np.eye(3), 2, axis=0), [0, 0, 1, 1, 2, 2]),
        (np.arange(6.0).reshape(2, 3), [0, 1]),
        (np.random.default_rng(0).normal(size=(6, 2)), [0, 0, 0, 0, 0, 0]),
        (np.random.default_rng(0).normal(size=(5, 2)), [0, 1, 2, 3, 3]),
    ],
    ids=["identical", "constant", "singleton", "duplicates", "two points", "one class", "few"],
)
def test_awkward_points_give_finite_distances(metric, X, y):
    assert np.isfinite(clone(metric).fit(X, y).transform(X + 1.0)).all()


def test_points_that_agree_within_their_classes_are_not_whitened():
    points = standardize(np.repeat(np.eye(3), 2, axis=0)).points
    whitening = whiten_within(points, np.repeat([0, 1, 2], 2))
    assert whitening.variance_kept == pytest.approx(1.0)
    product = whitening.components.T @ whitening.components  # a multiple of the identity
    np.testing.assert_allclose(product @ points.T, product[0, 0] * 1.5 * points.T, rtol=1e-6)


def test_many_points_are_learned_from_by_some_of_them(monkeypatch):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(700, 3))
    labels = (X[:, 0] > 0).astype(int)
    monkeypatch.setattr(relevance, "_MAX_POINTS", 100)
    metric = ArdMetric().fit(X, labels)
    assert metric.scales_.argmax() == 0
    assert metric.log_pseudolikelihood_ > -100.0 * np.log(2.0)  # better than guessing 100 labels
