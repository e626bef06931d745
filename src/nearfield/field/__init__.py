"""Label fields: kernels and weights, `LabelField`, families over a scale, and enumeration.

`LabelField` is the Markov random field of labels at one scale; a family gives one field for each
scale, which is all that inference needs of a model. `enumeration` is the exact oracle for tiny
fields.
"""

from nearfield.field.conditionals import SubsampledConditionals
from nearfield.field.families import DistanceFamily, FieldFamily, ScaleName
from nearfield.field.label_field import (
    LabelField,
    check_external_field,
    check_field,
    check_labels,
)
from nearfield.field.neighbor_family import NeighborFamily
from nearfield.field.neighbor_kernel import (
    GraphEdges,
    NeighborKernel,
    nearest_distances,
    neighbor_scale_range,
    scale_range_from_nearest,
    take,
)
from nearfield.field.weights import (
    KERNELS,
    RADIUS_EPSILON,
    KernelName,
    LogKernel,
    check_kernel,
    exponential_weights,
    gaussian_weights,
    kernel_weights,
    knn_weights,
    log_kernel_values,
    radius_weights,
)

__all__ = [
    "KERNELS",
    "RADIUS_EPSILON",
    "DistanceFamily",
    "FieldFamily",
    "GraphEdges",
    "KernelName",
    "LabelField",
    "LogKernel",
    "NeighborFamily",
    "NeighborKernel",
    "ScaleName",
    "SubsampledConditionals",
    "check_external_field",
    "check_field",
    "check_kernel",
    "check_labels",
    "exponential_weights",
    "gaussian_weights",
    "kernel_weights",
    "knn_weights",
    "log_kernel_values",
    "nearest_distances",
    "neighbor_scale_range",
    "radius_weights",
    "scale_range_from_nearest",
    "take",
]
