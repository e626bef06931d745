"""The scikit-learn classes: validation and orchestration, no mathematics.

`nearfield.dask` runs the same fits on training points in shards. It needs what these classes are
made of: `FieldClassifier`, the fit on the graph and the average over candidates, and the checks.
"""

from nearfield.estimators._at_scale import (
    fit_at_scale,
    fit_features,
)
from nearfield.estimators._averages import Average
from nearfield.estimators._base import ProbabilisticClassifier, for_proportions
from nearfield.estimators._candidates import check_average
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._field import FieldClassifier
from nearfield.estimators._graph import (
    Inference,
    ModelFit,
    draw_seed,
    fit_on_graph,
    pilot_rows,
    site_rows,
)
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._nearfield import NearfieldClassifier
from nearfield.estimators._neighbors_cv import KNeighborsClassifierCV
from nearfield.estimators._probabilistic import ProbabilisticKNeighborsClassifier
from nearfield.estimators._settings import check_longest, make_rng
from nearfield.estimators._training import TrainingPoints
from nearfield.estimators._validation import (
    MIN_POINTS,
    array_options,
    check_class_prior,
    check_classes,
)

__all__ = [
    "MIN_POINTS",
    "Average",
    "DistanceNeighborsClassifier",
    "FieldClassifier",
    "Inference",
    "KNeighborsClassifierCV",
    "MetricSpace",
    "ModelFit",
    "NearfieldClassifier",
    "ProbabilisticClassifier",
    "ProbabilisticKNeighborsClassifier",
    "TrainingPoints",
    "array_options",
    "check_average",
    "check_class_prior",
    "check_classes",
    "check_longest",
    "draw_seed",
    "fit_at_scale",
    "fit_features",
    "fit_on_graph",
    "for_proportions",
    "make_rng",
    "pilot_rows",
    "site_rows",
]
