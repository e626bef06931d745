"""Chains as pictures, by ArviZ: traces and ranks."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from nearfield.inference import Posterior
from nearfield.plotting._fitted import voices_of
from nearfield.plotting._style import OKABE_ITO, check_axes_count


@dataclass(eq=False)
class TraceDisplay:
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

    posterior: Posterior = field(repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the chains of a fitted estimator.

        Parameters
        ----------
        estimator : classifier fitted by exchange or the auxiliary variable method
        ax : array of four matplotlib axes, optional
        **kwargs
            Passed to the lines of the traces.
        """
        return cls(voices_of(estimator)[0].posterior).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to the lines of the traces."""
        data = _chains(self.posterior)
        axes = _axes(ax, 2, 2, figsize=(9.0, 5.0))
        arviz = _arviz()
        n_chains = len(self.posterior.beta)
        with _arviz_warnings_ignored():
            arviz.plot_trace(
                data,
                axes=axes,
                compact=True,
                chain_prop={"color": _chain_colors(n_chains)},
                plot_kwargs={"linewidth": 1.2},
                trace_kwargs={"linewidth": 0.6, "alpha": 0.8} | kwargs,
            )
        for row, name in zip(axes, _names(self.posterior), strict=True):
            row[0].set(title=f"Density of {name}", xlabel=name, ylabel="")
            row[0].set_yticks([])
            row[1].set(title=f"Trace of {name}", xlabel="draw", ylabel=name)
        self.ax_, self.figure_ = axes, axes[0, 0].figure
        return self


@dataclass(eq=False)
class RankDisplay:
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

    posterior: Posterior = field(repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the ranks of the chains of a fitted estimator.

        Parameters
        ----------
        estimator : classifier fitted by exchange or the auxiliary variable method
        ax : array of two matplotlib axes, optional
        **kwargs
            Passed to the bars of the histograms.
        """
        return cls(voices_of(estimator)[0].posterior).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to the bars of the histograms."""
        data = _chains(self.posterior)
        n_chains = len(self.posterior.beta)
        if n_chains < 2:
            raise ValueError(
                "Expected two chains or more to rank against each other; got one. "
                "Fit with n_chains >= 2."
            )
        axes = _axes(ax, 1, 2, figsize=(9.0, 0.8 * n_chains + 1.4)).ravel()
        with _arviz_warnings_ignored():
            _arviz().plot_rank(
                data, ax=axes, kind="bars", colors=_chain_colors(n_chains), bar_kwargs=kwargs
            )
        for panel, name in zip(axes, _names(self.posterior), strict=True):
            panel.set_title(f"Ranks of {name}")
            panel.set_xlabel("rank among all draws", fontsize="medium")
            panel.set_ylabel("chain", fontsize="medium")
        self.ax_, self.figure_ = axes, axes[0].figure
        return self


def _names(posterior: Posterior) -> tuple[str, str]:
    return "beta", posterior.scale_name


def _chains(posterior: Posterior) -> Any:
    if not posterior.is_draws:
        raise ValueError(
            "Expected the draws of chains; this posterior has the nodes of a quadrature, which "
            'need no convergence. Fit with inference="exchange", or use PosteriorDisplay.'
        )
    return posterior.to_arviz()


def _chain_colors(n_chains: int) -> list[str]:
    return [OKABE_ITO[i % len(OKABE_ITO)] for i in range(n_chains)]


def _axes(ax: Any, n_rows: int, n_columns: int, **figure_options: Any) -> Any:
    if ax is not None:
        return check_axes_count(ax, n_rows * n_columns).reshape(n_rows, n_columns)
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(n_rows, n_columns, layout="constrained", squeeze=False, **figure_options)
    return np.asarray(axes)


def _arviz() -> Any:
    with _arviz_warnings_ignored():
        import arviz
    return arviz


def _arviz_warnings_ignored() -> Any:
    """Keep to ourselves what ArviZ says of its own next version and of Matplotlib's."""
    return warnings.catch_warnings(action="ignore")
