"""Bad input: one clear error each, that names the argument and says what to do."""

import copy
import re
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.exceptions import NotFittedError

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.inference import Exchange

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2
DISTANCES = np.abs(X[:, :1] - X[:, 0])


def message(text):
    return pytest.raises(ValueError, match=re.escape(text))


def d_nn(**arguments):
    return DistanceNeighborsClassifier(**{"inference": "pseudolikelihood"} | arguments)


def pk_nn(**arguments):
    return ProbabilisticKNeighborsClassifier(**{"inference": "pseudolikelihood"} | arguments)


ALL = pytest.mark.parametrize("make", [d_nn, pk_nn, KNeighborsClassifierCV])
FIELDS = pytest.mark.parametrize("make", [d_nn, pk_nn])


def with_value(value):
    changed = X.copy()
    changed[4, 1] = value
    return changed


@ALL
def test_infinity_is_refused(make):
    with message("Input X contains infinity"):
        make().fit(with_value(np.inf), Y)
    model = make().fit(X, Y)
    with message("Input X contains infinity"):
        model.predict(with_value(np.inf))


@ALL
def test_missing_values_are_refused_where_the_metric_cannot_place_them(make):
    with message("Input X contains NaN"):
        make(metric="chebyshev").fit(with_value(np.nan), Y)


def test_infinity_is_refused_where_missing_values_are_not():
    with message("Input X contains infinity"):
        d_nn(metric="nan_euclidean").fit(with_value(np.inf), Y)


def test_points_without_a_common_feature_are_refused():
    apart = np.array([[1.0, np.nan], [np.nan, 1.0], [1.0, 2.0], [2.0, 1.0]])
    with message("metric 'nan_euclidean': got nan from point 0 to point 1"):
        d_nn(metric="nan_euclidean").fit(apart, [0, 1, 0, 1])


@ALL
def test_one_class_is_refused(make):
    with message("Expected at least two classes in y; got one class, 7. Supply points of another"):
        make().fit(X, np.full(20, 7))


@ALL
@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_samples_are_refused(make, n):
    with message(f"Found array with {n} sample(s) (shape=({n}, 3)) while a minimum of 3"):
        make().fit(X[:n], Y[:n])


@ALL
def test_as_many_classes_as_samples_are_refused(make):
    with message("Expected fewer classes in y than samples; got as many, n_samples = n_classes"):
        make().fit(X[:5], np.arange(5))


@ALL
def test_three_samples_are_enough(make):
    np.testing.assert_allclose(make().fit(X[:3], Y[:3]).predict_proba(X).sum(axis=1), 1.0)


@ALL
def test_other_features_at_prediction_are_refused(make):
    with message("X has 2 features, but"):
        make().fit(X, Y).predict(X[:, :2])


@ALL
@pytest.mark.parametrize(
    ("distances", "text"),
    [
        (-DISTANCES, "Negative values in data: expected precomputed distances >= 0; got -"),
        (DISTANCES[:, :5], "Expected a square matrix of distances; got shape (20, 5)."),
        (DISTANCES + np.triu(DISTANCES), "Expected symmetric distances; precomputed distances"),
        (DISTANCES + np.eye(20), "Expected distance 0 from a point to itself; precomputed"),
    ],
    ids=["negative", "not square", "not symmetric", "diagonal"],
)
def test_what_cannot_be_distances_is_refused(make, distances, text):
    with message(text):
        make(metric="precomputed").fit(distances, Y)


@ALL
def test_precomputed_distances_to_other_points_are_refused(make):
    model = make(metric="precomputed").fit(DISTANCES, Y)
    with message("X has 7 features, but"):
        model.predict(DISTANCES[:, :7])
    with message("Expected finite distances >= 0; precomputed distances: got -") as caught:
        model.predict(-DISTANCES)
    assert "Give distances, not similarities." in str(caught.value)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        make(metric="precomputed").fit(sp.csr_array(DISTANCES), Y)


def test_joint_draws_need_the_distances_between_new_points():
    model = d_nn(metric="precomputed").fit(DISTANCES, Y)
    with message("to 20 training points and then to the 3 new points themselves, shape (3, 23)"):
        model.predict_joint(DISTANCES[:3])
    with message("Input X contains NaN"):
        model.predict_joint(np.full((1, 21), np.nan))


@pytest.mark.parametrize("value", ["gauss", 3, None])
def test_unknown_kernel_is_refused(value):
    with message(f"['exponential', 'gaussian', 'radius']; got kernel={value!r}. Choose one"):
        d_nn(kernel=value).fit(X, Y)


