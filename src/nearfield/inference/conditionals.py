"""The log pseudolikelihood at many betas: sums of exponentials, and next to no logarithms."""

import math

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import exp_of

Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 700.0  # exp(-700) is as good as never
_LARGE = 1e150  # two numbers below have a product that is a number


@compiled(fastmath={"contract"})
def log_pseudolikelihoods(betas: Floats, gains: Floats, offsets: Floats, values: Floats) -> None:
    r"""Fill in `values`, shape (B,).

    .. math:: -\sum_i \log\Big(1 + \sum_g \exp(o_{gi} + \beta g_{gi})\Big)

    Parameters
    ----------
    betas : shape (B,)
    gains, offsets : shape (G - 1, n)
        How much more support, and external field, each other class has than that of the site.
    """
    n_others, n_points = gains.shape
    sums = np.empty(n_points)  # one over the probability of each label
    for b in range(betas.shape[0]):
        sums[:] = 1.0
        for g in range(n_others):
            for i in range(n_points):  # apart from what follows, for the vector registers
                sums[i] += exp_of(min(offsets[g, i] + betas[b] * gains[g, i], _LARGEST_EXPONENT))
        total, product = 0.0, 1.0
        for i in range(n_points):
            if sums[i] < _LARGE:
                product *= sums[i]
            else:
                total += math.log(sums[i])
            if product > _LARGE:
                total += math.log(product)
                product = 1.0
        values[b] = -(total + math.log(product))
