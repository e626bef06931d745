"""What the chains move in: the parameters on the coordinates of the walk, with their field.

A random walk lives on positions (arsinh beta, log sigma), or (arsinh beta, k). Up to about one
arsinh beta is beta itself; beyond, it is its logarithm: where the points of a class are far from
all others (the olive oils), the posterior of beta has a tail to many times its median, which steps
of one length in beta cross hardly ever. Everything that a move asks about a position is worked
out once, here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.field import FieldFamily, LabelField, check_labels
from nearfield.inference._priors import Priors, check_priors, default_priors, log_density_of

_LARGEST = 700.0  # whose exponential is a number


class Point(NamedTuple):
    """A value of the parameters and what a move needs to know of it."""

    position: tuple[float, float]
    beta: float
    scale: float
    field: LabelField
    log_prior: float  # on the coordinates of the walk: the Jacobian is counted
    log_potential: float  # of the observed labels


@dataclass(frozen=True, eq=False)
class Target:
    """The posterior up to its intractable constant: the family, the labels and the priors."""

    family: FieldFamily
    labels: NDArray[np.int64]
    priors: Priors

    def at(self, position: tuple[float, float]) -> Point | None:
        """Look at a position; None where the prior has no density."""
        beta, scale = _sinh(position[0]), self.scale_of(position[1])
        log_prior = self.log_prior(beta, scale)
        if log_prior == -math.inf:
            return None
        field = self.family.at(scale)
        potential = log_potential(field, beta, self.is_class)
        return Point(position, beta, scale, field, log_prior, potential)

    def scale_of(self, coordinate: float) -> float:
        """Turn the second coordinate of the walk into sigma, or k."""
        if self.family.is_discrete:
            return coordinate
        return math.exp(coordinate) if coordinate < _LARGEST else math.inf

    def position_of(self, beta: ArrayLike, scale: ArrayLike) -> NDArray[np.float64]:
        """Turn parameters into positions, shape (2, ...)."""
        scale = np.asarray(scale, dtype=np.float64)
        return np.stack([np.arcsinh(beta), scale if self.family.is_discrete else np.log(scale)])

    def log_prior(self, beta: float, scale: float) -> float:
        """Evaluate the log prior density on the coordinates of the walk."""
        upper = self.family.n_points if self.family.is_discrete else math.inf
        if not (0.0 < scale < upper and abs(beta) < math.inf):
            return -math.inf
        log_density = self._log_beta(beta) + self._log_scale(scale)
        return float(log_density) + self.log_jacobian(beta, scale)

    def log_jacobian(self, beta: float, scale: float) -> float:
        r"""Evaluate the log of how much of the parameters there is to a position.

        .. math:: \frac{d\beta}{d\,\mathrm{arsinh}\,\beta} = \sqrt{1 + \beta^2}, \qquad
                  \frac{d\sigma}{d\log\sigma} = \sigma
        """
        log_scale = 0.0 if self.family.is_discrete else math.log(scale)
        return math.log(math.hypot(1.0, beta)) + log_scale

    @cached_property
    def scale_spread(self) -> float:
        """The width of the range of scales, on the coordinate of the walk."""
        lower, upper = self.family.scale_range
        return upper - lower if self.family.is_discrete else math.log(upper / lower)

    @cached_property
    def is_class(self) -> NDArray[np.float64]:
        """The observed labels as an indicator matrix."""
        return indicators(self.labels, self.family.n_classes)

    @cached_property
    def _log_beta(self) -> Callable[[float], float]:
        return log_density_of(self.priors.beta)

    @cached_property
    def _log_scale(self) -> Callable[[float], float]:
        if not self.family.is_discrete:
            return log_density_of(self.priors.scale)
        table = self.priors.log_scale(np.arange(self.family.n_points))
        return lambda k: float(table[int(k)])

    def __getstate__(self) -> dict[str, Any]:
        # The cached functions are closures, which do not travel to another process.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _sinh(x: float) -> float:
    return math.sinh(x) if abs(x) < _LARGEST else math.copysign(math.inf, x)


def check_target(
    family: FieldFamily, labels: ArrayLike, priors: Priors | None, *, needs_joint: bool = True
) -> Target:
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
    if needs_joint and family.multiplicities is not None:
        raise ValueError(
            "Expected points that count once each; got points with weights, whose labels have "
            "conditional distributions but no joint one that this engine could work on. Use "
            "pseudolikelihood, or repeat the points whose weights are whole numbers."
        )
    if needs_joint:
        family.at(family.scale_range[0])  # refuses conditionals that belong to no joint
    checked = check_labels(labels, family.n_points, family.n_classes)
    return Target(family, checked.copy(), priors)


def _describe(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {value!r}" if shape is None else f"an array of shape {shape}"


def indicators(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Mark the class of each label, shape (n, G)."""
    return (labels[:, None] == np.arange(n_classes)).astype(np.float64)


def log_potential(field: LabelField, beta: float, is_class: NDArray[np.float64]) -> float:
    r"""Evaluate :math:`\log q = \sum_i \alpha_{y_i} + \beta S(y)` of labels as indicators.

    The same as `LabelField.log_potential`, without its checks: a chain asks thousands of times.
    """
    terms = field.external_field + 0.5 * beta * (field.coupling @ is_class)
    return float(np.vdot(is_class, terms))
