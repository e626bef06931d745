"""The scikit-learn classes: validation and orchestration, no mathematics."""

from nearfield.estimators._base import ProbabilisticClassifier
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._nearfield import NearfieldClassifier
from nearfield.estimators._neighbors_cv import KNeighborsClassifierCV
from nearfield.estimators._probabilistic import ProbabilisticKNeighborsClassifier

__all__ = [
    "DistanceNeighborsClassifier",
    "KNeighborsClassifierCV",
    "NearfieldClassifier",
    "ProbabilisticClassifier",
    "ProbabilisticKNeighborsClassifier",
]
