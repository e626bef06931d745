"""Whether the auxiliary labels of chains still depend on where their Gibbs sampling starts.

At a first-order transition Gibbs sampling stays in the phase it starts in, ordered or disordered,
and at strongly negative beta it freezes. The chains over the parameters mix all the same, towards
a wrong posterior, which neither R-hat nor an effective sample size shows.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.inference._draws import draw_from_labels, draw_from_one_class, draw_from_random_start
from nearfield.inference._posterior import Posterior
from nearfield.inference._target import Point, Target

Draw = Callable[[np.random.Generator, Point], NDArray[np.int64]]


@dataclass(frozen=True)
class HysteresisSettings:
    """Of the test.

    Attributes
    ----------
    n_pairs : tuple of int
        How many pairs of auxiliary draws are compared: one for 25 draws of the run, within these.
    shifts : tuple of float
        Posterior sds by which beta is moved: a biased posterior lies beside the transition.
    significance : float
        Of a comparison. One below it is repeated, and warns only if it comes out the same again,
        so that a false alarm has a probability of 1e-6.
    max_bias : float
        Smaller biases of beta, in posterior sds, are no reason to warn.
    fewest_pairs : int
        For a t test.
    """

    n_pairs: tuple[int, int] = (20, 120)
    shifts: tuple[float, ...] = (-1.0, 0.0, 1.0)
    significance: float = 1e-3
    max_bias: float = 0.25
    fewest_pairs: int = 5


_SETTINGS = HysteresisSettings()


class Comparison(NamedTuple):
    """The agreement of auxiliary labels from another start, less that of the labels of the run."""

    start: str
    difference: float  # of the means
    p_value: float  # of a paired t test
    bias: float  # of beta that it makes, in posterior sds


class AuxiliaryDraws(NamedTuple):
    """How a run draws auxiliary labels at a point, and from where."""

    draw: Draw
    is_from_random: bool
    n_sweeps: int


def warn_of_hysteresis(
    rng: np.random.Generator, target: Target, posterior: Posterior, auxiliary: AuxiliaryDraws
) -> None:
    """Warn if auxiliary labels from another start agree more, or less, than those of the run."""
    suspects = _significant(compare_starts(rng, target, posterior, auxiliary))
    if not suspects:
        return
    again = _significant(compare_starts(rng, target, posterior, auxiliary))
    confirmed = [again[start] for start in suspects if start in again]
    if confirmed:
        found = confirmed[0]
        warnings.warn(
            f"Auxiliary labels depend on where their Gibbs sampling starts: from {found.start} "
            f"their agreement changes by {found.difference:+.3g} (p = {found.p_value:.1g}), which "
            f"biases beta by about {abs(found.bias):.1g} posterior sds. The field has a "
            "first-order transition, or sampling freezes. Use PathSampling, or raise n_sweeps.",
            ConvergenceWarning,
            stacklevel=4,  # whoever called infer
        )


def _significant(comparisons: list[Comparison]) -> dict[str, Comparison]:
    return {
        found.start: found
        for found in comparisons
        if found.p_value < _SETTINGS.significance and abs(found.bias) > _SETTINGS.max_bias
    }


def compare_starts(
    rng: np.random.Generator, target: Target, posterior: Posterior, auxiliary: AuxiliaryDraws
) -> list[Comparison]:
    r"""Compare starts at draws of the posterior, spread over the chains, and beside them.

    Where neighbours attract, other starts are random labels and labels of one class; where they
    repel, random labels and the observed ones. An error of E[S] biases beta by about

    .. math:: \Delta E[S] \operatorname{sd}(\beta)

    posterior sds: the slope of the log likelihood that it adds, over one sd.
    """
    n_draws, sd = posterior.beta.size, float(posterior.sd()["beta"])
    n_pairs = int(np.clip(n_draws // 25, *_SETTINGS.n_pairs))
    chosen = np.linspace(0, n_draws - 1, n_pairs).round().astype(int)
    betas = posterior.beta.ravel()[chosen] + sd * np.resize(_SETTINGS.shifts, n_pairs)
    positions = target.position_of(betas, posterior.scale.ravel()[chosen])
    differences: dict[str, list[float]] = {}
    for beta, scale in positions.T.tolist():
        point = target.at((beta, scale))
        if point is None:  # outside the prior
            continue
        agreement = point.field.agreement(auxiliary.draw(rng, point))
        for start, labels in _other_starts(rng, target, point, auxiliary).items():
            change = point.field.agreement(labels) - agreement
            differences.setdefault(start, []).append(change)
    return [_compare(start, np.array(values), sd) for start, values in differences.items()]


def _other_starts(
    rng: np.random.Generator, target: Target, point: Point, auxiliary: AuxiliaryDraws
) -> dict[str, NDArray[np.int64]]:
    """Draw auxiliary labels from other starts than those of the run."""
    labels, n_sweeps = {}, auxiliary.n_sweeps
    if not auxiliary.is_from_random:
        labels["random labels"] = draw_from_random_start(rng, point, n_sweeps)
    if point.beta > 0.0:
        labels["labels of one class"] = draw_from_one_class(rng, point, n_sweeps)
    elif auxiliary.is_from_random:
        labels["the observed labels"] = draw_from_labels(rng, point, n_sweeps, target.labels)
    return labels


def _compare(start: str, differences: NDArray[np.float64], sd: float) -> Comparison:
    mean, p_value = float(differences.mean()), 1.0
    if len(differences) >= _SETTINGS.fewest_pairs and mean != 0.0:
        error = max(float(stats.sem(differences)), 1e-12)
        p_value = 2.0 * float(stats.t.sf(abs(mean) / error, len(differences) - 1))
    return Comparison(start, mean, p_value, mean * sd)
