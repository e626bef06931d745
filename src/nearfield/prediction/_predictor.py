"""What a posterior says of new points, each by itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_level
from nearfield.field import DistanceFamily, check_external_field, check_labels
from nearfield.inference import Posterior
from nearfield.prediction._dense import Sums, dense_sums
from nearfield.prediction._nodes import PosteriorNodes
from nearfield.prediction._outliers import KernelOutliers, RankOutliers, outliers_of
from nearfield.prediction._quadrature import Floats

PredictiveName = Literal["joint", "printed"]
PREDICTIVES: tuple[PredictiveName, ...] = get_args(PredictiveName)

_VALUES_A_CHUNK = 2**18  # 2 MB of distances at once: they stay in the cache
_COUPLINGS_AT_ONCE = 2**22


class FieldPredictor(ABC):
    """What is the same for all fields: averages over the posterior, given the support.

    A subclass says what it takes of new points, how to get their support from it, and their
    coupling to each training point.
    """

    posterior: Posterior
    family: Any
    labels: NDArray[np.int64]
    predictive: str

    @property
    @abstractmethod
    def chunk_size(self) -> int:
        """How many new points to hand over at once, so that memory stays bounded."""

    @abstractmethod
    def support(self, points: Any) -> Floats:
        """Give the support of new points at the scales of `nodes`, shape (m, n_scales, G)."""

    @abstractmethod
    def coupling(self, points: Any) -> Floats:
        """Give the coupling to each training point at these scales, shape (m, n_scales, n)."""

    @abstractmethod
    def outlier_score(self, points: Any) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior, (m,)."""

    @abstractmethod
    def prepare(self) -> None:
        """Compute and keep what does not depend on new points."""

    def probabilities(self, points: Any) -> Floats:
        """Average the class probabilities over the posterior.

        Parameters
        ----------
        points : array-like
            The new points: their distances to the training points, shape (m, n), for a
            `Predictor`, their features for a `NeighborPredictor`.

        Returns
        -------
        probabilities : ndarray, shape (m, G)
            Rows sum to one.
        """
        return self.nodes.mean(self.support(points), self.external_field)

    def quantiles(self, points: Any, levels: ArrayLike, odds: Floats | None = None) -> Floats:
        """Give quantiles of the class probabilities over the posterior, (n_levels, m, G)."""
        support = self.support(points)
        return self.nodes.quantiles(support, self.external_field, np.asarray(levels), odds)

    def interval(
        self, points: Any, level: float = 0.95, odds: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Bound each class probability, as the parameters vary by the posterior.

        Equal-tailed quantiles at a few hundred nodes that share the posterior evenly.

        Parameters
        ----------
        points : array-like
            As for `probabilities`.
        level : float
            The posterior probability of the interval, between 0 and 1.
        odds : ndarray, shape (G,), optional
            Factors of the classes' odds: see `class_odds`.

        Returns
        -------
        lower, upper : ndarray, shape (m, G)
        """
        check_level(level)
        tail = 0.5 * (1.0 - level)
        lower, upper = self.quantiles(points, (tail, 1.0 - tail), odds)
        return lower, upper

    def influence(self, points: Any) -> Floats:
        r"""Give the posterior mean of beta times the coupling to each training point, (m, n).

        .. math:: \operatorname{E}[\beta c^*_j \mid y]
        """
        n_rows = max(1, _COUPLINGS_AT_ONCE // (len(self.nodes.scales) * len(self.labels)))
        parts = [
            np.einsum(
                "s,msj->mj", self.nodes.mean_betas, self.coupling(points[start : start + n_rows])
            )
            for start in range(0, points.shape[0], n_rows)
        ]
        return np.concatenate(parts)

    @property
    def is_joint(self) -> bool:
        """Whether in-weights play a part."""
        return self.predictive == "joint" and self.family.has_joint

    @cached_property
    def nodes(self) -> PosteriorNodes:
        """The compressed posterior."""
        return PosteriorNodes.from_posterior(self.posterior, is_smooth=self.family.is_smooth)

    @cached_property
    def external_field(self) -> Floats:
        """The external field, shape (G,); zeros if there is none."""
        return check_external_field(self.family.external_field, self.family.n_classes)


@dataclass(frozen=True, eq=False)
class Predictor(FieldPredictor):
    r"""Class probabilities of new points, averaged over the posterior.

    .. math:: p(y^* = g) = \mathrm{E}\,\mathrm{softmax}_g(\alpha_g + \beta h^*_g), \qquad
              h^*_g = \sum_j c^*_j 1[y_j = g]

    Each new point is the last one of a field of n + 1 points, in which

    .. math:: c^*_j = \frac{\kappa(d^*_j)}{\sum_l \kappa(d^*_l)}
              + \frac{\kappa(d^*_j)}{\sum_{l \ne j} \kappa(d_{jl}) + \kappa(d^*_j)}

    Friel and Pettitt (2011), section 4, print the first term alone. A posterior of many nodes or
    draws is replaced by one of few (`PosteriorNodes`) that gives the same averages within 1e-3,
    so that the cost does not grow with their number; one of 32 nodes or fewer is taken as it is.

    As a point moves away to infinity the second term tends to zero for a kernel that does, and
    the probabilities to what the first term says: it then lies at the training points which
    are extreme in that direction (with the Gaussian kernel, at the most extreme one). With the
    radius kernel a point with no other within the radius has the same out-weight to all.

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
    family: DistanceFamily = field(repr=False)
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
        n_values = self.family.n_points + len(self.nodes.scales) * self.family.n_classes
        return max(1, _VALUES_A_CHUNK // n_values)

    def support(self, distances: ArrayLike) -> Floats:
        """Give the support of new points at the scales of `nodes`, shape (m, n_scales, G)."""
        return self._sums.support(self._check(distances))

    def prepare(self) -> None:
        """Compute and keep the normalising constants; then no distances are needed."""
        _ = self._sums

    def coupling(self, distances: ArrayLike) -> Floats:
        """Give the coupling to each training point at these scales, shape (m, n_scales, n)."""
        return self._own_sums.support(self._check(distances))

    def outlier_score(self, distances: ArrayLike) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior.

        About zero or below for points among the training points, and ever higher for a point
        that moves away from all of them; see `KernelOutliers`, `RankOutliers`.

        Parameters
        ----------
        distances : array-like, shape (m, n)

        Returns
        -------
        score : ndarray, shape (m,)
        """
        return self._outliers.score(self._check(distances))

    @cached_property
    def _sums(self) -> Sums:
        return dense_sums(self.family, self.labels, self.nodes.scales, is_joint=self.is_joint)

    @cached_property
    def _own_sums(self) -> Sums:
        """As `_sums`, with a class of its own for each training point: support is coupling."""
        n_points = self.family.n_points
        family = self.family
        own = DistanceFamily.from_checked(
            family.distances, family.kernel, n_points, multiplicities=family.multiplicities
        )
        return dense_sums(own, np.arange(n_points), self.nodes.scales, is_joint=self.is_joint)

    @cached_property
    def _outliers(self) -> KernelOutliers | RankOutliers:
        return outliers_of(self.posterior, self.family)

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
    if posterior.scale_name != family.scale_name:
        raise ValueError(
            f"Expected a posterior of {family.scale_name}, as the family has it; got one "
            f"of {posterior.scale_name}. Infer it from this family."
        )
