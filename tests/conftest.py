"""What several test files share: small random fields and a test of fit."""

from contextlib import ExitStack

import numpy as np
import pytest
from scipy.stats import chisquare

from nearfield.distances import distance_matrix
from nearfield.estimators._sizes import replaced_sizes
from nearfield.field import LabelField, gaussian_weights


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


@pytest.fixture
def use_sizes():
    """Let few points stand for many: call with other sizes of the estimators."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(replaced_sizes(**changes))


@pytest.fixture
def random_field():
    """Make a field of n random points in the plane; its weights are far from symmetric."""

    def make(n_points, n_classes, sigma=0.6, seed=1, external_field=None):
        points = np.random.default_rng(seed).normal(size=(n_points, 2))
        weights = gaussian_weights(distance_matrix(points), sigma)
        return LabelField.from_weights(weights, n_classes, external_field)

    return make


@pytest.fixture
def fit_p_value():
    """Test whether draws, shape (n_draws, n), follow the probabilities of `label_distribution`."""

    def p_value(draws, n_classes, probabilities):
        draws = np.asarray(draws)
        index = np.ravel_multi_index(draws.T, (n_classes,) * draws.shape[1])
        observed = np.bincount(index, minlength=probabilities.size)
        expected = len(draws) * probabilities
        # Pool what is too rare for the chi-square approximation.
        order = np.argsort(expected)
        is_rare = np.cumsum(expected[order]) < 10.0
        groups = np.zeros(len(order), dtype=int)
        groups[order] = np.maximum(np.arange(len(order)) - is_rare.sum(), 0)
        return chisquare(np.bincount(groups, observed), np.bincount(groups, expected)).pvalue

    return p_value


@pytest.fixture(scope="session")
def dask_cluster():
    """Start a Dask cluster of two worker processes, once for all tests of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    ) as cluster:
        yield cluster


@pytest.fixture
def dask_client(dask_cluster):
    """Connect to the cluster; what a test leaves there goes with its client."""
    from distributed import Client

    with Client(dask_cluster) as client:
        client.wait_for_workers(2)
        yield client
