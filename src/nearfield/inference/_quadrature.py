"""Quadrature over (beta, scale): nodes at the scales of a rule, and the posterior from them.

One record, `Nodes`, for path sampling and pseudolikelihood. The latter can evaluate its likelihood
at any beta: `integrate_row` places the betas of each scale around the mode there.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import FieldFamily
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._scale_rules import ScaleRule, gauss_nodes, rule_error

Floats = NDArray[np.float64]
LogLikelihood = Callable[[Floats], Floats]

_MIN_WEIGHT = 1e-9  # of a node
_BETA_DROP = 30.0  # a row ends where its log density has fallen by so much
_N_BETA_SEARCH = 48
_N_BETA_AGAIN = 24  # in a range that is about known
_N_A_PANEL = 10  # betas


class Nodes(NamedTuple):
    """Nodes of a quadrature over (beta, scale), a row of betas at each scale of a rule.

    Their log posterior masses are up to the evidence. There may be several estimates of them:
    the first is from all draws, the others are from parts of the draws.
    """

    rule: ScaleRule
    betas: Floats  # shape (N,)
    rows: NDArray[np.int64]  # shape (N,): the scale
    log_masses: Floats  # shape (E, N)
    beta_cells: Floats | None = None  # shape (2, N): where the cell of each beta begins and ends

    @property
    def scales(self) -> Floats:
        """The scale of each node, shape (N,)."""
        return self.rule.scales[self.rows]

    def row_totals(self) -> Floats:
        """Return the log posterior mass of each row, shape (R,)."""
        log_masses = self.log_masses[0]
        largest = log_masses.max()
        sums = np.bincount(self.rows, np.exp(log_masses - largest), len(self.rule.scales))
        return np.log(np.maximum(sums, 1e-300)) + largest

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Return the log evidence, the weights, and the means of beta and the scale.

        By each estimate of the masses: shapes (E,), (E, N) and (E, 2).
        """
        log_evidence = logsumexp(self.log_masses, axis=1)
        weights = np.exp(self.log_masses - log_evidence[:, None])
        return log_evidence, weights, weights @ np.stack([self.betas, self.scales], axis=1)

    def posterior(
        self,
        family: FieldFamily,
        outside_mass: float,
        log_evidence_error: float | None = None,
        mean_error: Floats | None = None,
    ) -> Posterior:
        """Make the record, without nodes that have no weight.

        `mean_error`, shape (2,), is that of the masses; that of the rule over scales is added.
        """
        log_evidence, (weight, *_), _ = self.moments()
        mass = np.maximum(np.bincount(self.rows, weight, len(self.rule.scales)), 1e-300)
        beta_means = np.bincount(self.rows, weight * self.betas, len(self.rule.scales)) / mass
        error = rule_error(family, self.rule, self.row_totals(), beta_means)
        keep = weight > _MIN_WEIGHT
        scale_cells = np.stack([self.rule.edges[:-1], self.rule.edges[1:]])[:, self.rows[keep]]
        has_cells = self.beta_cells is not None
        return Posterior.from_nodes(
            self.betas[keep],
            self.scales[keep],
            weight[keep] / weight[keep].sum(),
            family.scale_name,
            log_evidence=float(log_evidence[0]),
            log_evidence_error=log_evidence_error,
            mean_error=error if mean_error is None else np.hypot(mean_error, error),
            outside_mass=outside_mass,
            beta_cells=None if self.beta_cells is None else self.beta_cells[:, keep],
            scale_cells=scale_cells if has_cells else None,
        )


class Row(NamedTuple):
    """The betas at one scale, and their log masses given that scale."""

    betas: Floats  # shape (B,)
    log_masses: Floats  # shape (B,)
    edges: Floats  # shape (B + 1,), of the cells of the betas


def integrate_row(log_likelihood: LogLikelihood, priors: Priors, hint: Row | None = None) -> Row:
    """Integrate over beta at one scale by Gauss-Legendre panels around the mode.

    Parameters
    ----------
    log_likelihood : callable
        Of an array of betas.
    hint : Row, optional
        A row nearby, whose range is tried first.
    """

    def log_density(betas: Floats) -> Floats:
        return log_likelihood(betas) + priors.log_beta(betas)

    edges = _panel_edges(log_density, priors, hint)
    betas, widths = gauss_nodes(edges, _N_A_PANEL)
    log_masses = log_density(betas) + np.log(widths)
    return Row(betas, log_masses, edges[0] + np.append(0.0, np.cumsum(widths)))


def _panel_edges(log_density: LogLikelihood, priors: Priors, hint: Row | None) -> Floats:
    """Cut the betas that matter into panels: two flanks and what is near the mode."""
    support = priors.beta_range
    low, high = support
    if hint is not None:
        width = hint.betas[-1] - hint.betas[0]
        low = max(support[0], hint.betas[0] - 0.2 * width)
        high = min(support[1], hint.betas[-1] + 0.2 * width)
    for _ in range(8):
        n_search = _N_BETA_SEARCH if hint is None else _N_BETA_AGAIN
        # Dense near zero, where the posterior usually is, and out to the tails of the prior; of
        # a heavy-tailed one the whole posterior would else be lost between two betas.
        unit = min(0.05 * (high - low) / n_search + 1e-3, 1.0)
        first, last = np.arcsinh(low / unit), np.arcsinh(high / unit)
        betas = np.sinh(np.linspace(first, last, n_search)) * unit
        betas[0], betas[-1] = low, high
        values = log_density(betas)
        values[np.isnan(values)] = -np.inf
        is_heavy = np.flatnonzero(values > values.max() - _BETA_DROP)
        first, last = max(is_heavy[0] - 1, 0), min(is_heavy[-1] + 1, len(betas) - 1)
        if hint is not None and (
            (is_heavy[0] == 0 and low > support[0])
            or (is_heavy[-1] == len(betas) - 1 and high < support[1])
        ):
            (low, high), hint = support, None  # the hint was wrong
            continue
        is_narrow_enough = last - first > n_search // (2 if hint is None else 4)
        low, high = float(betas[first]), float(betas[last])
        if is_narrow_enough:
            break
    is_near = np.flatnonzero(values > values.max() - 3.0)
    inner_low, inner_high = betas[max(is_near[0] - 1, first)], betas[min(is_near[-1] + 1, last)]
    # Cut at the mode: a density that rises at once and falls slowly needs short panels first.
    margin = 0.05 * (inner_high - inner_low)
    mode = np.clip(betas[np.argmax(values)], inner_low + margin, inner_high - margin)
    return np.unique([low, inner_low, mode, inner_high, high])


def nodes_of_rows(rule: ScaleRule, rows: list[Row]) -> Nodes:
    """Join the rows at the scales of a rule."""
    numbers = np.repeat(np.arange(len(rows)), [len(row.betas) for row in rows])
    log_masses = np.concatenate([row.log_masses for row in rows]) + rule.log_priors[numbers]
    betas = np.concatenate([row.betas for row in rows])
    cells = np.concatenate([[row.edges[:-1], row.edges[1:]] for row in rows], axis=1)
    return Nodes(rule, betas, numbers, log_masses[None], cells)


def supports(
    family: FieldFamily, scales: list[float], labels: NDArray[np.int64]
) -> Iterator[Floats]:
    """Give the support at rising scales, as the family does it best: one by one, or all in a row.

    A family whose support changes little from one scale to the next has a method of this name.
    """
    in_a_row = getattr(family, "supports", None)
    if in_a_row is not None:
        return in_a_row(scales, labels)
    return (family.support(scale, labels) for scale in scales)
