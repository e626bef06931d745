"""Which of scikit-learn's checks of estimators fail here, and why that is meant."""

from sklearn.utils.validation import has_fit_parameter

_REASON = (
    "copies of a point give no weight to each other, k counts points, and features are "
    "standardized with each point counted once: see the notes of DistanceNeighborsClassifier"
)


def expected_failures(estimator):
    """Name the checks that an estimator fails, with the reason."""
    if not has_fit_parameter(estimator, "sample_weight"):
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": _REASON for kind in kinds}
