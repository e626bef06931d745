"""Whether the auxiliary labels of chains still depend on where their Gibbs sampling starts.

At a first-order transition Gibbs sampling stays in the phase it starts in, ordered or disordered,
and at strongly negative beta it freezes. The chains over the parameters mix all the same, towards
a wrong posterior, which neither R-hat nor an effective sample size shows.
"""

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.inference._posterior import Posterior
from nearfield.inference._target import Point, Target
from nearfield.sampling import draw_after_clusters, draw_labels

Start = Literal["random", "data"]

_RANDOM, _ONE_CLASS, _OBSERVED = "random labels", "labels of one class", "the observed labels"
_N_PAIRS = 20, 120  # of auxiliary draws that are compared: one for 25 draws, within these
_SHIFTS = -1.0, 0.0, 1.0  # of beta, in posterior sds: a biased posterior lies beside the transition
# Of a comparison. One below it is repeated, and warns only if it comes out the same again, so that
# a false alarm has a probability of 1e-6.
_SIGNIFICANCE = 1e-3
_MAX_BIAS = 0.25  # of beta, in posterior sds; smaller ones are no reason to warn
_FEWEST_PAIRS = 5  # for a t test


class Comparison(NamedTuple):
    """The agreement of auxiliary labels from another start, less that of the labels of the run."""

    difference: float  # of the means
    p_value: float  # of a paired t test
    bias: float  # of beta that it makes, in posterior sds


def warn_of_hysteresis(
    rng: np.random.Generator, target: Target, posterior: Posterior, n_sweeps: int, start: Start
) -> None:
    """Warn if auxiliary labels from another start agree more, or less, than those of the run."""
    suspects = _significant_starts(rng, target, posterior, n_sweeps, start)
    if not suspects:
        return
    again = _significant_starts(rng, target, posterior, n_sweeps, start)
    confirmed = [other for other in suspects if other in again]
    if confirmed:
        found = again[confirmed[0]]
        warnings.warn(
            f"Auxiliary labels depend on where their Gibbs sampling starts: from {confirmed[0]} "
            f"their agreement changes by {found.difference:+.3g} (p = {found.p_value:.1g}), which "
            f"biases beta by about {abs(found.bias):.1g} posterior sds. The field has a "
            "first-order transition, or sampling freezes. Use PathSampling, or raise n_sweeps.",
            ConvergenceWarning,
            stacklevel=4,  # whoever called infer
        )


def _significant_starts(
    rng: np.random.Generator, target: Target, posterior: Posterior, n_sweeps: int, start: Start
) -> dict[str, Comparison]:
    r"""Compare starts at draws of the posterior and beside them; give those that differ.

    Where neighbours attract, other starts are random labels and labels of one class; where they
    repel, random labels and the observed ones. An error of E[S] biases beta by about

    .. math:: \Delta E[S] \operatorname{sd}(\beta)

    posterior sds: the slope of the log likelihood that it adds, over one sd.
    """
    own = _OBSERVED if start == "data" else _RANDOM
    n_draws, sd = posterior.beta.size, float(posterior.sd()["beta"])
    n_pairs = int(np.clip(n_draws // 25, *_N_PAIRS))
    chosen = np.linspace(0, n_draws - 1, n_pairs).round().astype(int)
    betas = posterior.beta.ravel()[chosen] + sd * np.resize(_SHIFTS, n_pairs)
    positions = target.position_of(betas, posterior.scale.ravel()[chosen])
    differences: dict[str, list[float]] = {}
    for beta, scale in positions.T.tolist():
        point = target.at((beta, scale))
        if point is None:  # outside the prior
            continue
        agreement = _draw_agreement(rng, target, point, n_sweeps, own)
        for other in (_RANDOM, _ONE_CLASS if point.beta > 0.0 else _OBSERVED):
            if other != own:
                change = _draw_agreement(rng, target, point, n_sweeps, other) - agreement
                differences.setdefault(other, []).append(change)
    found = {other: _compare(np.array(values), sd) for other, values in differences.items()}
    return {
        other: change
        for other, change in found.items()
        if change.p_value < _SIGNIFICANCE and abs(change.bias) > _MAX_BIAS
    }


def _draw_agreement(
    rng: np.random.Generator, target: Target, point: Point, n_sweeps: int, start: str
) -> float:
    """Draw auxiliary labels from a start and return their agreement."""
    field, beta = point.field, point.beta
    if start == _OBSERVED:
        return field.agreement(draw_labels(rng, field, beta, n_sweeps, target.labels))
    one_class = None
    if start == _ONE_CLASS:
        one_class = np.full(field.n_points, rng.integers(field.n_classes))
    return field.agreement(draw_after_clusters(rng, field, beta, n_sweeps, one_class))


def _compare(differences: NDArray[np.float64], sd: float) -> Comparison:
    mean, p_value = float(differences.mean()), 1.0
    if len(differences) >= _FEWEST_PAIRS and mean != 0.0:
        error = max(float(stats.sem(differences)), 1e-12)
        p_value = 2.0 * float(stats.t.sf(abs(mean) / error, len(differences) - 1))
    return Comparison(mean, p_value, mean * sd)
