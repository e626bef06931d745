"""The scikit-learn classes: validation and orchestration, no mathematics.

`nearfield.dask` runs the same fits on training points in shards. It needs what these classes are
made of: `FieldClassifier`, the fit on the graph and the average over estimators, and the checks.
"""

from nearfield.estimators._averages import Average
from nearfield.estimators._base import ProbabilisticClassifier, split_pipeline
from nearfield.estimators._decisions import (
    calibration_rows,
    check_words,
    decisions_from,
)
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._field import FieldClassifier
from nearfield.estimators._graph import (
    Inference,
    ModelFit,
    TrainingGraph,
    draw_seed,
    fit_on_graph,
    site_rows,
)
from nearfield.estimators._held_out import check_average
from nearfield.estimators._many_points import (
    fit_features,
    fit_many_points,
    fit_on_held_out,
)
from nearfield.estimators._measured import MeasuredFamily
from nearfield.estimators._metric import MetricSpace, check_metric
from nearfield.estimators._nearfield import NearfieldClassifier
from nearfield.estimators._neighbors_cv import KNeighborsClassifierCV
from nearfield.estimators._predictions import PosteriorMixin
from nearfield.estimators._probabilistic import ProbabilisticKNeighborsClassifier
from nearfield.estimators._settings import make_rng
from nearfield.estimators._spectra import spectra_views
from nearfield.estimators._standardize import Standardization
from nearfield.estimators._training import TrainingPoints
from nearfield.estimators._validation import (
    MIN_POINTS,
    array_options,
    check_classes,
)

__all__ = [
    "MIN_POINTS",
    "Average",
    "DistanceNeighborsClassifier",
    "FieldClassifier",
    "Inference",
    "KNeighborsClassifierCV",
    "MeasuredFamily",
    "MetricSpace",
    "ModelFit",
    "NearfieldClassifier",
    "PosteriorMixin",
    "ProbabilisticClassifier",
    "ProbabilisticKNeighborsClassifier",
    "Standardization",
    "TrainingGraph",
    "TrainingPoints",
    "array_options",
    "calibration_rows",
    "check_average",
    "check_classes",
    "check_metric",
    "check_words",
    "decisions_from",
    "draw_seed",
    "fit_features",
    "fit_many_points",
    "fit_on_graph",
    "fit_on_held_out",
    "make_rng",
    "site_rows",
    "spectra_views",
    "split_pipeline",
]
