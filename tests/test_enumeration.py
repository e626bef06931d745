import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.field.enumeration import (
    label_distribution,
    log_partition,
    mean_agreement,
    uniform_log_partition,
    uniform_mean_agreement,
)

ALPHAS = {2: [0.4, -0.2], 3: [0.5, 0.0, -0.9]}


def plain_log_potentials(field, beta):
    labelings = itertools.product(range(field.n_classes), repeat=field.n_points)
    return np.array([field.log_potential(np.array(labels), beta) for labels in labelings])


@pytest.mark.parametrize("beta", [-2.0, 0.0, 1.3, 9.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_external_field", [False, True])
def test_log_partition_is_the_sum_over_all_labelings(
    random_field, n_classes, beta, has_external_field
):
    alpha = ALPHAS[n_classes] if has_external_field else None
    field = random_field(5, n_classes, external_field=alpha)
    expected = logsumexp(plain_log_potentials(field, beta))
    assert log_partition(field, beta) == pytest.approx(expected, rel=1e-12)


def test_label_distribution_lists_every_labeling_with_its_probability(random_field):
    field = random_field(4, 3, external_field=ALPHAS[3])
    labelings, probabilities = label_distribution(field, 1.7)
    np.testing.assert_array_equal(labelings, list(itertools.product(range(3), repeat=4)))
    log_potentials = plain_log_potentials(field, 1.7)
    np.testing.assert_allclose(probabilities, np.exp(log_potentials - logsumexp(log_potentials)))


def test_log_partition_without_interaction_is_known(random_field):
    assert log_partition(random_field(6, 4), 0.0) == pytest.approx(6 * np.log(4))
    field = random_field(6, 3, external_field=ALPHAS[3])
    assert log_partition(field, 0.0) == pytest.approx(6 * logsumexp(ALPHAS[3]))


@pytest.mark.parametrize("beta", [-1.0, 0.4, 3.0])
def test_mean_agreement_is_the_slope_of_log_partition(random_field, beta):
    field = random_field(7, 3, external_field=ALPHAS[3])
    step = 1e-5
    slope = np.diff(log_partition(field, [beta - step, beta + step])) / (2 * step)
    assert mean_agreement(field, beta) == pytest.approx(slope[0], rel=1e-8)


def test_betas_come_back_in_their_shape(random_field):
    field = random_field(4, 2)
    betas = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert log_partition(field, betas).shape == (2, 2)
    assert mean_agreement(field, betas)[1, 1] == mean_agreement(field, 3.0)
    assert isinstance(log_partition(field, 1.0), float)


def test_sparse_fields_are_enumerated_too(random_field):
    field = random_field(6, 3)
    assert log_partition(field.to_sparse(), 1.1) == log_partition(field, 1.1)


@pytest.mark.parametrize(("n_points", "n_classes"), [(30, 2), (12, 4), (500, 3)])
def test_a_field_too_large_to_enumerate_is_refused(n_points, n_classes):
    field = LabelField.from_weights(1.0 - np.eye(n_points), n_classes)
    with pytest.raises(ValueError, match=rf"got {n_classes} \*\* {n_points} labelings, too many"):
        log_partition(field, 1.0)


def test_a_million_labelings_are_not_too_many(random_field):
    assert log_partition(random_field(10, 4), 0.0) == pytest.approx(10 * np.log(4))


def uniform_field(n_points, n_classes, alpha=None):
    weights = (1.0 - np.eye(n_points)) / (n_points - 1)
    return LabelField.from_weights(weights, n_classes, alpha)


@pytest.mark.parametrize("beta", [-1.5, 0.0, 0.8, 4.0])
@pytest.mark.parametrize(("n_points", "n_classes"), [(2, 2), (9, 2), (7, 3)])
@pytest.mark.parametrize("has_external_field", [False, True])
def test_uniform_field_in_closed_form_equals_enumeration(
    n_points, n_classes, beta, has_external_field
):
    alpha = ALPHAS[n_classes] if has_external_field else None
    field = uniform_field(n_points, n_classes, alpha)
    closed = uniform_log_partition(n_points, n_classes, beta, alpha)
    assert closed == pytest.approx(log_partition(field, beta), rel=1e-12)
    closed_mean = uniform_mean_agreement(n_points, n_classes, beta, alpha)
    assert closed_mean == pytest.approx(mean_agreement(field, beta), rel=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 20])
def test_uniform_field_of_hundreds_of_points_has_the_right_limits(n_classes):
    n_points = 300
    free, frozen = uniform_log_partition(n_points, n_classes, [0.0, 50.0])
    assert free == pytest.approx(n_points * np.log(n_classes), rel=1e-12)
    # Frozen: one class has all points, S = n; a single dissenter costs 2 beta = 100.
    assert frozen == pytest.approx(np.log(n_classes) + 50.0 * n_points, rel=1e-12)
    assert uniform_mean_agreement(n_points, n_classes, 50.0) == pytest.approx(n_points)


def test_uniform_field_needs_two_points_and_a_class():
    with pytest.raises(ValueError, match="n_points >= 2; got n_points=1"):
        uniform_log_partition(1, 3, 1.0)
    with pytest.raises(ValueError, match=r"n_classes >= 1; got n_classes=2\.5"):
        uniform_log_partition(5, 2.5, 1.0)


def test_external_field_of_the_uniform_field_needs_one_value_a_class():
    with pytest.raises(ValueError, match="external field of 3 finite values"):
        uniform_log_partition(5, 3, 0.0, [0.0, 0.0])


def test_betas_that_are_not_finite_are_refused(random_field):
    with pytest.raises(ValueError, match="finite betas"):
        log_partition(random_field(4, 2), [0.0, np.nan])
    with pytest.raises(ValueError, match="finite real number beta"):
        label_distribution(random_field(4, 2), [1.0, 2.0])
