"""The search for scales: L-BFGS on the log pseudolikelihood, in turns with the kernel's length."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances._scale_objective import ScaleObjective

Floats = NDArray[np.float64]

_N_ROUNDS = 2  # of learning scales at one length and finding the length again
_TOLERANCE = 0.05  # in log posterior: labels cannot tell such scales apart
_MEMORY = 8  # past steps that show the curvature
_LONGEST_STEP = 1.5  # of any parameter
_DECREASE = 1e-4  # of what the slope promises, that a step must bring (Armijo)
_N_TRIALS = 12


class Minimum(NamedTuple):
    """The least value found, where, and in how many steps."""

    value: float
    parameters: Floats
    n_iter: int


def search_scales(objective: ScaleObjective, max_iter: int) -> Minimum:
    """Minimise over the parameters of the scales and log beta.

    Parameters
    ----------
    objective : ScaleObjective
    max_iter : int
        Steps of L-BFGS a round.
    """
    parameters, length, n_iter = np.zeros(objective.n_parameters), 0.0, 0
    for _ in range(_N_ROUNDS):
        length, beta = objective.best_length(parameters, length)
        parameters[-1] = np.log(beta)
        found = _descend(objective, length, parameters, max_iter)
        parameters, n_iter = found.parameters, n_iter + found.n_iter
    return found._replace(n_iter=n_iter)


def _descend(objective: ScaleObjective, length: float, x: Floats, max_iter: int) -> Minimum:
    """Minimise by L-BFGS at a length, until a step brings next to nothing.

    Nocedal and Wright (2006), algorithm 7.4, with steps cut in half until they bring a decrease.
    """
    moves, changes = np.zeros((_MEMORY, len(x))), np.zeros((_MEMORY, len(x)))
    n_kept = n_iter = 0
    log_length = float(np.log(length))
    value, gradient = objective(x, log_length)
    while n_iter < max_iter:
        n_iter += 1
        direction = quasi_newton(gradient, moves, changes, n_kept)
        slope = direction @ gradient
        factor = min(1.0, _LONGEST_STEP / max(float(np.abs(direction).max()), 1e-300))
        for _ in range(_N_TRIALS):
            trial = x + factor * direction
            new_value, new_gradient = objective(trial, log_length)
            if new_value <= value + _DECREASE * factor * slope:
                break
            factor *= 0.5
        gain = value - new_value
        if not gain > 0.0:  # at the minimum, up to rounding
            break
        move, change = trial - x, new_gradient - gradient
        if move @ change > 1e-10 * (change @ change):
            moves[n_kept % _MEMORY], changes[n_kept % _MEMORY] = move, change
            n_kept += 1
        x, value, gradient = trial, new_value, new_gradient
        if gain < _TOLERANCE:
            break
    return Minimum(value, x, n_iter)


def quasi_newton(gradient: Floats, moves: Floats, changes: Floats, n_kept: int) -> Floats:
    """Multiply minus the gradient by the inverse curvature that past steps have shown.

    Parameters
    ----------
    gradient : ndarray, shape (n_parameters,)
    moves, changes : ndarray, shape (n_memory, n_parameters)
        Of the parameters and of the gradient in the last steps; step t is in row t modulo
        n_memory.
    n_kept : int
        How many steps there were.
    """
    if n_kept == 0:  # nothing is known yet: a step of at most one in each parameter
        return -gradient / max(np.abs(gradient).max(), 1.0)
    n_memory, direction = len(moves), -gradient
    rows = [t % n_memory for t in range(max(n_kept - n_memory, 0), n_kept)]
    steps = [(moves[row], changes[row], moves[row] @ changes[row]) for row in rows]
    shares = []
    for move, change, curvature in reversed(steps):
        shares.append(move @ direction / curvature)
        direction -= shares[-1] * change
    _, change, curvature = steps[-1]
    direction *= curvature / (change @ change)
    for (move, change, curvature), share in zip(steps, reversed(shares), strict=True):
        direction += (share - change @ direction / curvature) * move
    return direction
