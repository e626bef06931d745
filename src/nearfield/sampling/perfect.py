"""Perfect sampling of two classes by coupling from the past (Propp and Wilson, 1996)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield._checks import Rng, check_beta, check_generator, check_whole
from nearfield._compile import compilable, compiled
from nearfield.field import LabelField, check_field
from nearfield.sampling.gibbs import draw_of_two, kernel_of, logit_bounds
from nearfield.sampling.random_numbers import draw_key, uniform_at
from nearfield.sampling.support import Coupling, add_coupling

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PerfectDraw(NamedTuple):
    """A draw by coupling from the past, and how far back it had to start."""

    labels: Ints
    coalescence_time: int


def draw_labels_perfect(
    rng: Rng,
    field: LabelField,
    beta: float,
    *,
    max_sweeps: int = 1_000_000,
    return_time: bool = False,
) -> Any:
    r"""Draw a labeling from exactly the field's distribution: two classes, beta >= 0.

    Two Gibbs chains, from all labels 0 and from all labels 1, share their random numbers and
    start ever further in the past until they meet by time zero. With beta >= 0 every other chain
    is caught between them, so that where they meet is a draw from the field itself.

    Parameters
    ----------
    rng : Generator, seed or None, as `numpy.random.default_rng` takes it
    field : LabelField
        With two classes.
    beta : float
        At least zero. Far above the transition the chains take very long to meet.
    max_sweeps : int
        How far into the past to go before giving up with an error.
    return_time : bool
        Whether to return the coalescence time too.

    Returns
    -------
    labels : ndarray of int, shape (n,)
    coalescence_time : int
        How many sweeps into the past the chains had to start; it doubles until they meet. Only
        with `return_time`, which makes the result a `PerfectDraw`.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import LabelField, gaussian_weights
    >>> from nearfield.sampling import draw_labels_perfect
    >>> rng = np.random.default_rng(0)
    >>> distances = distance_matrix(rng.normal(size=(30, 2)))
    >>> field = LabelField.from_weights(gaussian_weights(distances, 0.5), n_classes=2)
    >>> labels = draw_labels_perfect(rng, field, beta=1.5)
    >>> labels.shape
    (30,)
    >>> field.agreement(labels) > 15.0  # what labels at random have on average
    True
    """
    rng = check_generator(rng)
    check_field(field)
    beta = check_beta(beta)
    max_sweeps = check_whole(max_sweeps, "max_sweeps", minimum=1)
    if field.n_classes != 2 or beta < 0.0:
        raise ValueError(
            f"Expected two classes and beta >= 0, where the chains keep their order; got "
            f"n_classes={field.n_classes}, beta={beta:g}. Use draw_labels instead."
        )
    key = draw_key(rng)
    n_sweeps = 1
    while True:
        labels, n_different = _run_from_the_past(field, beta, key, n_sweeps)
        if n_different == 0:
            return PerfectDraw(labels, n_sweeps) if return_time else labels
        if n_sweeps == max_sweeps:
            break
        n_sweeps = min(2 * n_sweeps, max_sweeps)
    raise RuntimeError(
        f"Expected the chains to meet within max_sweeps={max_sweeps} sweeps; they still differ at "
        f"{n_different} of {field.n_points} points (beta={beta:g}). "
        "Raise max_sweeps, or use draw_labels."
    )


def _run_from_the_past(
    field: LabelField, beta: float, key: np.uint64, n_sweeps: int
) -> tuple[Ints, int]:
    lower, upper = np.zeros(field.n_points, dtype=np.int64), np.ones(field.n_points, dtype=np.int64)
    _, (coupling, lower_log_odds, _) = kernel_of(field, beta, lower)
    _, (_, upper_log_odds, _) = kernel_of(field, beta, upper)
    n_different = coupled_sweeps(
        coupling, lower_log_odds, lower, upper_log_odds, upper, key, n_sweeps
    )
    return lower, n_different


@compiled
def coupled_sweeps(
    coupling: Coupling,
    lower_log_odds: Floats,
    lower: Ints,
    upper_log_odds: Floats,
    upper: Ints,
    key: np.uint64,
    n_sweeps: int,
) -> int:
    """Run both chains from `n_sweeps` in the past to time zero; return how many labels differ.

    Once they have met only the lower one goes on, so that rounding cannot part them again. The
    coupling and the log odds are those of `two_class_sweeps`.
    """
    n_points = lower.shape[0]
    n_different = np.sum(lower != upper)
    for sweeps_to_go in range(n_sweeps, 0, -1):
        for i in range(n_points):
            # The number belongs to the moment, not to the run: a longer run meets it again.
            uniform = uniform_at(key, sweeps_to_go * n_points + i)
            was_different = lower[i] != upper[i]
            chains_differ = n_different > 0
            set_label(coupling, lower_log_odds, lower, i, uniform)
            if chains_differ:
                set_label(coupling, upper_log_odds, upper, i, uniform)
                n_different += int(lower[i] != upper[i]) - int(was_different)
    return n_different


@compilable
def set_label(coupling: Coupling, log_odds: Floats, labels: Ints, i: int, uniform: float) -> None:
    """Draw one of two labels."""
    lower, upper = logit_bounds(uniform)
    new = draw_of_two(log_odds[0, i], uniform, lower, upper)
    if new != labels[i]:
        labels[i] = new
        add_coupling(coupling, i, 2.0 * new - 1.0, log_odds, 0)
