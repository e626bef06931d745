"""How far apart the points are: metrics, and the distances that they give.

Imports nothing of nearfield but the data sets; the next layer turns distances into weights.
"""

from collections.abc import Mapping
from types import MappingProxyType

from nearfield.distances._dense import canonical_metric, check_distances, distance_matrix
from nearfield.distances._euclidean import euclidean_distances_to
from nearfield.distances.ard import ArdMetric
from nearfield.distances.discriminant import DiscriminantMetric
from nearfield.distances.donors import fill_from_donors
from nearfield.distances.frames import RawColumn, as_numbers, is_table, raw_columns
from nearfield.distances.kernels.scaled_field import best_beta
from nearfield.distances.learned import (
    LearnedMetric,
    LinearMetric,
    in_units,
    mean_and_deviation,
)
from nearfield.distances.power import PowerTransform
from nearfield.distances.quadratic import QuadraticMetric
from nearfield.distances.tables import (
    ColumnCode,
    FeatureView,
    TableEncoder,
    is_missing,
    may_be_codes,
)
from nearfield.distances.within import WithinMetric

LEARNED_METRICS: Mapping[str, type[LearnedMetric]] = MappingProxyType(
    {
        "within": WithinMetric,
        "ard": ArdMetric,
        "discriminant": DiscriminantMetric,
        "quadratic": QuadraticMetric,
    }
)
"""The learned metrics by name."""

__all__ = [
    "LEARNED_METRICS",
    "ArdMetric",
    "ColumnCode",
    "DiscriminantMetric",
    "FeatureView",
    "LearnedMetric",
    "LinearMetric",
    "PowerTransform",
    "QuadraticMetric",
    "RawColumn",
    "TableEncoder",
    "WithinMetric",
    "as_numbers",
    "best_beta",
    "canonical_metric",
    "check_distances",
    "distance_matrix",
    "euclidean_distances_to",
    "fill_from_donors",
    "in_units",
    "is_missing",
    "is_table",
    "may_be_codes",
    "mean_and_deviation",
    "raw_columns",
]
