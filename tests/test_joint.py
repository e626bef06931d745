import numpy as np
import pytest
from scipy import stats

from nearfield import DistanceNeighborsClassifier
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, LabelField, NeighborFamily
from nearfield.field.enumeration import label_distribution
from nearfield.inference import Posterior, Priors
from nearfield.prediction import draw_joint_labels
from nearfield.sampling import draw_free_labels

N_POINTS, N_KNOWN = 7, 4


def tiny_family(model, n_classes, external_field=None):
    distances = distance_matrix(np.random.default_rng(3).normal(size=(N_POINTS, 2)))
    if model == "k":
        return NeighborFamily.from_distances(distances, n_classes, external_field=external_field)
    return DistanceFamily(distances, model, n_classes, external_field)


def known_labels(n_classes):
    return np.arange(N_KNOWN) % n_classes


def tiny_posterior(model):
    scales = [1.0, 2.0, 4.0] if model == "k" else [0.4, 0.8, 2.0]
    return Posterior.from_nodes(
        [0.4, 1.5, 3.0], scales, [0.3, 0.5, 0.2], "k" if model == "k" else "sigma"
    )


def exact_joint(family, known, betas, scales, weights):
    """Sum, over parameters, the probability of all labels that agree with the known ones."""
    total = 0.0
    for beta, scale, weight in zip(betas, scales, weights, strict=True):
        labelings, probabilities = label_distribution(family.at(scale), beta)
        agrees = (labelings[:, : len(known)] == known).all(axis=1)
        total = total + weight(probabilities[agrees]) * probabilities[agrees]
    return total / total.sum()


@pytest.mark.parametrize("external_field", [None, (0.5, -0.5, 0.0)])
@pytest.mark.parametrize("model", ["gaussian", "exponential", "radius", "k"])
def test_joint_labels_follow_the_field_of_all_points(model, external_field, fit_p_value):
    family, known = tiny_family(model, 3, external_field), known_labels(3)
    posterior = tiny_posterior(model)
    # The parameters keep their posterior given the known labels: each conditional is normalized.
    given = [lambda p, w=w: w / p.sum() for w in posterior.weight]
    expected = exact_joint(family, known, posterior.beta, posterior.scale, given)
    draws = draw_joint_labels(np.random.default_rng(1), posterior, family, known, 6_000)
    assert draws.shape == (6_000, N_POINTS - N_KNOWN)
    assert fit_p_value(draws, 3, expected) > 1e-3


def test_new_points_inform_each_other():
    """The check can fail: labels drawn one by one do not follow the joint distribution."""
    family, known = tiny_family("gaussian", 2), known_labels(2)
    posterior = Posterior.from_nodes([3.0], [0.8], [1.0], "sigma")
    draws = draw_joint_labels(np.random.default_rng(2), posterior, family, known, 4_000)
    agrees = draws[:, :, None] == draws[:, None, :]
    share = draws.mean(axis=0)
    alone = share[:, None] * share + (1 - share[:, None]) * (1 - share)
    excess = agrees.mean(axis=0) - alone
    standard_error = np.sqrt(0.25 / 4_000)
    assert excess[np.triu_indices(N_POINTS - N_KNOWN, 1)].max() > 10.0 * standard_error


@pytest.mark.parametrize("model", ["gaussian", "k"])
def test_with_parameters_updated_the_labels_follow_the_whole_posterior(model, fit_p_value):
    family, known = tiny_family(model, 2), known_labels(2)
    beta = stats.norm(0.5, 1.0)
    if model == "k":
        priors = Priors(beta, stats.randint(1, N_POINTS))
        scales = np.arange(1.0, N_POINTS)
    else:
        priors = Priors(beta, stats.uniform(0.1, 2.4))
        scales = priors.scale.ppf((np.arange(40) + 0.5) / 40)
    betas = beta.ppf((np.arange(40) + 0.5) / 40)  # of equal prior mass
    grid_betas, grid_scales = np.tile(betas, len(scales)), np.repeat(scales, len(betas))
    everything = [lambda p: 1.0] * len(grid_betas)
    expected = exact_joint(family, known, grid_betas, grid_scales, everything)
    draws = draw_joint_labels(
        np.random.default_rng(4),
        tiny_posterior(model),
        family,
        known,
        6_000,
        n_sweeps=2,
        update_parameters=True,
        priors=priors,
        n_auxiliary_sweeps=20,
    )
    assert fit_p_value(draws[::4], 2, expected) > 1e-3  # every fourth: beta moves slowly


