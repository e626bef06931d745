"""Prior distributions of beta and of the scale, and the paper's choice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearfield.families import FieldFamily


@dataclass(frozen=True)
class Priors:
    """Independent priors: frozen `scipy.stats` distributions of beta and of sigma or k."""

    beta: Any
    scale: Any

    def log_density(self, beta: ArrayLike, scale: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the joint log density (for k, log mass); -inf outside the support."""
        return self.log_beta(beta) + self.log_scale(scale)

    def log_beta(self, beta: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the log density of beta."""
        return self.beta.logpdf(beta)

    def log_scale(self, scale: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the log density of sigma, or the log mass of k."""
        is_discrete = hasattr(self.scale.dist, "pmf")
        return self.scale.logpmf(scale) if is_discrete else self.scale.logpdf(scale)


def default_priors(family: FieldFamily) -> Priors:
    """Return the paper's priors: beta ~ N(0, 50^2), sigma ~ U(0, 100); k uniform on 1..n/2."""
    if family.is_discrete:
        scale = stats.randint(1, max(family.n_points // 2, 1) + 1)
    else:
        scale = stats.uniform(0.0, 100.0)
    return Priors(stats.norm(0.0, 50.0), scale)


def check_priors(priors: Priors, family: FieldFamily) -> None:
    """Refuse priors that leave nothing to infer, before any work starts."""
    name = family.scale_name
    for prior, parameter in ((priors.beta, "beta"), (priors.scale, name)):
        if not (hasattr(prior, "dist") and hasattr(prior, "ppf") and hasattr(prior, "rvs")):
            raise ValueError(
                f"Expected a frozen scipy.stats distribution as the prior of {parameter}; got "
                f"{prior!r}. Give one such as scipy.stats.norm(0, 50)."
            )
    if hasattr(priors.beta.dist, "pmf") or hasattr(priors.scale.dist, "pmf") != family.is_discrete:
        expected = "a discrete" if family.is_discrete else "a continuous"
        raise ValueError(
            f"Expected a continuous prior of beta and {expected} prior of {name}; got "
            f"{priors.beta.dist.name} and {priors.scale.dist.name}. Change the one that differs."
        )
    lower, upper = (1.0, family.n_points - 1.0) if family.is_discrete else (0.0, np.inf)
    mass = priors.scale.cdf(upper) - priors.scale.cdf(lower - 1.0 if family.is_discrete else lower)
    if not mass > 0.0:
        raise ValueError(
            f"Expected a prior of {name} with mass between {lower:g} and {upper:g}; got "
            f"{priors.scale.dist.name}{priors.scale.args} with none there. Choose another prior."
        )
