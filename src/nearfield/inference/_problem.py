"""What path sampling works on: the family, the labels and the priors, with what follows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nearfield.field import FieldFamily, check_external_field
from nearfield.inference._path_settings import DEFAULTS, PathSettings
from nearfield.inference._priors import Priors
from nearfield.log_partition import log_z_at_zero


@dataclass(frozen=True, eq=False)
class Problem:
    """The posterior up to its unknown constants."""

    family: FieldFamily
    labels: NDArray[np.int64]
    priors: Priors
    settings: PathSettings = DEFAULTS

    @cached_property
    def beta_support(self) -> tuple[float, float]:
        """The betas to look at: where the prior is, but for a long tail far below zero.

        Chains freeze there, and only labels that agree hardly at all are likely.
        """
        s = self.settings
        low, cut, high = map(
            float, self.priors.beta.ppf([s.prior_tail, s.cut_tail, 1.0 - s.prior_tail])
        )
        return (low if low >= s.longest_tail else min(cut, s.cut_at)), high

    @cached_property
    def mass_below(self) -> float:
        """How much of the prior of beta was cut off below; zero if none."""
        low = self.beta_support[0]
        return (
            float(self.priors.beta.cdf(low))
            if low > self.priors.beta.ppf(self.settings.prior_tail)
            else 0.0
        )

    @cached_property
    def log_external(self) -> float:
        """What the external field adds to the log potential of the observed labels."""
        return float(self._alpha[self.labels].sum())

    @cached_property
    def log_z_at_zero(self) -> float:
        """Log z at beta = 0, known exactly at every scale."""
        return log_z_at_zero(self.family.n_points, self._alpha)

    @cached_property
    def _alpha(self) -> NDArray[np.float64]:
        return check_external_field(self.family.external_field, self.family.n_classes)

    def log_beta(self, parts: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Evaluate the log prior of several arrays of betas at once: a call is what costs."""
        values = self.priors.log_beta(np.concatenate(parts))
        return np.split(values, np.cumsum([len(part) for part in parts])[:-1])
