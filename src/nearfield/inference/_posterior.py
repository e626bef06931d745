"""The posterior of (beta, sigma) or (beta, k): one record, whichever engine made it."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from sklearn.exceptions import ConvergenceWarning

from nearfield._checks import check_level, check_whole

MAX_R_HAT = 1.01
MIN_ESS = 400.0
"""What Vehtari et al. (2021) ask of a chain before its draws are used."""

_MIN_DRAWS = 4  # a half chain; fewer have no diagnostics


@dataclass(frozen=True, eq=False)
class Posterior:
    """Weighted nodes, of a quadrature, or equally weighted draws, of chains.

    Made by `from_nodes` or `from_draws`. Nodes are 1-d arrays, draws are shaped (chain, draw).

    Attributes
    ----------
    beta : ndarray
    scale : ndarray
        sigma or k, also by that name; of the shape of `beta`.
    weight : ndarray
        Of the shape of `beta`; sums to one.
    scale_name : str
        ``"sigma"`` or ``"k"``.
    is_draws : bool
    acceptance_rates : ndarray, shape (n_chains,), or None
        After burn-in, for draws.
    log_evidence, log_evidence_error : float or None
        The log of the prior-averaged likelihood and its standard error, if the engine knows.
    mean_error : ndarray, shape (2,), or None
        Standard errors of the means of beta and of the scale, for nodes.
    outside_mass : float or None
        A bound on the posterior mass that the nodes do not cover.
    """

    beta: NDArray[np.float64]
    scale: NDArray[np.float64]
    weight: NDArray[np.float64]
    scale_name: str
    is_draws: bool
    acceptance_rates: NDArray[np.float64] | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    mean_error: NDArray[np.float64] | None = None
    outside_mass: float | None = None

    @classmethod
    def from_draws(
        cls,
        beta: ArrayLike,
        scale: ArrayLike,
        scale_name: str,
        *,
        acceptance_rates: ArrayLike | None = None,
    ) -> Self:
        """Make the record of equally weighted draws, shape (chain, draw)."""
        betas, scales = _check_values(beta, scale, n_dims=2, shape="(chain, draw)")
        rates = None if acceptance_rates is None else np.asarray(acceptance_rates, dtype=float)
        weight = np.full(betas.shape, 1.0 / betas.size)
        return cls(betas, scales, weight, _check_scale_name(scale_name), True, rates)

    @classmethod
    def from_nodes(
        cls,
        beta: ArrayLike,
        scale: ArrayLike,
        weight: ArrayLike,
        scale_name: str,
        *,
        log_evidence: float | None = None,
        log_evidence_error: float | None = None,
        mean_error: ArrayLike | None = None,
        outside_mass: float | None = None,
    ) -> Self:
        """Make the record of weighted nodes, shape (n_nodes,); the weights sum to one.

        `mean_error` holds two standard errors: of the mean of beta, and of that of the scale.
        """
        betas, scales = _check_values(beta, scale, n_dims=1, shape="(n_nodes,)")
        weights = np.asarray(weight, dtype=np.float64)
        is_valid = weights.shape == betas.shape and (weights >= 0.0).all()
        if not is_valid or abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError(
                f"Expected {betas.size} weights >= 0 that sum to one; got shape {weights.shape} "
                f"and sum {weights.sum():g}. Normalize the weights."
            )
        errors = None if mean_error is None else np.asarray(mean_error, dtype=np.float64)
        if errors is not None and errors.shape != (2,):
            raise ValueError(
                f"Expected mean_error of shape (2,), for beta and {scale_name}; got shape "
                f"{errors.shape}. Give one standard error a parameter."
            )
        return cls(
            betas,
            scales,
            weights / weights.sum(),
            _check_scale_name(scale_name),
            False,
            None,
            log_evidence,
            log_evidence_error,
            errors,
            outside_mass,
        )

    @property
    def sigma(self) -> NDArray[np.float64]:
        """The scale of a distance kernel, of the shape of `beta`."""
        return self._scale_called("sigma")

    @property
    def k(self) -> NDArray[np.float64]:
        """The number of neighbours, of the shape of `beta`."""
        return self._scale_called("k")

    @property
    def acceptance_rate(self) -> float | None:
        """The mean acceptance rate of the chains, after burn-in; None for nodes."""
        return None if self.acceptance_rates is None else float(self.acceptance_rates.mean())

    def mean(self) -> pd.Series:
        """Average each parameter."""
        return pd.Series({n: np.vdot(self.weight, v) for n, v in self._parameters().items()})

    def sd(self) -> pd.Series:
        """Give the standard deviation of each parameter."""
        means = self.mean()
        variances = {
            name: np.vdot(self.weight, (values - means[name]) ** 2)
            for name, values in self._parameters().items()
        }
        return np.sqrt(pd.Series(variances))

    def quantile(self, q: ArrayLike) -> pd.Series | pd.DataFrame:
        """Give quantiles of each parameter, as a Series, or for several q as a DataFrame.

        Between two nodes or draws a quantile is interpolated; that of k is a whole number.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"Expected 0 <= q <= 1; got q={q!r}. Give probabilities.")
        quantiles = {
            name: self._quantiles_of(name, values, levels)
            for name, values in self._parameters().items()
        }
        frame = pd.DataFrame(quantiles, index=levels)
        return frame if np.ndim(q) else frame.iloc[0]

    def _quantiles_of(self, name, values, levels):
        if name == "k":
            return _whole_quantiles(values, self.weight, levels)
        interpolate = np.interp if self.is_draws else _smooth_interpolation
        unique, mass = _aggregate(values, self.weight)
        return interpolate(levels, np.cumsum(mass) - 0.5 * mass, unique)

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Summarise each parameter in a row.

        Parameters
        ----------
        level : float
            The probability of the equal-tailed interval from `lower` to `upper`.

        Returns
        -------
        summary : DataFrame
            With rows beta and sigma or k, and columns mean, sd, lower, upper, mcse_mean (the
            Monte Carlo standard error of the mean), ess_bulk, ess_tail (effective sample
            sizes) and r_hat. The last three say how well chains mixed; nodes have none of them,
            and their mcse_mean is what the engine reports. A single chain is compared with
            itself, by halves.
        """
        check_level(level)
        tail = 0.5 * (1.0 - level)
        interval = self.quantile([tail, 1.0 - tail])
        frame = pd.DataFrame(
            {
                "mean": self.mean(),
                "sd": self.sd(),
                "lower": interval.iloc[0],
                "upper": interval.iloc[1],
                "mcse_mean": np.nan if self.mean_error is None else self.mean_error,
                "ess_bulk": np.nan,
                "ess_tail": np.nan,
                "r_hat": np.nan,
            }
        )
        if self.is_draws:
            for name, values in self._parameters().items():
                diagnostics = _diagnostics(values)
                frame.loc[name, list(diagnostics)] = list(diagnostics.values())
        return frame

    def sample(
        self, n: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw n pairs, independent given the record; returns beta and the scale, shape (n,)."""
        n = check_whole(n, "n", minimum=1)
        if self.is_draws:
            index = rng.integers(self.beta.size, size=n)
        else:
            index = rng.choice(self.beta.size, size=n, p=self.weight)
        return self.beta.ravel()[index], self.scale.ravel()[index]

    def table(self) -> pd.Series:
        """Give the posterior probability of each k that has any."""
        values, weight = _aggregate(self.k, self.weight)
        return pd.Series(weight, index=pd.Index(values.astype(np.int64), name="k"), name="weight")

    def to_arviz(self, n_draws: int = 1_000) -> Any:
        """Hand the draws to ArviZ, as InferenceData with dimensions chain and draw.

        Nodes are resampled: four chains of `n_draws` draws each, the same at every call.
        """
        arviz = _import_arviz()
        parameters = self._parameters()
        if not self.is_draws:
            n_draws = check_whole(n_draws, "n_draws", minimum=1)
            drawn = self.sample(4 * n_draws, np.random.default_rng(0))
            parameters = {
                name: values.reshape(4, n_draws)
                for name, values in zip(parameters, drawn, strict=True)
            }
        return arviz.from_dict(posterior=parameters)

    def _parameters(self) -> dict[str, NDArray[np.float64]]:
        return {"beta": self.beta, self.scale_name: self.scale}

    def _scale_called(self, name: str) -> NDArray[np.float64]:
        if name != self.scale_name:
            raise AttributeError(
                f"Expected a posterior of {name}; this one is of beta and {self.scale_name}. "
                f"Use .{self.scale_name}, or .scale for whichever there is."
            )
        return self.scale


