import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from nearfield.field import LabelField

EXTERNAL_FIELDS = [None, [0.3, -0.7, 0.1]]


@pytest.fixture
def weights(rng):
    weights = rng.random((7, 7))
    np.fill_diagonal(weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def labels():
    return np.array([0, 2, 1, 1, 0, 2, 2])


def plain_agreement(weights, labels):
    n = len(labels)
    return sum(
        weights[i, j] for i in range(n) for j in range(n) if i != j and labels[i] == labels[j]
    )


def test_coupling_is_the_sum_of_both_directions(weights):
    coupling = LabelField.from_weights(weights, 3).coupling
    np.testing.assert_array_equal(coupling, weights + weights.T)


def test_agreement_sums_the_directed_weights_of_agreeing_pairs(weights, labels):
    field = LabelField.from_weights(weights, 3)
    assert field.agreement(labels) == pytest.approx(plain_agreement(weights, labels), rel=1e-14)


def test_agreement_of_one_class_is_the_number_of_points(weights):
    assert LabelField.from_weights(weights, 2).agreement(np.ones(7, dtype=int)) == pytest.approx(7)


def test_support_sums_the_coupling_to_each_class(weights, labels):
    field = LabelField.from_weights(weights, 3)
    for i, g in itertools.product(range(7), range(3)):
        expected = sum(field.coupling[i, j] for j in range(7) if labels[j] == g)
        assert field.support(labels)[i, g] == pytest.approx(expected, rel=1e-14)


def test_support_summed_over_classes_is_the_total_coupling(weights, labels):
    field = LabelField.from_weights(weights, 3)
    np.testing.assert_allclose(field.support(labels).sum(axis=1), field.total_coupling)


@pytest.mark.parametrize("beta", [-3.0, 0.0, 0.7, 40.0])
@pytest.mark.parametrize("external_field", EXTERNAL_FIELDS)
def test_conditional_is_the_ratio_of_joint_probabilities(weights, labels, beta, external_field):
    field = LabelField.from_weights(weights, 3, external_field)
    for i in range(7):
        joint = []
        for g in range(3):
            changed = labels.copy()
            changed[i] = g
            joint.append(field.log_potential(changed, beta))
        expected = np.exp(np.array(joint) - np.logaddexp.reduce(joint))
        np.testing.assert_allclose(field.conditional(labels, i, beta), expected, rtol=1e-11)
        np.testing.assert_allclose(field.conditionals(labels, beta)[i], expected, rtol=1e-11)


@pytest.mark.parametrize("external_field", EXTERNAL_FIELDS)
def test_sparse_and_dense_fields_give_the_same_answers(weights, labels, external_field):
    thinned = np.where(weights > 0.1, weights, 0.0)
    dense = LabelField.from_weights(thinned, 3, external_field)
    sparse = LabelField.from_weights(sp.coo_array(thinned), 3, external_field)
    assert sparse.is_sparse
    assert not dense.is_sparse
    assert sparse.to_dense().is_sparse is False
    assert dense.to_sparse().is_sparse is True
    np.testing.assert_allclose(sparse.to_dense().coupling, dense.coupling, rtol=1e-15)
    np.testing.assert_allclose(dense.to_sparse().coupling.toarray(), dense.coupling)
    np.testing.assert_allclose(sparse.support(labels), dense.support(labels), rtol=1e-14)
    np.testing.assert_allclose(sparse.total_coupling, dense.total_coupling, rtol=1e-14)
    assert sparse.agreement(labels) == pytest.approx(dense.agreement(labels), rel=1e-14)
    np.testing.assert_allclose(
        sparse.conditional(labels, 3, 1.5), dense.conditional(labels, 3, 1.5), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((3, 2)), r"shape \(n, n\) with n >= 2; got shape \(3, 2\)"),
        (np.zeros((1, 1)), "n >= 2"),
        (np.array([[0.0, -1.0], [1.0, 0.0]]), "finite weights >= 0"),
        (np.array([[0.0, np.nan], [1.0, 0.0]]), "finite weights >= 0"),
        (np.eye(2), "zero diagonal"),
        (sp.csr_array(np.eye(2)), "zero diagonal"),
    ],
)
def test_weights_that_make_no_field_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        LabelField.from_weights(weights, 2)


def test_one_class_is_no_field(weights):
    with pytest.raises(ValueError, match="n_classes >= 2; got n_classes=1"):
        LabelField.from_weights(weights, 1)


@pytest.mark.parametrize("external_field", [[0.0], [0.0, 0.0, np.inf]])
def test_external_field_needs_one_finite_value_a_class(weights, external_field):
    with pytest.raises(ValueError, match="external field of 3 finite values"):
        LabelField.from_weights(weights, 3, external_field)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"Expected 7 whole-number labels, shape \(7,\); got shape \(2,\)"),
        (np.zeros(7), "dtype float64"),
        ([0, 1, 2, 0, 1, 2, 3], "labels from 0 to n_classes - 1 = 2; got labels from 0 to 3"),
        ([0, 1, 2, 0, 1, 2, -1], "got labels from -1 to 2"),
    ],
)
def test_labels_that_do_not_fit_are_refused(weights, labels, message):
    with pytest.raises(ValueError, match=message):
        LabelField.from_weights(weights, 3).agreement(labels)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("i", "beta", "message"),
    [
        (7, 1.0, "Expected i < n_points; got i=7"),
        (-1, 1.0, "whole number i >= 0"),
        (1.5, 1.0, "whole number i >= 0; got i=1.5"),
        (0, np.nan, "finite real number beta"),
        (0, 1e200, r"Expected \|beta\| <= 1e\+100"),
    ],
)
def test_conditional_of_no_point_or_no_beta_is_refused(weights, labels, form, i, beta, message):
    field = LabelField.from_weights(weights, 3)
    field = field.to_sparse() if form == "sparse" else field
    with pytest.raises(ValueError, match=message):
        field.conditional(labels, i, beta)
