"""Every check that scikit-learn makes of an estimator, for each model."""

import pytest
from scikit_checks import expected_failures
from sklearn.utils.estimator_checks import (
    check_estimators_fit_returns_self,
    check_fit2d_predict1d,
    parametrize_with_checks,
)

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    ProbabilisticKNeighborsClassifier,
)

FAST = "pseudolikelihood"


@parametrize_with_checks(
    [
        DistanceNeighborsClassifier("gaussian", inference=FAST),
        DistanceNeighborsClassifier("radius", inference=FAST),
        DistanceNeighborsClassifier("exponential", inference=FAST),
        ProbabilisticKNeighborsClassifier("symmetric", inference=FAST),
        ProbabilisticKNeighborsClassifier("directed"),
        KNeighborsClassifierCV(),
        KNeighborsClassifierCV("precomputed"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [
        DistanceNeighborsClassifier(),
        DistanceNeighborsClassifier(inference=FAST, metric="precomputed"),
        DistanceNeighborsClassifier(inference=FAST, predictive="printed", metric="within"),
        ProbabilisticKNeighborsClassifier(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_other_settings_too(estimator, check):
    check(estimator)


def test_default_engine_passes_a_check_of_each_kind():
    model = DistanceNeighborsClassifier(random_state=0)
    check_fit2d_predict1d("d-nn", model)
    check_estimators_fit_returns_self("d-nn", model)
