"""The posterior of (beta, sigma) or (beta, k): one record, whichever engine made it."""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from nearfield._checks import Rng, check_generator, check_level, check_whole
from nearfield.field import ScaleName
from nearfield.inference._arviz import chain_diagnostics, to_inference_data

Floats = NDArray[np.float64]

MAX_R_HAT = 1.01
MIN_ESS = 400.0
"""What Vehtari et al. (2021) ask of a chain before its draws are used."""

_BEYOND = 0.23  # of the way to the next: Gauss-Legendre nodes have their end no closer than that
_N_BISECTIONS = 50
_RESAMPLED = {"sampling": "independent draws from a quadrature: R-hat and ESS test no chain"}


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
    beta_cells, scale_cells : ndarray, shape (2, n_nodes), or None
        Where the cell of each node begins and ends, for nodes; None for half way to the others.

    Examples
    --------
    >>> from nearfield.inference import Posterior
    >>> posterior = Posterior.from_nodes([1.0, 2.0], [0.5, 0.5], [0.25, 0.75], "sigma")
    >>> posterior.mean().to_dict()
    {'beta': 1.75, 'sigma': 0.5}
    """

    beta: Floats
    scale: Floats
    weight: Floats
    scale_name: ScaleName
    is_draws: bool
    acceptance_rates: Floats | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    mean_error: Floats | None = None
    outside_mass: float | None = None
    beta_cells: Floats | None = None
    scale_cells: Floats | None = None

    @classmethod
    def from_draws(
        cls,
        beta: ArrayLike,
        scale: ArrayLike,
        scale_name: ScaleName,
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
        scale_name: ScaleName,
        *,
        log_evidence: float | None = None,
        log_evidence_error: float | None = None,
        mean_error: ArrayLike | None = None,
        outside_mass: float | None = None,
        beta_cells: ArrayLike | None = None,
        scale_cells: ArrayLike | None = None,
    ) -> Self:
        """Make the record of weighted nodes, shape (n_nodes,); the weights sum to one.

        `mean_error` holds two standard errors: of the mean of beta, and of that of the scale.
        `beta_cells` and `scale_cells`, shape (2, n_nodes), say over which values the weight of a
        node spreads in quantiles and samples.
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
            _check_cells(beta_cells, betas, "beta_cells"),
            _check_cells(scale_cells, scales, "scale_cells"),
        )

    @property
    def sigma(self) -> Floats:
        """The scale of a distance kernel, of the shape of `beta`."""
        return self._scale_called("sigma")

    @property
    def k(self) -> Floats:
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

        Draws are interpolated; the weight of a node spreads over its cell, with a density that
        follows those of the cells around. A quantile of k is a whole number.
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

    def _quantiles_of(self, name: str, values: Floats, levels: Floats) -> Floats:
        if name != "k" and not self.is_draws:
            return self._cells()[name].quantiles(self.weight, levels)
        unique, mass = _aggregate(values, self.weight)
        cumulative = np.cumsum(mass)
        if name == "k":  # the first at which the cumulative weight reaches a level
            first = np.searchsorted(cumulative, levels - 1e-12)
            return unique[np.minimum(first, len(unique) - 1)]
        return np.interp(levels, cumulative - 0.5 * mass, unique)

    def _cells(self) -> dict[str, "_Cells"]:
        """Give the cells of the nodes: of beta among the nodes of one scale, and of the scale."""
        scales, first, rows = np.unique(self.scale, return_index=True, return_inverse=True)
        beta_ends = self.beta_cells
        if beta_ends is None:
            beta_ends = _half_way(self.beta, rows)
        every = np.zeros(len(scales))
        if self.scale_name == "k":
            scale_ends = np.stack([scales, scales])
        elif self.scale_cells is None:
            scale_ends = _half_way(scales, every)
        else:
            scale_ends = self.scale_cells[:, first]
        scale_tilts = _tilts(scale_ends, np.bincount(rows, self.weight), every)
        return {
            "beta": _Cells(beta_ends, _tilts(beta_ends, self.weight, rows)),
            self.scale_name: _Cells(scale_ends[:, rows], scale_tilts[rows]),
        }

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
            and their mcse_mean is what the engine reports, with the error of the quadrature. A
            single chain is compared with itself, by halves.
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
                diagnostics = chain_diagnostics(values)
                frame.loc[name, list(diagnostics)] = list(diagnostics.values())
        return frame

    def sample(self, n: int, rng: Rng) -> tuple[Floats, Floats]:
        """Draw n pairs, independent given the record; returns beta and the scale, shape (n,).

        Nodes are drawn by weight, then beta and sigma from the cell of the node.
        """
        if self.is_draws:
            return self.sample_nodes(n, rng)
        n, rng = check_whole(n, "n", minimum=1), check_generator(rng)
        index = rng.choice(self.beta.size, size=n, p=self.weight)
        beta, scale = (cells.draw(rng, index) for cells in self._cells().values())
        return beta, scale

    def sample_nodes(self, n: int, rng: Rng) -> tuple[Floats, Floats]:
        """Draw n of the nodes by weight, or n of the draws; returns beta and the scale, (n,)."""
        n, rng = check_whole(n, "n", minimum=1), check_generator(rng)
        if self.is_draws:
            index = rng.integers(self.beta.size, size=n)
        else:
            index = rng.choice(self.beta.size, size=n, p=self.weight)
        return self.beta.ravel()[index], self.scale.ravel()[index]

    def table(self) -> pd.Series:
        """Give the posterior probability of each k that has any."""
        values, weight = _aggregate(self.k, self.weight)
        return pd.Series(weight, index=pd.Index(values.astype(np.int64), name="k"), name="weight")

    def to_arviz(self, n_draws: int = 4_000) -> Any:
        """Hand the draws to ArviZ, with dimensions chain and draw.

        Nodes are resampled: one chain of `n_draws` independent draws, the same at every call.
        Their R-hat and effective sample size say nothing about the posterior, as the attribute
        ``sampling`` of the group tells; the errors are in `summary`.
        """
        if self.is_draws:
            return to_inference_data(self._parameters(), {"sampling": "chains"})
        drawn = self.sample(check_whole(n_draws, "n_draws", minimum=1), np.random.default_rng(0))
        parameters = zip(self._parameters(), drawn, strict=True)
        return to_inference_data({name: x[None, :] for name, x in parameters}, _RESAMPLED)

    def _parameters(self) -> dict[str, Floats]:
        return {"beta": self.beta, self.scale_name: self.scale}

    def _scale_called(self, name: str) -> Floats:
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
            stacklevel=5,  # whoever called infer
        )


