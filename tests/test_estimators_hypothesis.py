"""Random data, valid and not: probabilities that are some, or an error that was meant."""

import traceback

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    ProbabilisticKNeighborsClassifier,
)

FAST = "pseudolikelihood"
METRICS = (
    "euclidean",
    "manhattan",
    "chebyshev",
    "cosine",
    "nan_euclidean",
    "precomputed",
    "within",
)

models = st.one_of(
    st.builds(
        DistanceNeighborsClassifier,
        st.sampled_from(["gaussian", "radius", "exponential"]),
        inference=st.just(FAST),
        metric=st.sampled_from(METRICS),
        standardize=st.booleans(),
        predictive=st.sampled_from(["joint", "printed"]),
    ),
    st.builds(
        ProbabilisticKNeighborsClassifier,
        st.sampled_from(["symmetric", "directed"]),
        inference=st.just(FAST),
        metric=st.sampled_from(METRICS),
        standardize=st.booleans(),
    ),
    st.builds(KNeighborsClassifierCV, metric=st.sampled_from(METRICS), standardize=st.booleans()),
)

values = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10.0, 10.0),
    st.floats(allow_nan=False, allow_infinity=False),
)
any_values = st.one_of(values, st.floats())


@st.composite
def data(draw):
    """Training features and labels, and new features: mostly valid, sometimes not at all."""
    elements = draw(st.sampled_from([values, values, any_values]))
    n_points, n_features = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    X = draw(hnp.arrays(np.float64, (n_points, n_features), elements=elements))
    new = draw(hnp.arrays(np.float64, (draw(st.integers(0, 3)), n_features), elements=elements))
    if n_features and draw(st.booleans()):  # what precomputed distances look like, more or less
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.abs(X[:, :1] - X[:, :1].T)
            new = np.abs(new[:, :1] - np.zeros(len(X)))
    classes = draw(st.sampled_from([[0, 1], [0, 1, 2], ["a", "b"], [True, False], [0.5, 1.5]]))
    y = np.array(draw(st.lists(st.sampled_from(classes), min_size=n_points, max_size=n_points)))
    return X, y, new


def assert_meant(error):
    """Whoever raised the error is this package or scikit-learn, and it says something."""
    assert str(error)
    file = traceback.extract_tb(error.__traceback__)[-1].filename
    assert "/nearfield/" in file or "/sklearn/" in file, file


@given(models, data())
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_random_data_give_probabilities_or_an_error_that_was_meant(model, problem):
    X, y, new = problem
    try:
        model.fit(X, y)
        probabilities = model.predict_proba(new)
    except (ValueError, TypeError) as error:
        assert_meant(error)
        return
    assert probabilities.shape == (len(new), len(model.classes_))
    assert (probabilities >= 0.0).all()
    assert (probabilities <= 1.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    assert set(model.predict(new)) <= set(y)


@given(st.integers(0, 2**32 - 1), models.filter(lambda m: m.metric in ("euclidean", "manhattan")))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_sound_data_always_work(seed, model):
    rng = np.random.default_rng(seed)
    n_points, n_features = rng.integers(4, 20), rng.integers(1, 4)
    X = rng.normal(size=(n_points, n_features)) * 10.0 ** rng.integers(-5, 6)
    y = rng.permutation(np.arange(n_points) % min(3, n_points - 1))
    probabilities = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