@ALL
@pytest.mark.parametrize("value", ["eucldean", 3, None])
def test_unknown_metric_is_refused(make, value):
    with message(f"got metric={value!r}. Choose one of them."):
        make(metric=value).fit(X, Y)


@ALL
def test_wrong_arguments_of_a_metric_are_refused(make):
    with message("metric 'euclidean' could not measure these points") as caught:
        make(metric_params={"q": 3}).fit(X, Y)
    assert len(str(caught.value)) < 300
    with message("Expected metric_params that metric 'ard' takes; got ['q']"):
        make(metric="ard", metric_params={"q": 3}).fit(X, Y)
    with pytest.raises(TypeError, match=r"Expected metric_params as a dict.*metric_params=3"):
        make(metric_params=3).fit(X, Y)


@FIELDS
def test_unknown_engine_is_refused(make):
    with message("Expected inference among ['auto', 'path', 'exchange', 'pseudolikelihood',"):
        make(inference="mcmc").fit(X, Y)
    for value in (Exchange, None, 3):
        with pytest.raises(TypeError, match=r"such as nearfield.inference.Exchange\(\); got infer"):
            make(inference=value).fit(X, Y)


@pytest.mark.parametrize(
    "inference", ["path", "exchange", "auxiliary_variable", Exchange(n_draws=5)]
)
def test_directed_neighbourhood_has_nothing_for_other_engines(inference):
    with message("conditionals belong to no joint distribution that another engine could work on"):
        pk_nn(neighborhood="directed", inference=inference).fit(X, Y)


def test_directed_neighbourhood_has_no_joint_draws():
    model = pk_nn(neighborhood="directed").fit(X, Y)
    with message('Expected neighborhood="symmetric" for joint draws'):
        model.predict_joint(X)


def test_unknown_neighbourhood_is_refused():
    with message("Expected neighborhood among ('symmetric', 'directed'); got neighborhood='both'"):
        pk_nn(neighborhood="both").fit(X, Y)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (d_nn(prior_sigma=stats.uniform(-10, 5)), "Expected a prior of sigma with mass between 0"),
        (d_nn(prior_sigma=3.0), "frozen scipy.stats distribution as the prior of sigma; got 3.0"),
        (d_nn(prior_sigma=stats.randint(1, 4)), "a continuous prior of sigma; got halfnorm and"),
        (d_nn(prior_beta="norm"), "scipy.stats distribution as the prior of beta; got 'norm'"),
        (pk_nn(prior_k=stats.randint(90, 99)), "Expected a prior of k with mass between 1 and 19"),
        (pk_nn(prior_k=stats.norm()), "a discrete prior of k; got halfnorm and norm"),
    ],
)
def test_priors_with_no_mass_where_it_is_needed_are_refused(model, text):
    with message(text):
        model.fit(X, Y)


@ALL
def test_labels_that_are_continuous_are_refused(make):
    with message("Unknown label type: continuous"):
        make().fit(X, X[:, 0])


@ALL
@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.column_stack([Y, Y]), "y should be a 1d array"),
        (Y[:5], "inconsistent numbers of samples: [20, 5]"),
        (None, "requires y to be passed"),
        (np.where(Y, np.nan, 1.0), "Input y contains NaN"),
    ],
)
def test_labels_that_are_none_are_refused(make, y, text):
    with message(text):
        make().fit(X, y)


@ALL
def test_predictions_need_a_fit(make):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict(X)


@FIELDS
def test_what_a_field_predicts_needs_a_fit_and_sound_arguments(make):
    for method in ("predict_proba_interval", "predict_joint", "outlier_score"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(make(), method)(X)
    model = make().fit(X, Y)
    for prior in ([1.0, 2.0], [1.0], ["a", "b"], [1.5, -0.5], [0, 10**400]):
        with message("Expected class_prior of 2 proportions that sum to one, in the order of"):
            copy.copy(model).set_params(class_prior=prior).predict_proba(X)
        with message("Expected class_prior of 2 proportions"):
            make(class_prior=prior).fit(X, Y)
    for level in (0.0, 1.0, -3, "high"):
        with message("level"):
            model.predict_proba_interval(X, level=level)
    with message("Expected a whole number n_draws >= 1; got n_draws=0."):
        model.predict_joint(X, 0)
    with pytest.raises(TypeError, match="Expected update_parameters as True or False; got upd"):
        model.predict_joint(X, update_parameters="no")


@FIELDS
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"predictive": "best"}, "among ('joint', 'printed'); got predictive='best'"),
        ({"verbose": "yes"}, "Expected verbose as a whole number; got verbose='yes'."),
        ({"random_state": "seed"}, "'seed' cannot be used to seed"),
        ({"random_state": -1}, "Seed must be between 0 and 2**32 - 1"),
    ],
)
def test_unknown_settings_of_a_field_are_refused(make, arguments, text):
    with message(text):
        make(**arguments).fit(X, Y)


