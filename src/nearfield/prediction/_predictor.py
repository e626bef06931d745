"""What a posterior says of new points, each by itself."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_level
from nearfield.field import DistanceFamily, FieldFamily, check_external_field, check_labels
from nearfield.inference import Posterior
from nearfield.prediction._influence import mean_influence
from nearfield.prediction._intervals import IntervalNodes
from nearfield.prediction._outliers import OutlierScale
from nearfield.prediction._radius import RadiusAverage
from nearfield.prediction._rules import Floats, Measure
from nearfield.prediction._smooth import TrainingSums, probe_distances, smooth_average
from nearfield.prediction._support import new_point_coupling

PREDICTIVES = ("joint", "printed")

_VALUES_A_CHUNK = 2**18  # 2 MB of distances at once: they stay in the cache


@dataclass(frozen=True, eq=False)
class Predictor:
    r"""Class probabilities of new points, averaged over the posterior.

    .. math:: p(y^* = g) = \mathrm{E}\,\mathrm{softmax}_g(\alpha_g + \beta h^*_g), \qquad
              h^*_g = \sum_j c^*_j 1[y_j = g]

    Each new point is the last one of a field of n + 1 points, in which

    .. math:: c^*_j = \frac{\kappa(d^*_j)}{\sum_l \kappa(d^*_l)}
              + \frac{\kappa(d^*_j)}{\sum_{l \ne j} \kappa(d_{jl}) + \kappa(d^*_j)}

    Friel and Pettitt (2011), section 4, print the first term alone. A posterior of many nodes or
    draws is replaced by one of few that gives the same averages within 1e-4, so that the
    cost does not grow with their number; one of 32 nodes or fewer is taken as it is.

    As a point moves away to infinity the second term tends to zero for a kernel that does, and
    the probabilities to what the first term says: it then lies at the training points which
    are extreme in that direction (with the Gaussian kernel, at the most extreme one). With the
    radius kernel a point that reaches nobody listens to all alike.

    Parameters
    ----------
    posterior : Posterior
        Nodes or draws.
    family : DistanceFamily
        Of the n training points.
    labels : ndarray of int, shape (n,)
        Of the training points, 0..G-1.
    predictive : {"joint", "printed"}
        With both terms, or with the first alone. The directed neighbourhood of Holmes and Adams
        has the first alone in either case: that is its conditional.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import Posterior
    >>> points = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", n_classes=2)
    >>> posterior = Posterior.from_nodes([2.0], [1.0], [1.0], "sigma")
    >>> predictor = Predictor(posterior, family, np.array([0, 0, 1, 1]))
    >>> predictor.probabilities(distance_matrix([[0.5], [3.0]], points)).round(2)
    array([[0.99, 0.01],
           [0.5 , 0.5 ]])
    """

    posterior: Posterior = field(repr=False)
    family: FieldFamily = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    predictive: str = "joint"

    def __post_init__(self) -> None:
        n_points, n_classes = self.family.n_points, self.family.n_classes
        # The only assignment to a frozen predictor: the labels in the form that kernels need.
        object.__setattr__(self, "labels", check_labels(self.labels, n_points, n_classes))
        check_predictive(self.predictive, self.posterior, self.family)

    @property
    def chunk_size(self) -> int:
        """How many new points to hand over at once, so that memory stays bounded."""
        return max(1, _VALUES_A_CHUNK // self.family.n_points)

    def probabilities(self, distances: ArrayLike) -> Floats:
        """Average the class probabilities over the posterior.

        Parameters
        ----------
        distances : array-like, shape (m, n)
            Of the new points to the training points.

        Returns
        -------
        probabilities : ndarray, shape (m, G)
            Rows sum to one.
        """
        return normalized(self._average.probabilities(self._check(distances)))

    def interval(self, distances: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bound each class probability, as the parameters vary by the posterior.

        Equal-tailed quantiles at a few hundred nodes that share the posterior evenly.

        Parameters
        ----------
        distances : array-like, shape (m, n)
        level : float
            The posterior probability of the interval, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray, shape (m, G)
        """
        check_level(level)
        tail = 0.5 * (1.0 - level)
        lower, upper = self._interval_nodes.quantiles(self._check(distances), (tail, 1.0 - tail))
        return lower, upper

    def outlier_score(self, distances: ArrayLike) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior.

        About zero or below for points among the training points, and ever higher for a point
        that moves away from all of them; see `OutlierScale`.

        Parameters
        ----------
        distances : array-like, shape (m, n)

        Returns
        -------
        score : ndarray, shape (m,)
        """
        return self._outlier_scale.score(self._check(distances))

    def influence(self, distances: ArrayLike) -> Floats:
        """Give the posterior mean of beta times the coupling to each training point, (m, n)."""
        checked, family = self._check(distances), cast(DistanceFamily, self.family)
        return mean_influence(
            self.posterior,
            lambda scale: new_point_coupling(family, checked, scale, self.predictive),
        )

    @cached_property
    def _average(self) -> Any:
        family: Any = self.family
        is_joint = self.predictive == "joint" and family.has_joint
        arguments = family, self.labels, self._external_field, is_joint
        if not family.is_smooth:
            return RadiusAverage.of(self._measure, *arguments)
        return smooth_average(
            self._measure,
            lambda scales: TrainingSums.of(family, self.labels, scales, is_joint),
            probe_distances(family.distances),
            self._external_field,
        )

    @cached_property
    def _measure(self) -> Measure:
        return measure_of(self.posterior, self.family)

    @cached_property
    def _interval_nodes(self) -> IntervalNodes:
        return IntervalNodes.of(self._average, self._measure, self._external_field)

    @cached_property
    def _outlier_scale(self) -> OutlierScale:
        return OutlierScale.of(self.posterior, self.family)

    @cached_property
    def _external_field(self) -> Floats:
        return check_external_field(self.family.external_field, self.family.n_classes)

    def _check(self, distances: ArrayLike) -> Floats:
        checked = np.ascontiguousarray(distances, dtype=np.float64)
        if checked.ndim != 2 or checked.shape[1] != self.family.n_points:
            raise ValueError(
                f"Expected distances of shape (m, {self.family.n_points}), to every training "
                f"point; got shape {checked.shape}. Give one row for each new point."
            )
        return checked


def check_predictive(predictive: str, posterior: Posterior, family: Any) -> None:
    """Accept a predictive by its name, and a posterior of the family's own scale."""
    if predictive not in PREDICTIVES:
        raise ValueError(
            f"Expected predictive among {PREDICTIVES}; got predictive={predictive!r}. "
            "Choose one of them."
        )
    if callable(getattr(family, "kernel", None)):
        raise ValueError(
            "Expected a family with a kernel by name, which prediction has compiled code for; got "
            f"{family.kernel!r}. Use the fields of the family, such as family.support."
        )
    if posterior.scale_name != family.scale_name:
        raise ValueError(
            f"Expected a posterior of {family.scale_name}, as the family has it; got one "
            f"of {posterior.scale_name}. Infer it from this family."
        )


def normalized(probabilities: Floats) -> Floats:
    """Make averages of probabilities, in place, probabilities to the last digit."""
    # Nodes with the right moments may have weights below zero, by next to nothing.
    np.clip(probabilities, 0.0, 1.0, out=probabilities)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def measure_of(posterior: Posterior, family: FieldFamily) -> Measure:
    """Take the posterior as a measure, in log sigma where the kernel is smooth."""
    scales = posterior.scale.ravel()
    return Measure(
        posterior.beta.ravel(),
        np.log(scales) if family.is_smooth else scales,
        posterior.weight.ravel(),
    )
