"""Gibbs sampling of the labels: sweeps over all sites, each drawn from its full conditional."""

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_beta, check_generator, check_whole
from nearfield.field import LabelField
from nearfield.sampling._random import draw_key, uniform_at
from nearfield.sampling._support import (
    coupling_arrays,
    move_label,
    starting_labels,
    stored_support,
)

# Helpers are inlined before compilation (inline="always"): a call would count array references,
# which costs more than a site that stays.

# Upper bounds of exp on a grid from -32 to 32: most sites are decided without an exp.
_BOUND_RANGE = 32.0
_BOUND_STEPS = 32.0  # a unit; the bound is within 3% of exp
_EXP_BOUNDS = np.exp((np.arange(2 * _BOUND_RANGE * _BOUND_STEPS + 1) + 1) / _BOUND_STEPS - 32.0)
_EXP_BOUNDS[-1] = np.inf  # beyond the range nothing is known


def draw_labels(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    n_sweeps: int = 1_000,
    initial: ArrayLike | None = None,
) -> NDArray[np.int64]:
    r"""Draw a labeling by Gibbs sampling: approximate, exact as the sweeps grow.

    Every sweep draws each label in turn from its full conditional,

    .. math:: p(y_i = g \mid y_{-i}) \propto \exp(\alpha_g + \beta h_{ig})

    Parameters
    ----------
    rng : numpy.random.Generator
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
    """
    check_generator(rng)
    beta = check_beta(beta)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=0)
    labels = starting_labels(rng, field, initial)
    gibbs_sweeps(
        coupling_arrays(field),
        field.total_coupling,
        field.external_field,
        beta,
        labels,
        stored_support(field, labels),
        draw_key(rng),
        n_sweeps,
    )
    return labels


@njit(cache=True, nogil=True)
def gibbs_sweeps(coupling, total_coupling, external_field, beta, labels, support, key, n_sweeps):
    """Sweep over all sites `n_sweeps` times, changing `labels` and `support` in place."""
    n_points = labels.shape[0]
    log_weights = np.empty_like(external_field)
    for sweep in range(n_sweeps):
        for i in range(n_points):
            uniform = uniform_at(key, sweep * n_points + i)
            weigh_classes(log_weights, total_coupling, external_field, beta, support, i)
            if surely_stays(log_weights, labels[i], uniform):
                continue
            new = draw_class(log_weights, labels[i], uniform)
            if new != labels[i]:
                move_label(coupling, support, labels, i, new)


@register_jitable(inline="always")
def weigh_classes(log_weights, total_coupling, external_field, beta, support, i):
    """Fill in the log weight of each class at a site, alpha_g + beta h_ig."""
    left = total_coupling[i]
    for row in range(support.shape[0]):
        class_support = support[row, i]
        log_weights[row + 1] = external_field[row + 1] + beta * class_support
        left -= class_support
    log_weights[0] = external_field[0] + beta * left


@register_jitable(inline="always")
def surely_stays(log_weights, current, uniform):
    """Tell whether bounds alone show that `draw_class` returns the current label.

    It does when uniform < p(current), or uniform * sum_g exp(log odds of g to current) < 1.
    """
    current_log_weight = log_weights[np.uint64(current)]  # unsigned, as in `exp_bound`
    bound = 1.0
    for g in range(log_weights.shape[0]):
        if g != current:
            bound += exp_bound(log_weights[g] - current_log_weight)
    return uniform * bound < 1.0


@register_jitable(inline="always")
def exp_bound(x):
    """Return an upper bound of exp(x), from a table."""
    cell = (min(max(x, -_BOUND_RANGE), _BOUND_RANGE) + _BOUND_RANGE) * _BOUND_STEPS
    return _EXP_BOUNDS[np.uint64(np.int64(cell))]  # unsigned: spares the test for a negative index


@register_jitable(inline="always")
def draw_class(log_weights, current, uniform):
    """Draw a class by inversion, from the current one on so that `surely_stays` can decide.

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
