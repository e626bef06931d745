"""Pseudolikelihood: the product of the conditionals in place of the joint, by quadrature."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive
from nearfield.field import FieldFamily, check_external_field
from nearfield.inference._engine import Engine
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._quadrature import (
    LogLikelihood,
    Nodes,
    Row,
    integrate_row,
    nodes_of_rows,
    supports,
)
from nearfield.inference._scale_rules import ScaleRule, final_rule, scan_rule
from nearfield.inference._target import Target, check_target
from nearfield.inference.conditionals import log_pseudolikelihoods

Floats = NDArray[np.float64]

_N_SCAN = 24
_LARGEST_EXPONENT = 700.0  # exp(-700) is as good as never
_FIRST_DENSITY = 0.5  # of scales that only show where to put others


@dataclass(frozen=True)
class Pseudolikelihood(Engine):
    r"""Settings of pseudolikelihood inference (Besag, 1974).

    .. math:: \pi(y \mid \beta, \sigma) \approx \prod_i p(y_i \mid y_{-i}, \beta, \sigma)

    Friel and Pettitt (2011), section 4.1. An approximation: it ignores dependence beyond first
    order, and is instant. With a directed neighbourhood it is the model of Holmes and Adams.

    On 40 points in three clusters, with three classes and parameters drawn from the prior, its 90%
    intervals of beta held the true value in 93% (Gaussian) and 92% (exponential kernel) of 300
    simulations, and its means of beta were 0.15 and 0.00 posterior sds too large.

    Parameters
    ----------
    density : float
        How densely scales are placed; 1 is enough, and 2 shows that it was.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import Pseudolikelihood
    >>> points = np.random.default_rng(0).normal(size=(20, 2))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> engine = Pseudolikelihood()
    >>> posterior = engine.infer(np.random.default_rng(1), family, labels)
    >>> posterior.mean().round(1).to_dict()
    {'beta': 3.6, 'sigma': 0.7}
    """

    needs_joint = False
    density: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.density, "density")

    def _infer(
        self, rng: np.random.Generator, target: Target, n_jobs: int | None, verbose: int
    ) -> Posterior:
        """Nothing in it is random or runs for long."""
        return _integrate(target, target.family.external_field, self.density)


def pseudolikelihood_estimate(
    family: FieldFamily,
    labels: NDArray[np.int64],
    priors: Priors | None = None,
    external_field: ArrayLike | None = None,
) -> tuple[float, float]:
    """Return the most probable scale of the pseudolikelihood posterior and the mean beta there.

    The prior of beta is cut to beta > 0 where it allows that: in a stratified sample every point
    has one fellow less than the others have, which pseudolikelihood can take for repulsion.
    `external_field` stands in for that of the family.
    """
    target = check_target(family, labels, priors, needs_joint=False)
    prior = target.priors.beta
    if prior.sf(0.0) > 0.0:
        target = replace(target, priors=replace(target.priors, beta=_AboveZero(prior)))
    external_field = family.external_field if external_field is None else external_field
    posterior = _integrate(target, external_field)
    scales, index = np.unique(posterior.scale, return_inverse=True)
    scale = scales[np.argmax(np.bincount(index, posterior.weight))]
    is_there = posterior.scale == scale
    beta = np.average(posterior.beta[is_there], weights=posterior.weight[is_there])
    return float(beta), float(scale)


def log_pseudolikelihood(
    support: Floats,
    labels: NDArray[np.int64],
    external_field: Floats,
    multiplicities: Floats | None = None,
) -> LogLikelihood:
    r"""Make the log pseudolikelihood of beta at one scale from the support, shape (n, G).

    .. math:: \sum_i s_i \log p(y_i \mid y_{-i})
              = -\sum_i s_i \log \sum_g \exp(\alpha_g - \alpha_{y_i}
              + \beta (h_{ig} - h_{i y_i}))

    with the multiplicities s, one by default.
    """
    # One row to each of the other classes, so that a sum over classes runs along whole rows.
    others = (labels + np.arange(1, support.shape[1])[:, None]) % support.shape[1]
    sites = np.arange(len(labels))
    gains = support[sites, others] - support[sites, labels]
    offsets = external_field[others] - external_field[labels]

    def evaluate(betas: Floats) -> Floats:
        values = np.empty(len(betas))
        log_pseudolikelihoods(betas, gains, offsets, values)
        return values

    def evaluate_multiples(betas: Floats) -> Floats:
        odds = (np.exp(np.minimum(offsets + beta * gains, _LARGEST_EXPONENT)) for beta in betas)
        return -np.array([multiplicities @ np.log1p(each.sum(axis=0)) for each in odds])

    return evaluate if multiplicities is None else evaluate_multiples


@dataclass(frozen=True)
class _AboveZero:
    """A prior of beta given that beta > 0: what the quadrature needs of it."""

    prior: Any

    def logpdf(self, betas: Floats) -> Floats:
        return np.where(betas > 0.0, self.prior.logpdf(betas) - self.prior.logsf(0.0), -np.inf)

    def ppf(self, q: float) -> float:
        # By the upper tail, which is where little of the prior may be left.
        return max(float(self.prior.isf((1.0 - q) * self.prior.sf(0.0))), 0.0)


def _integrate(target: Target, external_field: ArrayLike | None, density: float = 1.0) -> Posterior:
    family, labels, priors = target.family, target.labels, target.priors
    alpha = check_external_field(external_field, family.n_classes)
    known: dict[float, Row] = {}

    def integrate(rule: ScaleRule) -> Nodes:
        """Integrate over beta at each scale of a rule that is not known already."""
        hint = None
        missing = supports(family, [s for s in rule.scales.tolist() if s not in known], labels)
        for scale in rule.scales.tolist():
            if scale not in known:
                log_likelihood = log_pseudolikelihood(
                    next(missing), labels, alpha, family.multiplicities
                )
                known[scale] = integrate_row(log_likelihood, priors, hint)
            hint = known[scale]
        return nodes_of_rows(rule, [known[scale] for scale in rule.scales.tolist()])

    nodes, outside = integrate(scan_rule(family, priors, _N_SCAN)), 0.0
    for stage_density in (_FIRST_DENSITY, density):  # the first shows where to put the second
        rule, totals = nodes.rule, nodes.row_totals()
        finer = final_rule(family, priors, rule, totals, stage_density)
        outside += rule.mass_outside(totals, *finer.scales[[0, -1]])
        nodes = integrate(finer)
    return nodes.posterior(family, outside)
