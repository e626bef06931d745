"""Label fields: kernels and weights, `LabelField`, families over a scale, and enumeration.

`LabelField` is the Markov random field of labels at one scale; a family gives one field for each
scale, which is all that inference needs of a model. `enumeration` is the exact oracle for tiny
fields.
"""

from nearfield.field.families import DistanceFamily, FieldFamily, NeighborFamily
from nearfield.field.label_field import LabelField, check_external_field, check_labels
from nearfield.field.weights import (
    exponential_weights,
    gaussian_weights,
    knn_weights,
    radius_weights,
)

__all__ = [
    "DistanceFamily",
    "FieldFamily",
    "LabelField",
    "NeighborFamily",
    "check_external_field",
    "check_labels",
    "exponential_weights",
    "gaussian_weights",
    "knn_weights",
    "radius_weights",
]
