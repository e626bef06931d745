"""The support of held-out points at many scales, and what their labels say of beta.

As float32, which takes a third of the time: the support is good to 1e-5, far below what labels can
tell. Training points come sorted by class, so that the sum over a class is one loop.
"""

import numpy as np

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp32_of, exp_of
from nearfield.distances.kernels.scaled_field import best_beta, sum32_of

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR, _LARGEST_EXPONENT = np.float32(3e38), np.float32(80.0)


@compiled
def kernel_totals(among, rates, nearest, totals):
    r"""Sum the kernel over the other training points, relative to the nearest of them.

    .. math:: T_j = \sum_{l \ne j} \kappa_{jl} / \max_{l \ne j} \kappa_{jl},
              \qquad \log \kappa = -r e

    Parameters
    ----------
    among : ndarray of float32, shape (n, n)
        The energies e among the training points; its diagonal is overwritten.
    rates : ndarray, shape (n_rates,)
    nearest, totals : ndarray of float32, shape (n,) and (n_rates, n)
        The energy of the nearest neighbour, and T, to be filled in.
    """
    for j in range(among.shape[0]):
        among[j, j] = _FAR
        nearest[j] = smallest32_of(among[j])
        for q in range(rates.shape[0]):
            totals[q, j] = sum_of_kernel(among[j], nearest[j], np.float32(rates[q]))


@compiled
def held_out_support(out, nearest, totals, class_starts, rates, rows, support):
    r"""Fill in the support of each class for held-out points.

    .. math:: h_{ig} = \sum_{j \in g} \frac{\kappa_{ij}}{\sum_l \kappa_{il}}
              + \sum_{j \in g} \frac{\kappa_{ij}}{\sum_{l \ne j} \kappa_{jl} + \kappa_{ij}}

    Parameters
    ----------
    out : ndarray of float32, shape (m, n)
        The energies from held-out to training points, these sorted by class.
    nearest, totals : ndarray of float32, shape (n,) and (n_rates, n)
        From `kernel_totals`.
    class_starts : ndarray of int, shape (G + 1,)
    rates : ndarray, shape (n_rates,)
    rows : ndarray of int, shape (m,)
        Where in `support` each held-out point is.
    support : ndarray, shape (n_rates, n_all, G)
    """
    n_points, n_rates = totals.shape[1], totals.shape[0]
    kernel = np.empty(n_points, dtype=np.float32)
    plain_totals = np.empty(totals.shape, dtype=np.float32)
    is_safe = np.empty(n_rates, dtype=np.bool_)
    for q in range(n_rates):
        is_safe[q] = fill_plain_totals(nearest, totals[q], np.float32(rates[q]), plain_totals[q])
    for i in range(out.shape[0]):
        closest = smallest32_of(out[i])
        for q in range(n_rates):
            rate, sums, total = np.float32(rates[q]), support[q, rows[i]], _ZERO
            fill_kernel32(out[i], closest, rate, kernel)
            for g in range(sums.shape[0]):
                part = sum32_of(kernel[class_starts[g] : class_starts[g + 1]])
                sums[g] = part
                total += part
            if is_safe[q] and rate * closest < _LARGEST_EXPONENT:
                fill_shares32(kernel, plain_totals[q], exp32_of(rate * closest))
            else:
                fill_back32(out[i], nearest, totals[q], rate, kernel)
            for g in range(sums.shape[0]):
                sums[g] = sums[g] / total + sum32_of(kernel[class_starts[g] : class_starts[g + 1]])


@compilable
def fill_plain_totals(nearest, totals, rate, plain_totals):
    """Fill in totals that are not relative to the nearest; tell if none is near underflow."""
    largest = _ZERO
    for j in range(nearest.shape[0]):
        plain_totals[j] = totals[j] * exp32_of(-rate * nearest[j])
        largest = max(largest, rate * nearest[j])
    return largest < _LARGEST_EXPONENT


@compiled
def fill_shares32(kernel, plain_totals, unit):
    r"""Replace kernels, times a unit, by :math:`\kappa / (T + \kappa)`: no exp for each of them."""
    for j in range(kernel.shape[0]):
        kernel[j] /= kernel[j] + unit * plain_totals[j]


@compiled(fastmath=ANY_ORDER)
def sum_of_kernel(energies, smallest, rate):
    """Add up exp(-rate x what energies have above the smallest)."""
    total = _ZERO
    for j in range(energies.shape[0]):
        total += exp32_of(rate * (smallest - energies[j]))
    return total


@compiled
def fill_kernel32(energies, smallest, rate, kernel):
    """Fill in exp(-rate x what energies have above the smallest)."""
    for j in range(kernel.shape[0]):
        kernel[j] = exp32_of(rate * (smallest - energies[j]))


@compiled
def fill_back32(energies, nearest, totals, rate, kernel):
    r"""Fill in how much training points listen to a held-out one, :math:`1/(1 + T/\kappa)`."""
    for j in range(kernel.shape[0]):
        gap = min(rate * (energies[j] - nearest[j]), _LARGEST_EXPONENT)
        kernel[j] = _ONE / (_ONE + totals[j] * exp32_of(gap))


