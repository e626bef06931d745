"""Fit and predict on Dask arrays and frames, with the training points spread over the workers.

The extra ``nearfield[dask]`` brings what this needs.

Each file imports only from those named before it: `_rows` takes Dask collections apart and puts
results together; `_training` checks and numbers the training rows; `_kept` keeps values on the
workers. A small training set is fitted on one of them (`_whole`). A large one is dealt out to
shards, each a region with an index (`_shards`), in the metric space (`_space`). Points are
queried on all shards and their lists are merged (`_search`), which gives the
k-nearest-neighbour graph and the conditionals that are fitted by the functions of one machine
(`_graph`), and the supports of predictions (`_model`). `_lazy` predicts lazily from such models;
`_classifier` and `_nearfield` have the estimators.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"Expected Dask with its arrays and frames; got: {error}. "
        "Install it by pip install 'nearfield[dask]'."
    ) from error

from nearfield.dask._classifier import (
    DistanceNeighborsClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.dask._nearfield import NearfieldClassifier

__all__ = [
    "DistanceNeighborsClassifier",
    "NearfieldClassifier",
    "ProbabilisticKNeighborsClassifier",
]
