"""The near field: label fields over more points than an n x n array could hold.

The influence of a point dies off with distance. A point therefore sees its K nearest neighbours,
found by an index, and the points in the cells around it as they are, and all others through a fixed
random set of reference points.
The total weight that each training point gives away, which every coupling needs, is summed once
for all points at many scales, cell by cell: near cells point by point, far ones by a sample.

Gets points and a metric; knows nothing of scikit-learn estimators, which are the next layer.
"""

from nearfield.near.conditionals import NearConditionals
from nearfield.near.field import NearField
from nearfield.near.fit import NearFit, fit_near_field
from nearfield.near.predictor import NearPredictor

__all__ = ["NearConditionals", "NearField", "NearFit", "NearPredictor", "fit_near_field"]
