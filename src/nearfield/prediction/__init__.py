"""What a posterior says of new points: class probabilities, intervals, joint labels, outliers.

`Predictor` works on the distances of new points to all training points, `NeighborPredictor` on
the k-nearest-neighbour graph; the next layer hands over new points a chunk at a time.
"""

from nearfield.prediction._chunks import map_chunks
from nearfield.prediction._distances import euclidean_distances_to
from nearfield.prediction._intervals import IntervalNodes
from nearfield.prediction._outliers import typical_scales
from nearfield.prediction._predictor import PREDICTIVES, Predictor, measure_of, normalized
from nearfield.prediction.joint import draw_joint_labels
from nearfield.prediction.neighbors import (
    Neighborhood,
    NeighborOutliers,
    NeighborPredictor,
    NeighborSums,
    choose_average,
    make_probes,
    outlier_values,
    probe_sites,
)

__all__ = [
    "PREDICTIVES",
    "IntervalNodes",
    "NeighborOutliers",
    "NeighborPredictor",
    "NeighborSums",
    "Neighborhood",
    "Predictor",
    "choose_average",
    "draw_joint_labels",
    "euclidean_distances_to",
    "make_probes",
    "map_chunks",
    "measure_of",
    "normalized",
    "outlier_values",
    "probe_sites",
    "typical_scales",
]
