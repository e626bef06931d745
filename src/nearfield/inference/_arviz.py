"""The seam to ArviZ: diagnostics of chains, and records in its own form, for 0.x and 1.x."""

import warnings
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MIN_DRAWS = 4  # a half chain; fewer have no diagnostics


def import_arviz() -> ModuleType:
    """Import ArviZ, which takes a second, when it is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it announces its own next version
        import arviz
    return arviz


def chain_diagnostics(values: NDArray[np.float64]) -> dict[str, float]:
    """Monte Carlo error, effective sample sizes and R-hat of draws, shape (chain, draw)."""
    if len(values) == 1:
        half = values.shape[1] // 2
        values = values[:, : 2 * half].reshape(2, half)
    names = ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")
    if values.shape[1] < _MIN_DRAWS or np.ptp(values) == 0.0:
        return dict.fromkeys(names, np.nan)
    arviz: Any = import_arviz()
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never moved: R-hat is inf
        diagnostics = (
            arviz.mcse(values, method="mean"),
            arviz.ess(values, method="bulk"),
            arviz.ess(values, method="tail"),
            arviz.rhat(values),
        )
    return {name: float(np.squeeze(d)) for name, d in zip(names, diagnostics, strict=True)}


def to_inference_data(posterior: dict[str, NDArray[np.float64]], attrs: dict[str, str]) -> Any:
    """Give draws, shape (chain, draw), as ArviZ's InferenceData; from 1.0 on, as a DataTree."""
    arviz: Any = import_arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, attrs={"posterior": attrs})
    return arviz.from_dict(posterior=posterior, posterior_attrs=attrs)


def pareto_smoothed(
    log_ratios: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smooth log importance ratios, shape (n_points, n_draws); return log weights and Pareto k.

    Vehtari et al. (2024). The weights of each row sum to one.
    """
    arviz: Any = import_arviz()
    log_weights, pareto_k = arviz.psislw(log_ratios)
    return np.asarray(log_weights), np.asarray(pareto_k)
