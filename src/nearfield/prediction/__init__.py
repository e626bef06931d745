"""What a posterior says of new points: class probabilities, intervals, joint labels, outliers.

`Predictor` works on the distances of new points to all training points, `NeighborPredictor` on
the k-nearest-neighbour graph; the next layer hands over new points a chunk at a time. Decisions
with stated error rates are made of what `membership` and `conformal` hold.
"""

from nearfield.prediction._chunks import map_chunks
from nearfield.prediction._nodes import PosteriorNodes
from nearfield.prediction._outliers import typical_scales
from nearfield.prediction._predictor import PREDICTIVES, FieldPredictor, PredictiveName, Predictor
from nearfield.prediction.class_prior import check_class_prior, class_odds, multiply_odds
from nearfield.prediction.joint import draw_joint_labels
from nearfield.prediction.mixture import mixture_quantiles
from nearfield.prediction.neighbors import (
    Neighborhood,
    NeighborOutliers,
    NeighborPredictor,
    NeighborSums,
    outlier_values,
)

__all__ = [
    "PREDICTIVES",
    "FieldPredictor",
    "NeighborOutliers",
    "NeighborPredictor",
    "NeighborSums",
    "Neighborhood",
    "PosteriorNodes",
    "PredictiveName",
    "Predictor",
    "check_class_prior",
    "class_odds",
    "draw_joint_labels",
    "map_chunks",
    "mixture_quantiles",
    "multiply_odds",
    "outlier_values",
    "typical_scales",
]
