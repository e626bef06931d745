"""The seam to ArviZ: diagnostics of chains, and records in its own form, for 0.x and 1.x.

Diagnostics come from arviz-stats, which needs nothing but NumPy and SciPy; records from ArviZ,
which is optional.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield._extras import import_extra

Floats = NDArray[np.float64]

_MIN_DRAWS = 4  # a half chain; fewer have no diagnostics
_TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes ess_tail is the smaller of


def chain_diagnostics(values: Floats) -> dict[str, float]:
    """Monte Carlo error, effective sample sizes and R-hat of draws, shape (chain, draw)."""
    if len(values) == 1:
        half = values.shape[1] // 2
        values = values[:, : 2 * half].reshape(2, half)
    names = ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")
    if values.shape[1] < _MIN_DRAWS or np.ptp(values) == 0.0:
        return dict.fromkeys(names, np.nan)
    from arviz_stats.base import array_stats  # where ArviZ 1 is installed this takes a second

    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved: R-hat is inf
        diagnostics = (
            array_stats.mcse(values, method="mean"),
            array_stats.ess(values, method="bulk"),
            array_stats.ess(values, method="tail", prob=_TAILS),
            array_stats.rhat(values),
        )
    return {name: float(d) for name, d in zip(names, diagnostics, strict=True)}


def to_inference_data(posterior: dict[str, Floats], attrs: dict[str, str]) -> Any:
    """Give draws, shape (chain, draw), as ArviZ's InferenceData; from 1.0 on, as a DataTree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.x announces the next version
        arviz = import_extra("arviz")
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, attrs={"posterior": attrs})
    return arviz.from_dict(posterior=posterior, posterior_attrs=attrs)


def pareto_smoothed(
    log_ratios: Floats,
) -> tuple[Floats, Floats]:
    """Smooth log importance ratios, shape (n_points, n_draws); return log weights and Pareto k.

    Vehtari et al. (2024). The weights of each row sum to one. Ratios whose tail has fewer than
    five draws, or no more than one value, stay as they are, with an infinite k.
    """
    from arviz_stats.base import array_stats

    log_weights, pareto_k = np.empty_like(log_ratios), np.empty(len(log_ratios))
    for i, row in enumerate(log_ratios):
        try:
            log_weights[i], pareto_k[i] = array_stats.psislw(-row)  # it takes log likelihoods
        except (IndexError, ValueError):  # no tail to fit
            log_weights[i], pareto_k[i] = row - logsumexp(row), np.inf
    return log_weights, pareto_k
