"""Fit and predict on Dask arrays and frames, with the training points spread over the workers.

The extra ``nearfield[dask]`` brings what this needs.

Each file imports only from those named before it: `_rows` takes Dask collections apart and puts
results together; `_training` checks and numbers the training rows; `_kept` keeps values on the
workers. A small training set is fitted on one of them (`_whole`). A large one is dealt out to
shards of neighbouring cells (`_shards`), where distances are taken (`_space`). Every shard is
searched and the results are merged (`_search`); what some points then see of the field is
a field of few rows (`_some_rows`), to which the shards add their sums (`_shard_sums`), and which
the functions of `nearfield.near` take. Normalisers are summed over shards (`_sums`, and
`_sums_by_rows` for some metrics), and all this is kept (`_field`), fitted and asked (`_near`).
`_fit` chooses, and `_classifier` is the estimator.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"Expected Dask with its arrays and frames; got: {error}. "
        "Install it by pip install 'nearfield[dask]'."
    ) from error

from nearfield.dask._classifier import DistanceNeighborsClassifier

__all__ = ["DistanceNeighborsClassifier"]
