"""What the compiled sums over training points need to know, in plain arrays."""

import numpy as np
from numpy.typing import NDArray

from nearfield.field.weights import RADIUS_EPSILON
from nearfield.near._hashing import row_uniforms
from nearfield.near.normalizers import Normalizers
from nearfield.sampling.near_terms import ScaleTable, Sources

_SIGN_STREAM = 12


def signs_of(rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Give each row a sign of its own, at random."""
    return np.where(row_uniforms(rows, seed, _SIGN_STREAM) < 0.5, -1.0, 1.0)


def scale_table(
    sigmas: NDArray[np.float64],
    n_points: int,
    labels: NDArray[np.int64],
    normalizers: Normalizers,
    n_classes: int,
    *,
    power: int,
    order: NDArray[np.int64] | None = None,
    log_change: NDArray[np.float64] | float = 0.0,
) -> ScaleTable:
    """Prepare sums at some sigmas over some rows of the training points.

    Parameters
    ----------
    sigmas : ndarray, shape (n_sigmas,)
    n_points : int
        The number of all training points.
    labels, normalizers
        Of the rows at hand.
    n_classes : int
    power : int
        2 if distances come squared, 1 if they come as they are.
    order : ndarray of int, shape (n_rows,), optional
        That the totals are wanted in.
    log_change : ndarray, shape (n_rows,), or float
        Added to the logs of the totals.
    """
    scales = normalizers.scales
    totals = np.exp(normalizers.at(sigmas) + log_change)
    rest = np.zeros((2, len(sigmas), n_classes))
    if scales.kernel == "radius":
        counts = np.where(normalizers.nearest < sigmas[:, None], totals, 0.0)
        totals = (1.0 - RADIUS_EPSILON) * counts + RADIUS_EPSILON * (n_points - 1)
        for q, total in enumerate(totals):
            for added in (0, 1):
                shares = RADIUS_EPSILON / (total + added * RADIUS_EPSILON)
                rest[added, q] = np.bincount(labels, shares, n_classes)
    single = totals.astype(np.float32).T
    return ScaleTable(
        scales.values_of(sigmas),
        scales.is_squared,
        scales.exponent(power),
        np.ascontiguousarray(single if order is None else single[order]),
        rest,
    )


def sources_of(
    labels: NDArray[np.int64],
    normalizers: Normalizers,
    references: NDArray[np.int64],
    order: NDArray[np.int64] | None = None,
) -> Sources:
    """Gather what is known of some rows of the training points, in some order.

    References are places in this order.
    """
    nearest = normalizers.nearest
    if order is not None:
        labels, nearest = labels[order], nearest[order]
    short_labels = labels.astype(np.int32)
    units = nearest ** (2 if normalizers.scales.is_squared else 1)
    return Sources(
        short_labels,
        nearest,
        units.astype(np.float32),
        references,
        short_labels[references],
        units[references].astype(np.float32),
        np.ones(len(references), np.float32),
    )


def varied(sources: Sources, signs: NDArray[np.float64], n_points: int) -> Sources:
    r"""Let each reference count more or less, by as much as chance could have done.

    A reference that stands for f points is there with probability 1/f. Counting it
    :math:`1 \pm (1 - 1/f)^{1/2}` times, by signs at random, gives sums the variance that they have.

    Parameters
    ----------
    sources : Sources
    signs : ndarray, shape (R,)
    n_points : int
    """
    spread = np.sqrt(1.0 - len(signs) / n_points)
    return sources._replace(multiplicity=(1.0 + spread * signs).astype(np.float32))