@compiled(fastmath=ANY_ORDER | {"nnan"})
def smallest32_of(values):
    """Find the smallest value."""
    smallest = values[0]
    for j in range(values.shape[0]):
        smallest = min(smallest, values[j])
    return smallest


@compiled
def beta_masses(support, labels, precision, max_beta, log_masses, betas):
    """Fill in the best beta > 0 at each scale, and the log mass around it (Laplace).

    Parameters
    ----------
    support : ndarray, shape (n_scales, n, G)
    labels : ndarray of int, shape (n,)
    precision : float
        Of the normal prior of beta.
    max_beta : float
    log_masses, betas : ndarray, shape (n_scales,)
    """
    beta = 3.0
    for q in range(support.shape[0]):
        beta, log_masses[q] = best_beta(support[q], labels, precision, max_beta, beta)
        betas[q] = beta


@compiled
def log_conditionals(support, labels, alpha, betas, log_terms):
    """Fill in the log conditionals of the labels, shape (n_scales, n_betas, n).

    Parameters
    ----------
    support : ndarray, shape (n_scales, n, G)
    labels : ndarray of int, shape (n,)
    alpha : ndarray, shape (G,)
        The external field.
    betas : ndarray, shape (n_scales, n_betas)
    log_terms : ndarray, shape (n_scales, n_betas, n)
    """
    n_scales, n_points, n_classes = support.shape
    total = np.empty(betas.shape[1])
    for s in range(n_scales):
        for i in range(n_points):
            own = labels[i]
            for b in range(total.shape[0]):
                total[b] = 1.0
            for g in range(n_classes):
                if g != own:
                    gain = support[s, i, g] - support[s, i, own]
                    add_odds(gain, alpha[g] - alpha[own], betas[s], total)
            for b in range(betas.shape[1]):
                log_terms[s, b, i] = -np.log(total[b])


@compilable
def add_odds(gain, shift, betas, total):
    """Add exp(beta x gain + shift), cut off where it would be no number."""
    for b in range(betas.shape[0]):
        total[b] += exp_of(min(betas[b] * gain + shift, 700.0))


@compiled
def heavy_ranges(log_densities, reach, n_fine, ends):
    """Find where log densities, known at equally spaced places, are near their maximum.

    Between places they are followed by cubic interpolation.

    Parameters
    ----------
    log_densities : ndarray, shape (m, n_places)
    reach : float
        How far below the maximum counts as near.
    n_fine : int
        Into how many pieces to cut a step.
    ends : ndarray, shape (m, 2)
        To be filled in, in steps from the first place; half a step beyond the first or the last
        place where that one is near, for it stands for so much.
    """
    n_places = log_densities.shape[1]
    n_pieces = (n_places - 1) * n_fine
    fine = np.empty(n_pieces + 1)
    for r in range(log_densities.shape[0]):
        values = log_densities[r]
        top = values[n_places - 1]
        fine[n_pieces] = top
        for k in range(n_places - 1):
            rise = values[k + 1] - values[k]
            slope = 0.5 * (values[k + 1] - values[k - 1]) if k > 0 else rise
            next_slope = 0.5 * (values[k + 2] - values[k]) if k + 2 < n_places else rise
            bend, twist = 3.0 * rise - 2.0 * slope - next_slope, slope + next_slope - 2.0 * rise
            for piece in range(n_fine):
                t = piece / n_fine
                value = values[k] + t * (slope + t * (bend + t * twist))
                fine[k * n_fine + piece] = value
                top = max(top, value)
        low, high = 0, n_pieces
        while fine[low] <= top - reach:
            low += 1
        while fine[high] <= top - reach:
            high -= 1
        # Half a piece wider, for a single near one.
        ends[r, 0] = (low - 0.5) / n_fine if low > 0 else -0.5
        ends[r, 1] = (high + 0.5) / n_fine if high < n_pieces else n_places - 0.5


@compiled
def harmonic_means(log_terms, weights, log_means):
    """Fill in the log harmonic mean of each term over weighted nodes.

    Parameters
    ----------
    log_terms : ndarray, shape (n_nodes, n)
    weights : ndarray, shape (n_nodes,)
    log_means : ndarray, shape (n,)
    """
    n_nodes, n_points = log_terms.shape
    lowest, total = np.empty(n_points), np.empty(n_points)
    for i in range(n_points):
        lowest[i], total[i] = log_terms[0, i], 0.0
    for r in range(n_nodes):
        keep_smaller(log_terms[r], lowest)
    for r in range(n_nodes):
        add_inverses(log_terms[r], lowest, weights[r], total)
    for i in range(n_points):
        log_means[i] = lowest[i] - np.log(total[i])


@compiled
def keep_smaller(values, smallest):
    """Replace what is larger than the value in its place."""
    for i in range(values.shape[0]):
        smallest[i] = min(smallest[i], values[i])


@compiled
def add_inverses(log_values, lowest, weight, total):
    """Add weight / value, relative to one over the lowest."""
    for i in range(total.shape[0]):
        total[i] += weight * exp_of(lowest[i] - log_values[i])