def _aggregate(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Sort the different values and add up the weight of each."""
    unique, index = np.unique(values.ravel(), return_inverse=True)
    return unique, np.bincount(index, weights=weight.ravel()).astype(np.float64)


class _Cells(NamedTuple):
    r"""Cells with a linear density.

    The cdf at a share t of the way through a cell is

    .. math:: F(t) = t + \kappa (t^2 - t), \qquad -1 \le \kappa \le 1
    """

    ends: Floats  # shape (2, n_cells)
    tilts: Floats  # shape (n_cells,): kappa

    def quantiles(self, weight: Floats, levels: Floats) -> Floats:
        """Invert the cdf of all cells together, by bisection."""
        lower, upper = self.ends
        low, high = np.full(len(levels), lower.min()), np.full(len(levels), upper.max())
        widths = np.maximum(upper - lower, 1e-300)
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            with np.errstate(over="ignore"):  # a cell without a width
                t = np.clip((middle[:, None] - lower) / widths, 0.0, 1.0)
            is_below = (t + self.tilts * (t * t - t)) @ weight < levels
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return 0.5 * (low + high)

    def draw(self, rng: np.random.Generator, index: NDArray[np.int64]) -> Floats:
        """Draw from some of the cells, by the inverse of F."""
        (lower, upper), tilts = self.ends[:, index], self.tilts[index]
        u, rest = rng.random(len(index)), 1.0 - tilts
        t = 2.0 * u / np.maximum(rest + np.sqrt(rest**2 + 4.0 * tilts * u), 1e-300)
        return lower + (upper - lower) * np.minimum(t, 1.0)


def _half_way(values: Floats, groups: NDArray[Any]) -> Floats:
    """Give each value a cell, half way to the values around it of the same group."""
    order = np.lexsort((values, groups))
    ordered = values[order]
    is_same = np.diff(groups[order]) == 0
    gaps = np.where(is_same, np.diff(ordered), 0.0)
    before, after = np.append(0.0, gaps), np.append(gaps, 0.0)
    is_first, is_last = np.append(True, ~is_same), np.append(~is_same, True)
    ends = np.empty((2, len(values)))
    ends[0, order] = ordered - np.where(is_first, _BEYOND * after, 0.5 * before)
    ends[1, order] = ordered + np.where(is_last, _BEYOND * before, 0.5 * after)
    return ends


def _tilts(ends: Floats, weight: NDArray[Any], groups: NDArray[Any]) -> Floats:
    """Tilt the density of each cell as the log density rises from the cell before to that after."""
    order = np.lexsort((ends[0], groups))
    widths, middles = (ends[1] - ends[0])[order], ends.mean(axis=0)[order]
    log_density = np.log(np.maximum(weight[order], 1e-300)) - np.log(np.maximum(widths, 1e-300))
    is_apart = (np.diff(groups[order]) == 0) & (np.diff(middles) > 0.0)
    steps = np.where(is_apart, np.diff(middles), 1.0)
    slopes = np.where(is_apart, np.diff(log_density) / steps, 0.0)
    n_slopes = np.append(0, is_apart) + np.append(is_apart, 0)
    slope = (np.append(0.0, slopes) + np.append(slopes, 0.0)) / np.maximum(n_slopes, 1)
    tilts = np.empty(len(weight))
    tilts[order] = np.clip(0.5 * widths * slope, -1.0, 1.0)
    return tilts


def _check_values(
    beta: ArrayLike, scale: ArrayLike, n_dims: int, shape: str
) -> tuple[Floats, Floats]:
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


def _check_cells(cells: ArrayLike | None, values: Floats, name: str) -> Floats | None:
    if cells is None:
        return None
    checked = np.asarray(cells, dtype=np.float64)
    is_valid = checked.shape == (2, len(values)) and np.isfinite(checked).all()
    if not is_valid or not (checked[0] <= checked[1]).all():
        raise ValueError(
            f"Expected {name} of shape (2, {len(values)}), where each cell begins and ends; got "
            f"shape {checked.shape}, or one that ends before it begins. Leave them out for half "
            "way to the other nodes."
        )
    return checked


def _check_scale_name(name: ScaleName) -> ScaleName:
    if name not in ("sigma", "k"):
        raise ValueError(f"Expected scale_name 'sigma' or 'k'; got {name!r}. Choose one of them.")
    return name
