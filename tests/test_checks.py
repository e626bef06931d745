import numpy as np
import pytest

from nearfield._checks import check_positive, check_real, check_whole
from nearfield.field import LabelField, enumeration
from nearfield.log_partition import log_partition_curve
from nearfield.sampling import draw_labels, draw_labels_perfect


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_any_kind_pass(value):
    assert check_whole(value, "n_draws", minimum=3) == 3


@pytest.mark.parametrize("value", [2, 3.0, True, "3", None])
def test_what_is_not_a_large_enough_whole_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"Expected a whole number n_draws >= 3; got n_draws="):
        check_whole(value, "n_draws", minimum=3)


@pytest.mark.parametrize("value", [np.nan, np.inf, 10**400, 1j, "1", None, True, [1.0]])
def test_what_is_not_a_finite_real_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match="Expected a finite real number beta; got beta="):
        check_real(value, "beta")


def test_zero_is_not_positive():
    with pytest.raises(ValueError, match="Expected sigma > 0; got sigma=0"):
        check_positive(0, "sigma")
    assert check_positive(np.float32(0.5), "sigma") == 0.5


def test_a_function_of_fields_says_how_to_make_one():
    weights = np.ones((4, 4)) - np.eye(4)
    for use in (
        lambda: draw_labels(0, weights, 1.0),
        lambda: draw_labels_perfect(0, weights, 1.0),
        lambda: log_partition_curve(0, weights, [1.0]),
        lambda: enumeration.log_partition(weights, 1.0),
        lambda: enumeration.mean_agreement(weights, 1.0),
        lambda: enumeration.label_distribution(weights, 1.0),
    ):
        with pytest.raises(TypeError, match=r"Expected a LabelField; got ndarray. Make one from"):
            use()


def test_a_refused_generator_is_shown_in_few_words():
    field = LabelField.from_weights(np.ones((40, 40)) - np.eye(40), 2)
    with pytest.raises(TypeError, match=r"Expected rng .*got <?LabelField.{,60} Pass"):
        draw_labels(field, field, 1.0)
