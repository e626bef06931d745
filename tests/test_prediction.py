import subprocess
import sys

import numpy as np
import pytest
from plain import all_distances, new_point_support, predictor_of
from plain_dense import new_point_support as dense_support
from scipy import stats
from scipy.special import softmax

from nearfield._vector import exp_of
from nearfield.distances import distance_matrix, euclidean_distances_to
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.field.enumeration import label_distribution
from nearfield.inference import Posterior
from nearfield.prediction import PosteriorNodes, Predictor, map_chunks
from nearfield.prediction._quadrature import gauss_nodes, lagrange_basis

MODELS = ("gaussian", "exponential", "radius", "k", "directed k")
SCALES = {
    "gaussian": (1e-9, 0.05, 0.4, 1.0, 2.5, 1e6),
    "exponential": (1e-9, 0.1, 0.7, 3.0, 40.0, 1e9),
    "radius": (1e-9, 0.5, 1.0, 2.0, 3.7, 1e6),
    "k": (1, 2, 3, 7, 19, 23),
}
ALPHA = (0.3, -0.2, 0.0)


def family_of(model, distances, external_field=None, n_classes=3):
    if model.endswith("k"):
        return NeighborFamily.from_distances(
            distances, n_classes, is_directed=model != "k", external_field=external_field
        )
    return DistanceFamily(distances, model, n_classes, external_field)


def posterior_of(model, betas, scales, weights=None):
    weights = np.full(len(betas), 1.0 / len(betas)) if weights is None else weights
    return Posterior.from_nodes(betas, scales, weights, "k" if model.endswith("k") else "sigma")


def points_on_a_lattice(n_points, seed=0):
    """Points with many equal distances, and some points twice."""
    return np.random.default_rng(seed).integers(0, 4, size=(n_points, 2)).astype(float)


def three_classes(n_points, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features))
    labels = (points[:, 0] + 0.5 * rng.normal(size=n_points) > 0.0).astype(int)
    return points, labels + (points[:, 2] > 1.0)