@FIELDS
def test_intercepts_are_wanted_or_not(make):
    with pytest.raises(TypeError, match="Expected fit_intercept as True or False; got fit_int"):
        make(fit_intercept="fitted").fit(X, Y)


@ALL
def test_unknown_settings_are_refused(make):
    with pytest.raises(TypeError, match="Expected standardize as True or False; got standardize=1"):
        make(standardize=1).fit(X, Y)
    for n_jobs in (0, "all", 1.5):
        with message(f"Expected n_jobs as a whole number other than 0, or None; got {n_jobs=}"):
            make(n_jobs=n_jobs).fit(X, Y)


def test_more_points_than_memory_holds_are_refused(use_sizes):
    use_sizes(max_dense=25)
    model = d_nn().fit(X, Y)
    with message("Expected at most 25 points, whose distances to each other are all kept"):
        model.predict_joint(X[:6])


@ALL
def test_features_too_large_to_measure_are_refused(make):
    with message("Expected finite distances >= 0; metric 'euclidean': got inf from point 0"):
        make(standardize=False).fit(1e300 * X, Y)
    with message("Expected finite distances >= 0; metric 'euclidean': got inf from point 0"):
        make().fit(X, Y).predict_proba(1e300 * X)


@FIELDS
@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_distances_whose_squares_are_no_numbers_are_refused(make, unit):
    with message("Expected the largest distance between 1e-150 and 1e+150; got"):
        make(standardize=False, metric="manhattan").fit(unit * X, Y)
    assert make(metric="manhattan").fit(unit * X, Y).predict(unit * X).shape == (20,)


@ALL
def test_covariance_without_an_inverse_is_refused(make):
    with message("'mahalanobis' could not measure these points: their covariance has rank 2"):
        make(metric="mahalanobis").fit(with_constant(), Y)


@ALL
def test_errors_come_from_the_border_not_from_the_depths(make):
    with pytest.raises(ValueError, match="one class") as caught:
        make().fit(X, np.zeros(20))
    assert traceback.extract_tb(caught.tb)[-1].name == "check_classes"


def with_constant():
    constant = X.copy()
    constant[:, 0] = 3.3
    return constant


@pytest.mark.parametrize("value", [0, 1.5, "many", 20])
def test_impossible_numbers_of_neighbours_are_refused(value):
    with message("max_neighbors"):
        KNeighborsClassifierCV(max_neighbors=value).fit(X, Y)


@ALL
@pytest.mark.parametrize("gap", [None, np.nan])
def test_missing_labels_are_refused_by_their_row(make, gap):
    labels = ["ab"[label] for label in Y]
    fitted = make().fit(X, labels)
    labels[3] = gap
    with message("expected a class for every sample; 1 of 20 are missing, the first in row 3"):
        make().fit(X, labels)
    if hasattr(fitted, "partial_fit"):
        with message("the first in row 3"):
            fitted.partial_fit(X, labels)


@ALL
def test_one_row_as_a_series_and_a_frame_without_rows_are_refused(make):
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=["u", "v"] * 10)
    for table in (frame, frame[["a", "b"]]):
        fitted = make().fit(table, Y)
        with message("got a pandas Series. For one row of a frame use frame.iloc[[0]]"):
            fitted.predict(table.iloc[0])
        with message(f"Found array with 0 sample(s) (shape=(0, {table.shape[1]}))"):
            fitted.predict(table[:0])


@ALL
def test_a_lazy_frame_is_refused(make):
    frame = pl.DataFrame(X)
    for call in (
        lambda: make().fit(frame.lazy(), Y),
        lambda: make().fit(X, Y).predict(frame.lazy()),
    ):
        with message("got a LazyFrame, which holds no rows. Call .collect()."):
            call()


def test_an_impossible_level_of_a_decision_suggests_a_small_one():
    with message("Expected 0 < level < 1; got level=95. Try 0.05."):
        d_nn().fit(X, Y).decide(X, level=95)
