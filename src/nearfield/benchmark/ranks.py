"""Mean ranks of methods over data sets, and how far apart they must be to differ."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range

from nearfield._extras import import_extra


def mean_ranks(results: pd.DataFrame, loss: str) -> pd.Series:
    """Rank the methods on each data set by their mean loss, and average the ranks.

    Parameters
    ----------
    results : DataFrame
        As of `read_results`; only data sets that all methods have finished count.
    loss : str

    Returns
    -------
    ranks : Series
        By method, the best first; ties share the mean of their ranks.
    """
    table = complete_table(results, loss)
    ranks = pd.DataFrame(rankdata(table, axis=1), index=table.index, columns=table.columns)
    return ranks.mean().sort_values()


def complete_table(results: pd.DataFrame, loss: str) -> pd.DataFrame:
    """Average a loss over splits: a row for each data set that all methods finished."""
    succeeded = results[results["failure"].isna()]
    splits = succeeded.groupby(["problem", "seed"])["method"].nunique()
    whole = splits[splits == results["method"].nunique()].reset_index()[["problem", "seed"]]
    common = succeeded.merge(whole, on=["problem", "seed"])
    return common.pivot_table(index="problem", columns="method", values=loss, aggfunc="mean")


def critical_difference(n_methods: int, n_problems: int, level: float = 0.05) -> float:
    r"""Give the difference of mean ranks that is significant by the Nemenyi test.

    .. math:: q_\alpha \sqrt{k (k + 1) / 6N}

    for k methods and N data sets (Demsar, 2006), with :math:`q_\alpha` the upper quantile of the
    studentized range over the square root of two.
    """
    quantile = studentized_range.ppf(1.0 - level, n_methods, np.inf) / np.sqrt(2.0)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_problems)))


def draw_ranks(ranks: pd.Series, difference: float, title: str) -> Any:
    """Draw mean ranks along a line, with bars over those that the test cannot tell apart.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    figure = import_extra("matplotlib.figure").Figure(
        figsize=(8.0, 1.2 + 0.28 * len(ranks)), layout="constrained"
    )
    ax = figure.subplots()
    values = ranks.sort_values()
    for row, (name, rank) in enumerate(values.items()):
        ax.plot([rank, rank], [0, -row - 1], color="0.6", linewidth=0.8)
        ax.plot([rank], [0], "o", color="#0072B2", markersize=4)
        ax.annotate(f"{name}  {rank:.2f}", (rank, -row - 1), ha="left", va="center", fontsize=9)
    for row, (first, last) in enumerate(indistinct_groups(values.to_numpy(), difference)):
        ax.plot([first, last], [0.5 + 0.4 * row] * 2, color="0.1", linewidth=3)
    ax.set_xlim(1.0, len(values) + 2.0)
    ax.yaxis.set_visible(False)
    ax.xaxis.set_ticks_position("top")
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.set_title(f"{title}; critical difference {difference:.2f}", fontsize=10)
    return figure


def indistinct_groups(ranks: np.ndarray, difference: float) -> list[tuple[float, float]]:
    """Find the longest stretches of sorted ranks within the critical difference."""
    groups: list[tuple[float, float]] = []
    for first in ranks:
        last = ranks[ranks <= first + difference].max()
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((float(first), float(last)))
    return groups