def warn_unless_converged(posterior: Posterior) -> None:
    """Warn, with what to do, when R-hat or an effective sample size tells not to trust draws."""
    summary = posterior.summary()
    complaints = []
    for name, row in summary.iterrows():
        if name == "k" and np.ptp(posterior.k) == 0.0:
            continue  # all draws are the same k: beta alone can tell of the mixing
        if not row["r_hat"] <= MAX_R_HAT:
            complaints.append(f"R-hat of {name} is {row['r_hat']:.3f}")
        for column, kind in (("ess_bulk", "bulk"), ("ess_tail", "tail")):
            if not row[column] >= MIN_ESS:
                complaints.append(f"the {kind} ESS of {name} is {row[column]:.0f}")
    if complaints:
        warnings.warn(
            f"Expected R-hat <= {MAX_R_HAT} and effective sample sizes >= {MIN_ESS:.0f}; "
            f"{', '.join(complaints)}. Raise n_draws and n_burn, or n_chains.",
            ConvergenceWarning,
            stacklevel=4,  # whoever called infer
        )


def _diagnostics(values: NDArray[np.float64]) -> dict[str, float]:
    """Monte Carlo error, effective sample sizes and R-hat of draws, shape (chain, draw)."""
    if len(values) == 1:
        half = values.shape[1] // 2
        values = values[:, : 2 * half].reshape(2, half)
    names = ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")
    if values.shape[1] < _MIN_DRAWS or np.ptp(values) == 0.0:
        return dict.fromkeys(names, np.nan)
    arviz = _import_arviz()
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved: R-hat is inf
        diagnostics = (
            arviz.mcse(values, method="mean"),
            arviz.ess(values, method="bulk"),
            arviz.ess(values, method="tail"),
            arviz.rhat(values),
        )
    return {name: float(np.squeeze(d)) for name, d in zip(names, diagnostics, strict=True)}