def test_the_classifier_updates_its_parameters_with_the_labels(fit_p_value):
    family, known = tiny_family("gaussian", 2), known_labels(2)
    beta, sigma = stats.norm(0.5, 1.0), stats.uniform(0.1, 2.4)
    model = DistanceNeighborsClassifier(
        metric="precomputed",
        inference="pseudolikelihood",
        prior_beta=beta,
        prior_sigma=sigma,
        random_state=0,
    ).fit(family.distances[:N_KNOWN, :N_KNOWN], np.array(["no", "yes"])[known])
    draws = model.predict_joint(family.distances[N_KNOWN:], 4_000, update_parameters=True)
    levels = (np.arange(40) + 0.5) / 40
    grid_betas, grid_sigmas = np.tile(beta.ppf(levels), 40), np.repeat(sigma.ppf(levels), 40)
    everything = [lambda p: 1.0] * len(grid_betas)
    expected = exact_joint(family, known, grid_betas, grid_sigmas, everything)
    assert fit_p_value(draws[::4] == "yes", 2, expected) > 1e-3
    # It can fail: with the parameters left as they were the labels have other probabilities.
    left = model.predict_joint(family.distances[N_KNOWN:], 4_000)
    assert fit_p_value(left == "yes", 2, expected) < 1e-3


def test_repulsive_fields_are_drawn_by_gibbs_alone(fit_p_value):
    family, known = tiny_family("gaussian", 2), known_labels(2)
    posterior = Posterior.from_nodes([-2.0], [0.8], [1.0], "sigma")
    expected = exact_joint(family, known, [-2.0], [0.8], [lambda p: 1.0])
    draws = draw_joint_labels(np.random.default_rng(5), posterior, family, known, 4_000)
    assert fit_p_value(draws, 2, expected) > 1e-3


def test_free_labels_start_anywhere_and_leave_the_start_alone():
    rng = np.random.default_rng(0)
    field = LabelField(np.zeros((4, 4)), 2, np.array([0.0, 50.0]))
    labels = np.zeros(3, dtype=np.int64)
    drawn = draw_free_labels(rng, field, 1.0, np.zeros(1, dtype=np.int64), labels, 1)
    assert drawn.tolist() == [1, 1, 1]
    assert labels.tolist() == [0, 0, 0]


def test_one_seed_gives_one_answer():
    family, known = tiny_family("gaussian", 2), known_labels(2)
    for update in (False, True):
        first, second = (
            draw_joint_labels(
                np.random.default_rng(9),
                tiny_posterior("gaussian"),
                family,
                known,
                20,
                update_parameters=update,
                n_burn=3,
                n_auxiliary_sweeps=5,
            )
            for _ in range(2)
        )
        np.testing.assert_array_equal(first, second)


def test_what_cannot_be_drawn_is_refused():
    rng = np.random.default_rng(0)
    family, posterior = tiny_family("gaussian", 2), tiny_posterior("gaussian")
    with pytest.raises(ValueError, match="Expected labels of some of the 7 points"):
        draw_joint_labels(rng, posterior, family, np.zeros(7, dtype=int), 5)
    with pytest.raises(ValueError, match="whole-number labels"):
        draw_joint_labels(rng, posterior, family, [0.5, 1.0], 5)
    with pytest.raises(TypeError, match="rng"):
        draw_joint_labels("seed", posterior, family, [0, 1], 5)
    with pytest.raises(ValueError, match="n_draws"):
        draw_joint_labels(rng, posterior, family, [0, 1], 0)
    with pytest.raises(ValueError, match="priors with a density"):
        draw_joint_labels(
            rng,
            posterior,
            family,
            [0, 1],
            5,
            update_parameters=True,
            priors=Priors(stats.uniform(90.0, 1.0), stats.uniform(0.0, 9.0)),
        )
    directed = NeighborFamily.from_distances(family.distances, 2, is_directed=True)
    with pytest.raises(ValueError, match="no joint"):
        draw_joint_labels(rng, tiny_posterior("k"), directed, [0, 1], 5)
