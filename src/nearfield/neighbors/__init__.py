"""Neighbour search: indexes over points, and the k-nearest-neighbour graph.

`make_index` chooses an index: exact by a tree of boxes (`BoxIndex`) or by scikit-learn
(`MetricIndex`), or approximate. All of them answer forward queries (the nearest points) and
reverse queries (the points that would have this one among their nearest). `NeighborGraph` holds
the neighbours of every training point, from which fields, conditionals and predictions are built.
"""

from nearfield.neighbors.base import (
    Index,
    NeighborLists,
    ReverseNeighbors,
    ShortLists,
    merge_lists,
)
from nearfield.neighbors.boxes import BoxIndex
from nearfield.neighbors.graph import (
    TIE_TOLERANCE,
    NeighborGraph,
    build_graph,
    last_tie,
    most_columns,
    past_ties,
    search_with_ties,
)
from nearfield.neighbors.index import SEARCHES, MetricIndex, SearchName, box_power, make_index

__all__ = [
    "SEARCHES",
    "TIE_TOLERANCE",
    "BoxIndex",
    "Index",
    "MetricIndex",
    "NeighborGraph",
    "NeighborLists",
    "ReverseNeighbors",
    "SearchName",
    "ShortLists",
    "box_power",
    "build_graph",
    "last_tie",
    "make_index",
    "merge_lists",
    "most_columns",
    "past_ties",
    "search_with_ties",
]