def _import_arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it announces its own next version
        import arviz
    return arviz


def _aggregate(
    values: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sort the different values and add up the weight of each."""
    unique, index = np.unique(values.ravel(), return_inverse=True)
    return unique, np.bincount(index, weights=weight.ravel()).astype(np.float64)


def _whole_quantiles(values, weight, levels):
    """Give the first value at which the cumulative weight reaches each level."""
    unique, mass = _aggregate(values, weight)
    first = np.searchsorted(np.cumsum(mass), levels - 1e-12)
    return unique[np.minimum(first, len(unique) - 1)]


def _smooth_interpolation(x, points, values):
    """Interpolate by a smooth function that rises where the values do (PCHIP)."""
    points, first = np.unique(points, return_index=True)
    if len(points) == 1:
        return np.full(len(x), values[0])
    return PchipInterpolator(points, values[first])(np.clip(x, points[0], points[-1]))


def _check_values(
    beta: ArrayLike, scale: ArrayLike, n_dims: int, shape: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    betas, scales = np.asarray(beta, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    if betas.ndim != n_dims or betas.shape != scales.shape or betas.size == 0:
        raise ValueError(
            f"Expected beta and scale of shape {shape}; got shapes {betas.shape} and "
            f"{scales.shape}. Give one scale for each beta."
        )
    if not (np.isfinite(betas).all() and np.isfinite(scales).all()):
        raise ValueError(
            "Expected finite values of beta and scale; got one that is not finite. "
            "Leave out what has no weight."
        )
    return betas, scales


def _check_scale_name(name: str) -> str:
    if name not in ("sigma", "k"):
        raise ValueError(f"Expected scale_name 'sigma' or 'k'; got {name!r}. Choose one of them.")
    return name