def draws_of(model, n_points, n_draws, width, seed=0):
    """Correlated draws of (beta, scale): of a realistic width, or far wider than that."""
    rng = np.random.default_rng(seed)
    sd_beta, sd_log_scale = {"realistic": (0.6, 0.12), "wide": (4.0, 0.8)}[width]
    first, second = rng.normal(size=(2, n_draws))
    second = 0.6 * first + 0.8 * second
    betas = {"realistic": 3.0, "wide": 8.0}[width] + sd_beta * first
    if model.endswith("k"):
        scales = np.round(0.08 * n_points * np.exp(2.0 * sd_log_scale * second))
        return betas, np.clip(scales, 1, n_points // 2)
    centre = {"gaussian": 0.4, "exponential": 3.0, "radius": 0.9}[model]
    return betas, centre * np.exp(sd_log_scale * second)


def support_of(family, labels, distances, scale, predictive):
    if not family.has_graph:
        return dense_support(family, labels, distances, scale, predictive)
    is_joint = predictive == "joint" and family.has_joint
    return new_point_support(
        all_distances(family),
        labels,
        distances,
        "uniform",
        scale,
        int(scale),
        family.n_classes,
        is_joint=is_joint,
    )


def plain_average(predictor, distances):
    """Average over every draw, in NumPy."""
    posterior, family = predictor.posterior, predictor.family
    betas, weights = posterior.beta.ravel(), posterior.weight.ravel()
    scales, index = np.unique(posterior.scale, return_inverse=True)
    alpha = 0.0 if family.external_field is None else np.asarray(family.external_field)
    total = np.zeros((len(distances), family.n_classes))
    for number, scale in enumerate(scales):
        support = support_of(family, predictor.labels, distances, scale, predictor.predictive)
        here = np.flatnonzero(index.ravel() == number)
        logits = alpha + betas[here][:, None, None] * support
        total += np.einsum("r,rmg->mg", weights[here], softmax(logits, axis=2))
    return total


@pytest.mark.parametrize("external_field", [None, ALPHA])
@pytest.mark.parametrize("model", ["gaussian", "exponential", "radius", "k"])
def test_joint_prediction_is_the_conditional_of_the_field_of_one_more_point(model, external_field):
    points = points_on_a_lattice(25)
    distances = distance_matrix(points)
    labels = np.random.default_rng(1).integers(3, size=25)
    family = family_of(model, distances[:24, :24], external_field)
    for scale in SCALES[model]:
        for beta in (-2.0, 0.7, 9.0):
            predictor = predictor_of(posterior_of(model, [beta], [scale]), family, labels[:24])
            expected = family_of(model, distances, external_field).at(scale)
            np.testing.assert_allclose(
                predictor.probabilities(distances[24:, :24])[0],
                expected.conditional(labels, 24, beta),
                rtol=0,
                atol=1e-12,
            )


@pytest.mark.parametrize("predictive", ["joint", "printed"])
@pytest.mark.parametrize("model", MODELS)
def test_the_compiled_average_equals_the_plain_one(model, predictive):
    points = points_on_a_lattice(40, seed=2)
    new = np.concatenate([points[:4], points_on_a_lattice(10, seed=3) + 0.25, [[90.0, 2.0]]])
    labels = np.random.default_rng(4).integers(3, size=40)
    family = family_of(model, distance_matrix(points), ALPHA)
    scales = SCALES["k" if model.endswith("k") else model]
    betas = np.linspace(-1.0, 6.0, len(scales))
    weights = np.arange(1.0, len(scales) + 1.0) / np.arange(1, len(scales) + 1).sum()
    posterior = posterior_of(model, betas, scales, weights)
    predictor = predictor_of(posterior, family, labels, predictive)
    distances = distance_matrix(new, points)
    probabilities = predictor.probabilities(distances)
    np.testing.assert_allclose(
        probabilities, plain_average(predictor, distances), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)


def test_the_printed_and_the_directed_model_listen_one_way():
    points, labels = three_classes(30)
    distances = distance_matrix(points)
    new = distances[:, 5:6].T + 0.1
    by_model = {}
    for model in ("k", "directed k"):
        for predictive in ("joint", "printed"):
            predictor = predictor_of(
                posterior_of(model, [2.0], [4.0]), family_of(model, distances), labels, predictive
            )
            by_model[model, predictive] = predictor.probabilities(new)
    np.testing.assert_array_equal(by_model["directed k", "joint"], by_model["k", "printed"])
    assert np.abs(by_model["k", "joint"] - by_model["k", "printed"]).max() > 0.01


def test_a_class_without_training_points_gets_its_share():
    points, labels = three_classes(30)
    distances = distance_matrix(points)
    for model in MODELS:
        family = family_of(model, distances, n_classes=4)
        predictor = predictor_of(posterior_of(model, [2.0], [2.0]), family, labels)
        new = distance_matrix(points[:3] + 0.1, points)
        np.testing.assert_allclose(
            predictor.probabilities(new), plain_average(predictor, new), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("width", ["realistic", "wide"])
@pytest.mark.parametrize("model", ["gaussian", "exponential", "radius", "k"])
def test_ten_thousand_draws_are_averaged_as_if_one_by_one(model, width):
    points, labels = three_classes(60)
    new = np.random.default_rng(5).normal(size=(30, 3))
    new[:3] *= 4.0
    betas, scales = draws_of(model, 60, 10_000, width)
    posterior = Posterior.from_draws(
        betas.reshape(4, -1), scales.reshape(4, -1), "k" if model == "k" else "sigma"
    )
    predictor = predictor_of(posterior, family_of(model, distance_matrix(points)), labels)
    distances = distance_matrix(new, points)
    error = np.abs(predictor.probabilities(distances) - plain_average(predictor, distances))
    assert error.max() < 1e-3
    assert len(predictor.nodes.scales) <= (96 if predictor.family.is_smooth else 2_048)


@pytest.mark.parametrize("model", ["gaussian", "exponential"])
def test_far_draws_and_points_in_the_middle_are_averaged_as_if_one_by_one(model):
    rng = np.random.default_rng(104)
    points = rng.normal(size=(120, 6)) * np.linspace(1.0, 2.0, 6)
    labels = np.digitize(points[:, 0], [-0.7, 0.7])
    new = rng.normal(size=(40, 6)) * np.repeat([0.2, 1.0, 1.6, 5.0], 10)[:, None]
    betas, scales = draws_of(model, 120, 1_000, "wide", seed=4)
    scales[:2] = scales.max() * np.array([3.0, 3.1])  # each is a thousandth of the average
    predictor = predictor_of(
        posterior_of(model, betas, scales), family_of(model, distance_matrix(points)), labels
    )
    distances = distance_matrix(new, points)
    error = np.abs(predictor.probabilities(distances) - plain_average(predictor, distances))
    assert error.max() < 1e-3


def tailed_classes(rng, n_points, n_features, n_classes):
    """Points with far outliers, and classes that overlap."""
    labels = rng.integers(n_classes, size=n_points)
    centers = 1.5 * rng.normal(size=(n_classes, n_features))
    return centers[labels] + rng.standard_t(3, size=(n_points, n_features)), labels


@pytest.mark.parametrize("width", ["realistic", "wide"])
@pytest.mark.parametrize(
    ("n_points", "n_features", "n_classes", "correlation"),
    [
        (60, 2, 2, -0.5),
        (100, 5, 5, 0.0),
        (150, 10, 3, 0.6),
        (240, 2, 2, 0.8),
    ],
)
def test_steps_of_the_radius_are_averaged_as_if_one_by_one(
    n_points, n_features, n_classes, correlation, width
):
    rng = np.random.default_rng(n_points)
    everything, labels = tailed_classes(rng, n_points + 20, n_features, n_classes)
    points, new = everything[:n_points], everything[n_points:]
    distances = distance_matrix(points)
    sd_beta, sd_log_scale = {"realistic": (0.6, 0.12), "wide": (4.0, 0.8)}[width]
    first, second = rng.normal(size=(2, 2_000))
    second = correlation * first + np.sqrt(1.0 - correlation**2) * second
    betas = {"realistic": 3.0, "wide": 8.0}[width] + sd_beta * first
    # Around a radius that reaches one point in twenty.
    sigmas = np.quantile(distances, 0.05 + 1.0 / n_points) * np.exp(sd_log_scale * second)
    family = family_of("radius", distances, n_classes=n_classes)
    predictor = predictor_of(posterior_of("radius", betas, sigmas), family, labels[:n_points])
    to_training = distance_matrix(new, points)
    error = predictor.probabilities(to_training) - plain_average(predictor, to_training)
    assert np.abs(error).max() < 1e-3


@pytest.mark.parametrize("predictive", ["joint", "printed"])
def test_draws_of_the_radius_that_are_all_but_equal_are_averaged(predictive):
    points, labels = three_classes(40)
    sigmas = 1.0 + 1e-9 * np.random.default_rng(1).random(300)
    betas = np.linspace(1.0, 2.0, 300)
    family = family_of("radius", distance_matrix(points))
    predictor = predictor_of(posterior_of("radius", betas, sigmas), family, labels, predictive)
    new = distance_matrix(points[:5] + 0.1, points)
    error = predictor.probabilities(new) - plain_average(predictor, new)
    assert np.abs(error).max() < 1e-5


@pytest.mark.parametrize("model", ["k", "directed k"])
def test_neighbours_that_rounding_tells_apart_tie(model):
    points = points_on_a_lattice(30, seed=6)
    labels = np.random.default_rng(7).integers(3, size=30)
    exact = distance_matrix(points)
    new = distance_matrix(np.concatenate([points[:5], points[5:9] + 0.5]), points)
    rounding = np.random.default_rng(8).uniform(-1e-14, 1e-14, size=new.shape)
    for k in (1, 3, 8, 20):
        predictor = predictor_of(posterior_of(model, [2.0], [k]), family_of(model, exact), labels)
        expected = predictor.probabilities(new)
        rounded = new * (1.0 + rounding)
        np.testing.assert_allclose(predictor.probabilities(rounded), expected, atol=1e-12)
        np.testing.assert_allclose(plain_average(predictor, rounded), expected, atol=1e-12)


def test_rows_do_not_depend_on_each_other():
    points, labels = three_classes(50)
    distances = distance_matrix(np.random.default_rng(6).normal(size=(9, 3)), points)
    for model in MODELS:
        betas, scales = draws_of(model, 50, 500, "realistic")
        predictor = predictor_of(
            posterior_of(model, betas, scales),
            family_of(model, distance_matrix(points)),
            labels,
        )
        together = predictor.probabilities(distances)
        one_by_one = np.concatenate([predictor.probabilities(row[None]) for row in distances])
        np.testing.assert_array_equal(together, one_by_one)


@pytest.mark.parametrize("model", MODELS)
def test_intervals_are_the_quantiles_over_the_posterior(model):
    points, labels = three_classes(50)
    betas, scales = draws_of(model, 50, 2_000, "realistic")
    posterior = posterior_of(model, betas, scales)
    family = family_of(model, distance_matrix(points))
    predictor = predictor_of(posterior, family, labels)
    distances = distance_matrix(np.random.default_rng(6).normal(size=(8, 3)), points)
    lower, upper = predictor.interval(distances, level=0.8)
    support = {s: support_of(family, labels, distances, s, "joint") for s in np.unique(scales)}
    at_draws = np.array(
        [softmax(beta * support[s], axis=1) for beta, s in zip(betas, scales, strict=True)]
    )
    # Of 512 nodes spread evenly, the share below a quantile is within a few of 0.1 and 0.9.
    tolerance = 4.0 * np.sqrt(0.1 * 0.9 / 512)
    assert (at_draws < lower - 1e-9).mean(axis=0).max() < 0.1 + tolerance
    assert (at_draws > upper + 1e-9).mean(axis=0).max() < 0.1 + tolerance
    # No wider than need be; that shares tie at few different k is why both sides are asked.
    assert (at_draws <= lower + 1e-9).mean(axis=0).min() > 0.1 - tolerance
    assert (at_draws >= upper - 1e-9).mean(axis=0).min() > 0.1 - tolerance
    assert (lower <= at_draws.mean(axis=0)).all()
    assert (at_draws.mean(axis=0) <= upper).all()
    wider = predictor.interval(distances, level=0.95)
    assert (wider[0] <= lower).all()
    assert (upper <= wider[1]).all()


def test_the_interval_of_a_known_parameter_is_a_point():
    points, labels = three_classes(20)
    family = family_of("gaussian", distance_matrix(points))
    predictor = predictor_of(posterior_of("gaussian", [2.0], [0.7]), family, labels)
    distances = distance_matrix(points[:2] + 0.3, points)
    for bound in predictor.interval(distances):
        np.testing.assert_allclose(bound, predictor.probabilities(distances), atol=1e-12)


def test_intervals_cover_the_truth_as_often_as_they_say():
    """Parameters from the prior, labels from the field, the exact posterior by enumeration."""
    rng = np.random.default_rng(11)
    points = rng.normal(size=(8, 2))
    family = family_of("gaussian", distance_matrix(points[:7]), n_classes=2)
    everything = family_of("gaussian", distance_matrix(points), n_classes=2)
    betas, sigmas = np.linspace(0.05, 2.95, 24), np.linspace(0.15, 1.45, 14)
    grid = np.array([(beta, sigma) for sigma in sigmas for beta in betas])
    labelings, _ = label_distribution(family.at(1.0), 0.0)
    codes = {tuple(labeling): number for number, labeling in enumerate(labelings)}
    likelihood = np.array([label_distribution(family.at(s), b)[1] for b, s in grid])
    to_training = distance_matrix(points)[7:, :7]
    n_runs, n_covered = 400, 0
    for _ in range(n_runs):
        true = rng.integers(len(grid))
        labels = labelings[rng.choice(len(labelings), p=likelihood[true])]
        weight = likelihood[:, codes[tuple(labels)]]
        posterior = posterior_of("gaussian", *grid.T, weight / weight.sum())
        lower, upper = predictor_of(posterior, family, labels).interval(to_training, level=0.8)
        beta, sigma = grid[true]
        padded = np.append(labels, 0)
        probability = everything.at(sigma).conditional(padded, 7, beta)[1]
        n_covered += lower[0, 1] - 1e-12 <= probability <= upper[0, 1] + 1e-12
    # The grid's ties can only widen an interval; between nodes it is as coarse as they are.
    assert stats.binomtest(n_covered, n_runs, 0.8).pvalue > 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_a_point_that_moves_away_scores_ever_higher(model):
    points, labels = three_classes(60)
    betas, scales = draws_of(model, 60, 300, "realistic")
    predictor = predictor_of(
        posterior_of(model, betas, scales), family_of(model, distance_matrix(points)), labels
    )
    rng = np.random.default_rng(3)
    for _ in range(8):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        # Beyond the farthest point in that direction all distances rise.
        start = (points @ direction).max()
        path = direction * (start + np.geomspace(0.01, 1e4, 40))[:, None]
        scores = predictor.outlier_score(distance_matrix(path, points))
        assert (np.diff(scores) > 0.0).all()
        assert scores[-1] > 10.0


@pytest.mark.parametrize("model", MODELS)
def test_points_like_the_training_points_score_about_zero(model):
    points, labels = three_classes(400)
    betas, scales = draws_of(model, 400, 300, "realistic")
    predictor = predictor_of(
        posterior_of(model, betas, scales), family_of(model, distance_matrix(points)), labels
    )
    scores = predictor.outlier_score(distance_matrix(three_classes(400, seed=8)[0], points))
    far = predictor.outlier_score(distance_matrix([[6.0, 6.0, 6.0]], points))
    assert abs(np.median(scores)) < 0.3
    assert far > np.quantile(scores, 0.99)


def test_scores_of_identical_training_points_are_finite():
    distances = np.zeros((5, 5))
    for model in MODELS:
        predictor = predictor_of(
            posterior_of(model, [1.0], [2.0]), family_of(model, distances), np.arange(5) % 3
        )
        scores = predictor.outlier_score(np.array([[0.0] * 5, [1.0] * 5]))
        assert np.isfinite(scores).all()
        assert scores[1] > scores[0]


@pytest.mark.parametrize(
    ("model", "scale", "limit"),
    [
        ("gaussian", 0.8, lambda heights: heights == heights.max()),
        ("exponential", 3.0, lambda heights: softmax(3.0 * heights)),
        ("radius", 10.0, lambda heights: np.full(len(heights), 1.0 / len(heights))),
        ("k", 5, lambda heights: (heights >= np.sort(heights)[-5]) / 5),
        ("directed k", 5, lambda heights: (heights >= np.sort(heights)[-5]) / 5),
    ],
)
def test_far_away_the_class_probabilities_tend_to_the_limit_that_is_documented(model, scale, limit):
    points, labels = three_classes(40)
    family = family_of(model, distance_matrix(points))
    predictor = predictor_of(posterior_of(model, [3.0], [scale]), family, labels)
    direction = np.array([0.6, 0.0, 0.8])
    expected = softmax(3.0 * limit(points @ direction) @ np.eye(3)[labels])
    far = distance_matrix([1e6 * direction], points)
    # A distance is 1e6 less the height, up to |x|^2 / 2e6.
    np.testing.assert_allclose(predictor.probabilities(far)[0], expected, atol=1e-4)


def test_far_away_only_points_with_none_within_their_radius_listen():
    points, labels = three_classes(40)
    points[0] = [0.0, 30.0, 0.0]
    family = family_of("radius", distance_matrix(points))
    predictor = predictor_of(posterior_of("radius", [30.0], [10.0]), family, labels)
    support = (np.bincount(labels) + np.eye(3)[labels[0]]) / 40
    far = distance_matrix([[1e6, 0.0, 0.0]], points)
    np.testing.assert_allclose(predictor.probabilities(far)[0], softmax(30.0 * support), atol=1e-6)


def test_gauss_nodes_integrate_polynomials_of_a_discrete_measure():
    rng = np.random.default_rng(0)
    values, weights = rng.gamma(2.0, size=300), rng.dirichlet(np.ones(300))
    nodes = gauss_nodes(values, weights, 6)
    rule = weights @ lagrange_basis(nodes, values)
    for degree in range(12):
        np.testing.assert_allclose(rule @ nodes**degree, weights @ values**degree, rtol=1e-9)
    assert len(gauss_nodes(np.array([1.0, 2.0, 1.0]), np.full(3, 1 / 3), 6)) == 2


def test_compressed_posteriors_keep_the_moments_of_few_cells():
    rng = np.random.default_rng(1)
    betas, log_scales = rng.normal(3.0, 0.3, 500), 0.02 * rng.normal(size=500)
    posterior = posterior_of("gaussian", betas, np.exp(log_scales))
    nodes = PosteriorNodes.from_posterior(posterior, is_smooth=True)
    assert len(nodes.scales) == 3
    average = nodes.average
    at_nodes = np.log(nodes.scales)[average.places[:, 0]]
    for power_beta in range(6):
        for power_scale in range(3):
            expected = np.mean(betas**power_beta * log_scales**power_scale)
            moment = average.weights @ (average.betas**power_beta * at_nodes**power_scale)
            np.testing.assert_allclose(moment, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(nodes.mean_betas.sum(), betas.mean())


def test_few_nodes_are_kept_as_they_are():
    betas, scales = np.linspace(1.0, 9.0, 32), np.linspace(0.50, 0.52, 32)
    nodes = PosteriorNodes.from_posterior(posterior_of("radius", betas, scales), is_smooth=False)
    np.testing.assert_array_equal(nodes.scales, scales)
    np.testing.assert_array_equal(nodes.average.betas, betas)


def test_a_sample_of_the_posterior_is_interpolated_between_its_scales():
    rng = np.random.default_rng(2)
    betas, log_scales = np.ones(5_000), 0.3 * rng.normal(size=5_000)
    posterior = posterior_of("gaussian", betas, np.exp(log_scales))
    nodes = PosteriorNodes.from_posterior(posterior, is_smooth=True)
    places, coefficients, _, weights = nodes.sample
    between = (coefficients * np.tanh(np.log(nodes.scales))[places]).sum(axis=1)
    levels = (np.arange(512) + 0.5) / 512
    expected = np.tanh(np.quantile(log_scales, levels, method="inverted_cdf"))
    np.testing.assert_allclose(between, expected, atol=1e-3)
    np.testing.assert_allclose(weights.sum(), 1.0)


def test_lagrange_polynomials_are_one_at_their_node():
    nodes = np.array([0.0, 0.5, 2.0])
    np.testing.assert_array_equal(lagrange_basis(nodes, nodes), np.eye(3))
    basis = lagrange_basis(nodes, np.array([0.3, 1.7]))
    np.testing.assert_allclose(basis @ nodes**2, np.array([0.3, 1.7]) ** 2, rtol=1e-13)


def test_the_vector_exp_is_right_to_fourteen_digits():
    values = np.concatenate([np.linspace(-700.0, 0.0, 7_001), [1e-9, 3.0, 700.0, -1e-300]])
    computed = np.array([exp_of(value) for value in values])
    np.testing.assert_allclose(computed, np.exp(values), rtol=3e-14)
    assert 0.0 <= exp_of(-np.inf) < 1e-300


def test_fast_euclidean_distances_keep_their_digits():
    rng = np.random.default_rng(2)
    for n_features in (1, 2, 5):
        points = 1e6 + rng.normal(size=(30, n_features))
        new = np.concatenate([points[:3], points[3:6] + 1e-7, rng.normal(size=(4, n_features))])
        distances = euclidean_distances_to(new, points)
        np.testing.assert_allclose(distances, distance_matrix(new, points), rtol=1e-12)
        assert (distances[[0, 1, 2], [0, 1, 2]] == 0.0).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_chunks_come_back_in_order(n_jobs):
    X = np.arange(23.0)[:, None]
    np.testing.assert_array_equal(map_chunks(lambda rows: 2 * rows, X, 5, n_jobs), 2 * X)
    lower, upper = map_chunks(lambda rows: (rows - 1, rows + 1), X, 4, n_jobs)
    np.testing.assert_array_equal(lower, X - 1)
    np.testing.assert_array_equal(upper, X + 1)


def test_what_cannot_be_predicted_is_refused():
    points, labels = three_classes(10)
    family = family_of("gaussian", distance_matrix(points))
    posterior = posterior_of("gaussian", [1.0], [1.0])
    with pytest.raises(ValueError, match="predictive among"):
        Predictor(posterior, family, labels, "both")
    with pytest.raises(ValueError, match="posterior of sigma"):
        Predictor(posterior_of("k", [1.0], [1.0]), family, labels)
    with pytest.raises(ValueError, match="labels"):
        Predictor(posterior, family, labels[:-1])
    predictor = Predictor(posterior, family, labels)
    with pytest.raises(ValueError, match=r"shape \(m, 10\)"):
        predictor.probabilities(np.ones((2, 9)))
    with pytest.raises(ValueError, match="0 < level < 1"):
        predictor.interval(np.ones((2, 10)), level=1.0)
    with pytest.raises(ValueError, match="chunk_size"):
        map_chunks(lambda rows: rows, points, 0)


_MEMORY_RUN = """
import resource

import numpy as np
from nearfield.distances import distance_matrix, euclidean_distances_to
from nearfield.field import DistanceFamily
from nearfield.inference import Posterior
from nearfield.prediction import Predictor, map_chunks

rng = np.random.default_rng(0)
points, new = rng.normal(size=(5_000, 5)), rng.normal(size=(1_000_000, 5))
family = DistanceFamily(distance_matrix(points), "gaussian", 2)
betas, sigmas = rng.normal(3.0, 0.1, (4, 500)), rng.normal(0.5, 0.01, (4, 500))
posterior = Posterior.from_draws(betas, sigmas, "sigma")
predictor = Predictor(posterior, family, (points[:, 0] > 0).astype(int))
predict = lambda rows: predictor.probabilities(euclidean_distances_to(rows, points))
probabilities = map_chunks(predict, new, predictor.chunk_size, n_jobs=2)
assert probabilities.shape == (1_000_000, 2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.long
def test_a_million_points_fit_in_two_gigabytes():
    run = subprocess.run(
        [sys.executable, "-c", _MEMORY_RUN], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 2e9


@pytest.mark.parametrize("beta", [700.0, 3_000.0, 1e6])
def test_a_large_beta_gives_the_class_of_largest_support(beta):
    points, labels = three_classes(40)
    new = np.random.default_rng(5).normal(size=(30, 3))
    distances, to_new = distance_matrix(points), distance_matrix(new, points)
    family = family_of("gaussian", distances)
    predictor = predictor_of(posterior_of("gaussian", [beta], [0.7]), family, labels)
    expected = softmax(beta * dense_support(family, labels, to_new, 0.7, "joint"), axis=1)
    np.testing.assert_allclose(predictor.probabilities(to_new), expected, atol=1e-7)
