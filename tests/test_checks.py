import numpy as np
import pytest

from nearfield._checks import check_positive, check_real, check_whole


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
