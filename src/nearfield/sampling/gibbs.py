"""Gibbs sampling of the labels: sweeps over all sites, each drawn from its full conditional.

The kernels keep the log weights of the classes at all sites up to date, not the support: what a
label that stays costs is then a comparison. Which class a site draws is decided by tables of
bounds, and computed only where they leave it open, so that the draws are exact.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import Rng, check_beta, check_generator, check_whole
from nearfield._compile import Kernel, compilable, compiled
from nearfield.field import LabelField, check_field
from nearfield.sampling.random_numbers import draw_key, uniform_at
from nearfield.sampling.support import (
    Coupling,
    add_coupling,
    coupling_arrays,
    move_coupling,
    starting_labels,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Helpers are inlined before compilation (inline="always"): a call would count array references,
# which costs more than a site that stays.

# Logits of the edges of equal cells of (0, 1): bounds of logit(u) by the cell that u is in.
_N_CELLS = 512
_LOGITS = np.log(np.arange(_N_CELLS + 1.0).clip(1e-300)) - np.log(
    (_N_CELLS - np.arange(_N_CELLS + 1.0)).clip(1e-300)
)
_LOGITS[[0, -1]] = -np.inf, np.inf

# exp from -32 to 0, a value every 1/32, with two terms of its series between them.
_STEPS = 32.0  # a unit
_LAST = 1024  # the entry of exp(0)
_EXPS = np.exp((np.arange(_LAST + 1.0) - _LAST) / _STEPS)
_EXPS[0] = 0.0  # exp(-32) and less
_SLOPE, _CURVATURE = 1.0 / _STEPS, 0.5 / _STEPS**2
_TOLERANCE = 2e-5  # of the sum of the weights: four times the error of the series, (1/32)^3 / 6


def draw_labels(
    rng: Rng,
    field: LabelField,
    beta: float,
    n_sweeps: int = 1_000,
    initial: ArrayLike | None = None,
) -> Ints:
    r"""Draw a labeling by Gibbs sampling: approximate, exact as the sweeps grow.

    Every sweep draws each label in turn from its full conditional,

    .. math:: p(y_i = g \mid y_{-i}) \propto \exp(\alpha_g + \beta h_{ig})

    Parameters
    ----------
    rng : Generator, seed or None, as `numpy.random.default_rng` takes it
        Its state alone decides the draw.
    field : LabelField
    beta : float
        Any real number, up to 1e100 in size.
    n_sweeps : int
        Sweeps over all sites; 1,000 in Friel and Pettitt (2011).
    initial : array-like of int, shape (n,), optional
        The labels to start from, left as they are; uniform random labels by default.

    Returns
    -------
    labels : ndarray of int, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import LabelField, gaussian_weights
    >>> from nearfield.sampling import draw_labels
    >>> rng = np.random.default_rng(0)
    >>> distances = distance_matrix(rng.normal(size=(30, 2)))
    >>> field = LabelField.from_weights(gaussian_weights(distances, 0.5), n_classes=2)
    >>> labels = draw_labels(rng, field, beta=1.5)
    >>> labels.shape
    (30,)
    >>> field.agreement(labels) > 15.0  # what labels at random have on average
    True
    """
    rng = check_generator(rng)
    check_field(field)
    beta = check_beta(beta)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=0)
    labels = starting_labels(rng, field, initial)
    sweeps, arguments = kernel_of(field, beta, labels)
    sweeps(*arguments, draw_key(rng), n_sweeps)
    return labels


def kernel_of(
    field: LabelField, beta: float, labels: Ints
) -> tuple[Kernel[[Coupling, Floats, Ints, np.uint64, int], None], tuple[Coupling, Floats, Ints]]:
    """Choose the kernel for a number of classes; give it and its arguments up to the labels."""
    log_weights = field.external_field[:, None] + beta * field.support(labels).T
    if field.n_classes == 2:
        log_odds = np.ascontiguousarray(log_weights[1:] - log_weights[:1])
        return two_class_sweeps, (coupling_arrays(field, 2.0 * beta), log_odds, labels)
    return class_sweeps, (coupling_arrays(field, beta), np.ascontiguousarray(log_weights), labels)


@compiled
def two_class_sweeps(
    coupling: Coupling, log_odds: Floats, labels: Ints, key: np.uint64, n_sweeps: int
) -> None:
    """Sweep over all sites `n_sweeps` times, changing `labels` and `log_odds` in place.

    Parameters
    ----------
    coupling : array, shape (n, n), or arrays of a CSR one
        Times 2 beta: how much log odds change where a label does.
    log_odds : shape (1, n)
        Of class 1 against class 0.
    """
    n_points = labels.shape[0]
    uniforms = np.empty(n_points)
    lower, upper = np.empty(n_points), np.empty(n_points)  # bounds of logit(u)
    for sweep in range(n_sweeps):
        for i in range(n_points):  # apart: the processor need not guess anything here
            uniforms[i] = uniform_at(key, sweep * n_points + i)
            lower[i], upper[i] = logit_bounds(uniforms[i])
        for i in range(n_points):
            new = draw_of_two(log_odds[0, i], uniforms[i], lower[i], upper[i])
            if new != labels[i]:
                labels[i] = new
                add_coupling(coupling, i, 2.0 * new - 1.0, log_odds, 0)


@compiled
def class_sweeps(
    coupling: Coupling, log_weights: Floats, labels: Ints, key: np.uint64, n_sweeps: int
) -> None:
    """Sweep over all sites `n_sweeps` times, changing `labels` and `log_weights` in place.

    Parameters
    ----------
    coupling : array, shape (n, n), or arrays of a CSR one
        Times beta.
    log_weights : shape (G, n)
        Of each class at each site, alpha_g + beta h_ig.
    """
    n_classes, n_points = log_weights.shape
    uniforms, thresholds = np.empty(n_points), np.empty(n_points)
    cumulative, log_n_others = np.empty(n_classes), math.log(n_classes - 1.0)
    for sweep in range(n_sweeps):
        for i in range(n_points):
            uniforms[i] = uniform_at(key, sweep * n_points + i)
            thresholds[i] = staying_lead(uniforms[i], log_n_others)
        for i in range(n_points):
            current = labels[i]
            largest, lead = lead_of(log_weights, i, current)
            if lead > thresholds[i]:
                continue
            new = draw_class_at(log_weights, i, cumulative, largest, current, uniforms[i])
            if new != current:
                labels[i] = new
                move_coupling(coupling, i, log_weights, current, new)


@compilable(inline="always")
def logit_bounds(uniform: float) -> tuple[float, float]:
    """Return a lower and an upper bound of logit(u), from a table."""
    cell = np.uint64(np.int64(uniform * _N_CELLS))  # unsigned: no test for a negative index
    return _LOGITS[cell], _LOGITS[cell + np.uint64(1)]


@compilable(inline="always")
def draw_of_two(log_odds: float, uniform: float, lower: float, upper: float) -> Any:
    """Draw class 1, else 0, if logit(u) is below its log odds, by bounds where they decide.

    It rises with the log odds whatever the current label is: coupling from the past needs that.
    """
    new = np.int64(log_odds > lower)
    if (log_odds > lower) != (log_odds >= upper):
        new = np.int64(uniform * (1.0 + math.exp(min(-log_odds, 700.0))) < 1.0)
    return new


@compilable(inline="always")
def staying_lead(uniform: float, log_n_others: float) -> float:
    """Return the lead over all other log weights with which a label surely stays.

    It stays if u < p, and p >= 1 / (1 + (G - 1) exp(-lead)); `log_n_others` is log(G - 1).
    """
    return logit_bounds(uniform)[1] + log_n_others


@compilable(inline="always")
def lead_of(log_weights: Floats, i: int, current: int) -> tuple[float, float]:
    """Return the largest log weight at a site, and by how much the current class leads."""
    largest, second = log_weights[0, i], -np.inf
    for g in range(1, log_weights.shape[0]):
        value = log_weights[g, i]
        second = max(second, min(largest, value))
        largest = max(largest, value)
    log_weight = log_weights[np.uint64(current), i]
    return largest, log_weight - (second if log_weight == largest else largest)


@compilable(inline="always")
def draw_class_at(
    log_weights: Floats, i: int, cumulative: Floats, largest: float, current: int, uniform: float
) -> int:
    """Draw a class at a site as `draw_class` does, by close bounds of exp where they decide.

    `cumulative` is room for one number a class.
    """
    n_classes = log_weights.shape[0]
    total = 0.0
    for g in range(n_classes):
        position = max((log_weights[g, i] - largest) * _STEPS, -1.0 * _LAST) + _LAST
        entry = np.int64(position)
        rest = position - entry
        total += _EXPS[np.uint64(entry)] * (1.0 + rest * (_SLOPE + _CURVATURE * rest))
        cumulative[g] = total
    # Inversion from the current class on, as a place on the line of all classes.
    place = uniform * total + (cumulative[np.uint64(current - 1)] if current > 0 else 0.0)
    place = place - total if place >= total else place
    low, high = place - _TOLERANCE * total, place + _TOLERANCE * total
    n_passed, n_perhaps = 0, 0
    for g in range(n_classes - 1):
        n_passed += cumulative[g] <= low
        n_perhaps += cumulative[g] <= high
    if n_passed != n_perhaps or low < 0.0 or high > total:
        for g in range(n_classes):
            cumulative[g] = log_weights[g, i]
        n_passed = draw_class(cumulative, current, uniform)
    return n_passed


@compilable(inline="always")
def draw_class(log_weights: Floats, current: int, uniform: float) -> int:
    """Draw a class by inversion, from the current one on: it stays if u is below its probability.

    Overwrites the log weights with the weights. Classes are counted, not branched on: a
    processor cannot guess them.
    """
    n_classes = log_weights.shape[0]
    largest = log_weights[0]
    for g in range(1, n_classes):
        largest = max(largest, log_weights[g])
    total = 0.0
    for g in range(n_classes):
        log_weights[g] = math.exp(log_weights[g] - largest)
        total += log_weights[g]
    left = uniform * total
    n_passed = 0
    g = current
    for _ in range(n_classes - 1):
        left -= log_weights[g]
        n_passed += left >= 0.0
        g = g + 1 if g + 1 < n_classes else 0
    new = current + n_passed
    return new if new < n_classes else new - n_classes
