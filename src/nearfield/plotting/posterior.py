"""The posterior of beta and the scale as a picture."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from nearfield.inference import Posterior
from nearfield.plotting._fitted import weightiest
from nearfield.plotting._style import LINE, SECOND_LINE, Display, as_rgb, new_or_given_axes

_MAX_POINTS = 4_000  # a smooth density needs no more draws
_BANDWIDTH = 0.35  # in standard deviations: smooths over the gaps between nodes
_N_GRID = 120


@dataclass(eq=False)
class PosteriorDisplay(Display):
    """Contours of the posterior of (beta, sigma), or how it spreads over (beta, k).

    Nodes of a quadrature and draws of chains are drawn in the same way: as the smallest regions
    that hold a given share of the posterior, by a kernel density estimate in beta and log sigma.

    Parameters
    ----------
    posterior : nearfield.inference.Posterior
    name : str, optional
        What it is the posterior of, for the title.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import PosteriorDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> display = PosteriorDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'beta'
    """

    posterior: Posterior = field(repr=False)
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        levels: tuple[float, ...] = (0.5, 0.8, 0.95),
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the posterior of a fitted estimator; of a mixture, that of its weightiest part.

        Parameters
        ----------
        estimator : fitted classifier with a ``posterior_``, or a pipeline that ends in one
        levels : tuple of float
            The share of the posterior inside each contour.
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.contour`, or with k to its `pcolormesh`.
        """
        first, weight = weightiest(estimator)
        name = None
        if weight < 1.0:
            name = f"{first.kernel} kernel, {first.metric} metric, weight {weight:.2f}"
        return cls(first.posterior_, name).plot(levels=levels, ax=ax, **kwargs)

    def plot(
        self, *, levels: tuple[float, ...] = (0.5, 0.8, 0.95), ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw, into `ax` if it is given; keywords go to the contours, or the mesh of k."""
        if not all(0.0 < level < 1.0 for level in levels):
            raise ValueError(f"Expected levels between 0 and 1; got {levels!r}. Try (0.5, 0.95).")
        ax = new_or_given_axes(ax)
        free_corner = "upper right"
        if self.posterior.scale_name == "k":
            _draw_by_k(ax, self.posterior, kwargs)
        elif _draw_contours(ax, self.posterior, sorted(levels), kwargs) > 0.0:
            free_corner = "lower right"
        mean = self.posterior.mean()
        ax.plot(
            mean["beta"],
            mean.iloc[1],
            "+",
            color=SECOND_LINE,
            markersize=12,
            markeredgewidth=2,
            label="mean",
            linestyle="none",
        )
        title = f"Posterior ({self.name})" if self.name else "Posterior"
        ax.set(xlabel="beta", ylabel=self.posterior.scale_name, title=title)
        ax.legend(loc=free_corner, framealpha=0.9)
        return self._keep(ax)


def _draw_contours(
    ax: Any, posterior: Posterior, levels: list[float], style: dict[str, Any]
) -> float:
    """Draw, and tell in which direction the contours lean."""
    beta, log_sigma, density = _density(posterior)
    sigma = np.exp(log_sigma)
    heights = _heights(density, levels)
    shades = [(*as_rgb([LINE])[0], alpha) for alpha in np.linspace(0.15, 0.6, len(levels))]
    ax.contourf(beta, sigma, density, levels=[*heights, 2.0 * density.max()], colors=shades)
    ax.contour(
        beta, sigma, density, levels=heights, **({"colors": LINE, "linewidths": 1.2} | style)
    )
    for level, shade in zip(reversed(levels), shades, strict=True):
        ax.fill_between([], [], color=shade, label=f"{level:.0%} of the posterior")
    is_inside = density >= heights[0]
    ax.set_xlim(_limits(beta[is_inside.any(axis=0)]))
    ax.set_yscale("log")
    ax.set_ylim(np.exp(_limits(log_sigma[is_inside.any(axis=1)])))
    _label_plainly(ax.yaxis, *ax.get_ylim())
    rows, columns = np.nonzero(is_inside)
    return float(np.cov(rows, columns)[0, 1])


def _density(
    posterior: Posterior,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Estimate the density of (beta, log sigma) on a grid; nodes count by their weight."""
    beta, sigma, weight = _points(posterior)
    points = np.stack([beta, np.log(sigma)])
    spread = np.sqrt(np.diag(np.cov(points, aweights=weight)))[:, None]
    least = 1e-6 * np.maximum(1.0, np.abs(points).max(axis=1, keepdims=True))
    unit = np.maximum(spread, least)
    # A parameter that is all but known, or follows from the other, has no density: blur it.
    blur = np.where(spread < least, 1.0, 1e-3)
    blurred = points / unit + blur * np.random.default_rng(0).standard_normal(points.shape)
    kde = gaussian_kde(blurred, weights=weight, bw_method=_BANDWIDTH)
    grids = [_grid(row, weight) for row in blurred]
    is_positive = bool((beta >= 0.0).all())
    if is_positive:
        grids[0] = np.linspace(max(grids[0][0], 0.0), grids[0][-1], _N_GRID)
    mesh = np.meshgrid(*grids)
    places = np.stack([axis.ravel() for axis in mesh])
    density = kde(places)
    if is_positive:  # what the smoothing pushes below zero belongs on this side of it
        density += kde(places * [[-1.0], [1.0]])
    density = density.reshape(mesh[0].shape)
    return grids[0] * unit[0], grids[1] * unit[1], density


def _points(
    posterior: Posterior,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Give beta, the scale and weights, shape (n,); of very many, a sample."""
    if posterior.beta.size > _MAX_POINTS:
        beta, scale = posterior.sample(_MAX_POINTS, np.random.default_rng(0))
        return beta, scale, np.full(len(beta), 1.0 / len(beta))
    return posterior.beta.ravel(), posterior.scale.ravel(), posterior.weight.ravel()


def _grid(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cover all but the last thousandth of the mass, and a margin of a standard deviation."""
    order = np.argsort(values)
    low, high = np.interp([0.0005, 0.9995], np.cumsum(weight[order]), values[order])
    return np.linspace(low - 1.0, high + 1.0, _N_GRID)


def _heights(density: NDArray[np.float64], levels: list[float]) -> list[float]:
    """Find the density above which lies each share of the mass, in increasing order."""
    ordered = np.sort(density.ravel())[::-1]
    cumulative = np.cumsum(ordered) / ordered.sum()
    return [float(ordered[np.searchsorted(cumulative, level)]) for level in reversed(levels)]


def _draw_by_k(ax: Any, posterior: Posterior, style: dict[str, Any]) -> None:
    """Shade beta for each k, which is whole: contours would cut through values that are none."""
    table = posterior.table()
    is_seen = table > 1e-3 * table.max()
    ks = np.arange(table.index[is_seen].min(), table.index[is_seen].max() + 1)
    beta, k, weight = _points(posterior)
    spread = max(float(posterior.sd()["beta"]), 1e-6)
    betas = _grid(beta / spread, weight) * spread
    # A Gaussian around each node or draw, of the width that the contours of sigma have.
    smooth = np.exp(-0.5 * ((betas[:, None] - beta) / (_BANDWIDTH * spread)) ** 2)
    smooth /= smooth.sum(axis=0)
    mass = np.stack([smooth @ (weight * (k == value)) for value in ks])
    style = {"cmap": "Blues", "vmin": 0.0} | style
    mesh = ax.pcolormesh(betas, ks, mass / mass.max(), **style)
    ax.figure.colorbar(mesh, ax=ax, label="density, relative to its peak")
    ax.yaxis.get_major_locator().set_params(integer=True)


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    margin = 0.1 * (values.max() - values.min())
    return float(values.min() - margin), float(values.max() + margin)


def _label_plainly(axis: Any, low: float, high: float) -> None:
    """Write 0.5 rather than 5 x 10^-1, at as many ticks as the range has room for."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    is_narrow = high < 8.0 * low
    axis.set_major_locator(MaxNLocator(6) if is_narrow else LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
