"""Fit and predict on Dask arrays and frames, with the training points spread over the workers.

The extra ``nearfield[dask]`` brings what this needs.

Each file imports only from those named before it: `_kept` keeps values on the workers; `_rows`
takes Dask collections apart and puts results together; `_training` has the training rows in
blocks; `_shards` deals them out to shards, each a region with an index, and queries points on
all of them; `_graph` has the k-nearest-neighbour graph and the conditionals, which the functions
of one machine fit; `_model` sums the supports of predictions over the shards, or has the model of
a small training set, fitted on one worker; `_lazy` applies the methods of one machine to blocks;
`_classifier` has the estimators.
"""

from nearfield._extras import import_extra

import_extra("dask.array")
import_extra("dask.dataframe")

from nearfield.dask._classifier import (  # noqa: E402
    DistanceNeighborsClassifier,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)

__all__ = [
    "DistanceNeighborsClassifier",
    "NearfieldClassifier",
    "ProbabilisticKNeighborsClassifier",
]
