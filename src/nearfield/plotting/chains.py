"""Chains as pictures: traces and ranks."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from nearfield.inference import Posterior
from nearfield.plotting._fitted import weightiest
from nearfield.plotting._style import MUTED, Display, class_colors, new_or_given_axes

_MAX_BINS = 20
_MIN_DRAWS_A_BIN = 5
_FLAT_HEIGHT, _MAX_HEIGHT = 0.4, 0.9  # of bars of ranks, in steps from chain to chain


@dataclass(eq=False)
class _ChainDisplay(Display):
    posterior: Posterior = field(repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the chains of a fitted estimator.

        Parameters
        ----------
        estimator : classifier fitted by exchange or the auxiliary variable method
        ax : array of matplotlib axes, optional
            As many as ``ax_`` has.
        **kwargs
            Passed to the lines of the traces, or to the bars of the ranks.
        """
        return cls(weightiest(estimator)[0].posterior_).plot(ax=ax, **kwargs)

    @abstractmethod
    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given."""


@dataclass(eq=False)
class TraceDisplay(_ChainDisplay):
    """The draws of every chain in their order, beside the density of each chain.

    Chains that agree and wander up and down quickly have converged.

    Parameters
    ----------
    posterior : nearfield.inference.Posterior
        Of draws.

    Attributes
    ----------
    ax_ : ndarray of matplotlib.axes.Axes, shape (2, 2)
        A row for beta, a row for the scale: densities left, traces right.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.inference import Posterior
    >>> from nearfield.plotting import TraceDisplay
    >>> beta, sigma = np.random.default_rng(0).gamma(4.0, size=(2, 4, 500))
    >>> display = TraceDisplay(Posterior.from_draws(beta, sigma, "sigma")).plot()
    >>> display.ax_.shape
    (2, 2)
    """

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to the lines of the traces."""
        parameters = _chains(self.posterior)
        axes = new_or_given_axes(ax, 2, 2, figsize=(9.0, 5.0))
        for row, (name, chains) in zip(axes, parameters.items(), strict=True):
            for draws, color in zip(chains, class_colors(len(chains)), strict=True):
                if np.ptp(draws) > 0.0:  # a chain that never moved has no density
                    row[0].plot(*_density(draws), color=color, linewidth=1.2)
                row[1].plot(draws, **{"color": color, "linewidth": 0.6, "alpha": 0.8} | kwargs)
            row[0].set(title=f"Density of {name}", xlabel=name, ylabel="")
            row[0].set_yticks([])
            row[1].set(title=f"Trace of {name}", xlabel="draw", ylabel=name)
        return self._keep(axes)


@dataclass(eq=False)
class RankDisplay(_ChainDisplay):
    """Histograms of the ranks of each chain's draws among those of all chains.

    They are flat when all chains sample the same distribution (Vehtari et al., 2021).

    Parameters
    ----------
    posterior : nearfield.inference.Posterior
        Of draws, from two chains or more.

    Attributes
    ----------
    ax_ : ndarray of matplotlib.axes.Axes, shape (2,)
        For beta and for the scale.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.inference import Posterior
    >>> from nearfield.plotting import RankDisplay
    >>> beta, sigma = np.random.default_rng(0).gamma(4.0, size=(2, 4, 500))
    >>> display = RankDisplay(Posterior.from_draws(beta, sigma, "sigma")).plot()
    >>> display.ax_.shape
    (2,)
    """

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to the bars of the histograms."""
        parameters = _chains(self.posterior)
        n_chains = len(self.posterior.beta)
        if n_chains < 2:
            raise ValueError(
                "Expected two chains or more to rank against each other; got one. "
                "Fit with n_chains >= 2."
            )
        axes = new_or_given_axes(ax, 1, 2, figsize=(9.0, 0.8 * n_chains + 1.4)).ravel()
        for panel, (name, chains) in zip(axes, parameters.items(), strict=True):
            _draw_ranks(panel, chains, kwargs)
            panel.set(title=f"Ranks of {name}", xlabel="rank among all draws", ylabel="chain")
        return self._keep(axes)


def _chains(posterior: Posterior) -> dict[str, NDArray[np.float64]]:
    """Give the draws of each parameter, shape (chain, draw)."""
    if not posterior.is_draws:
        raise ValueError(
            "Expected the draws of chains; this posterior has the nodes of a quadrature, which "
            'need no convergence. Fit with inference="exchange", or use PosteriorDisplay.'
        )
    return {"beta": posterior.beta, posterior.scale_name: posterior.scale}


def _density(draws: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from arviz_stats.base import array_stats

    with np.errstate(all="ignore"):  # its search of a bandwidth may divide by zero on the way
        grid, density, _ = array_stats.kde(draws)
    return grid, density


def _draw_ranks(ax: Any, chains: NDArray[np.float64], style: dict[str, Any]) -> None:
    """Draw a row of bars for each chain; the dashed line is where flat ones end."""
    n_bins = max(1, min(_MAX_BINS, chains.shape[1] // _MIN_DRAWS_A_BIN))
    edges = np.linspace(0.5, chains.size + 0.5, n_bins + 1)
    counts = [np.histogram(r, edges)[0] for r in rankdata(chains).reshape(chains.shape)]
    flat = chains.shape[1] / n_bins
    unit = min(_FLAT_HEIGHT / flat, _MAX_HEIGHT / np.max(counts))
    for i, color in enumerate(class_colors(len(chains))):
        options = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "color": color}
        ax.bar(edges[:-1], counts[i] * unit, bottom=i, **options | style)
        ax.axhline(i + flat * unit, color=MUTED, linestyle="--", linewidth=0.8)
    ax.set_yticks(range(len(chains)))
