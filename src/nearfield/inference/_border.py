"""What every engine checks before any work starts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.field import FieldFamily, check_labels
from nearfield.inference._priors import Priors, check_priors, default_priors


def check_problem(
    family: FieldFamily, labels: ArrayLike, priors: Priors | None, *, needs_joint: bool = True
) -> tuple[NDArray[np.int64], Priors]:
    """Accept labels and priors for a family, or say what is wrong with them."""
    if not (hasattr(family, "at") and hasattr(family, "scale_range")):
        raise TypeError(
            f"Expected a family of fields; got {_describe(family)}. Make one of distances, such as "
            'nearfield.field.DistanceFamily(distances, "gaussian", n_classes).'
        )
    if family.n_points < 3:
        raise ValueError(
            f"Expected n_points >= 3; got n_points={family.n_points}. Supply more points."
        )
    priors = default_priors(family) if priors is None else priors
    check_priors(priors, family)
    if needs_joint:
        family.at(family.scale_range[0])  # refuses conditionals that belong to no joint
    return check_labels(labels, family.n_points, family.n_classes), priors


def _describe(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {value!r}" if shape is None else f"an array of shape {shape}"
