"""Log z of one field along beta, from its known value at zero."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from nearfield._checks import Rng, check_generator, check_positive
from nearfield._threads import one_blas_thread
from nearfield.field import LabelField, check_field
from nearfield.log_partition.estimate import Estimates, Reweighting, reweight, standard_error
from nearfield.log_partition.gaps import RoughCurve
from nearfield.log_partition.interpolant import LogPartition
from nearfield.log_partition.pool import Pool, draw_pool
from nearfield.log_partition.scan import moments_at_zero, scan_curve
from nearfield.log_partition.states import StateBuilder, States, place_states

Floats = NDArray[np.float64]


_N_ROUGH, _N_FIRST = 2, 8  # draws at each visit of a state: to place states anew, and at least
_MAX_DRAWS = 400_000  # in all, which take a minute at some hundred points
_SPACING, _KNOT_SPACING = 1.2, 0.8  # in thermodynamic length; those of `PathSampling`
_LARGEST_GROWTH = 4.0  # of the number of draws in a round: the first error is rough
_MIN_EFFECTIVE = 100.0  # draws, for an error to be trusted


def log_partition_curve(
    rng: Rng, field: LabelField, betas: ArrayLike, *, target_error: float = 0.03
) -> tuple[Floats, Floats]:
    r"""Estimate log z at each beta, with a standard error.

    .. math:: \log z(\beta) = \log z(0) + \int_0^\beta E[S] \, d\beta'

    from draws at states between zero and the betas, pooled by MBAR: the one-scale case of
    `nearfield.inference.PathSampling`. First-order transitions are crossed by harmonically
    restrained states. The standard error is a jackknife over eight independent groups of chains,
    or the hysteresis between forward and backward visits where that is larger.

    Parameters
    ----------
    rng : Generator, seed or None, as `numpy.random.default_rng` takes it
    field : LabelField
    betas : array-like, shape (m,)
        Any real numbers, in any order.
    target_error : float
        The standard error aimed at; a run ends at that, or after 400,000 draws.

    Returns
    -------
    log_z, standard_error : ndarrays, shape (m,)

    Warns
    -----
    ConvergenceWarning
        Where the error cannot be trusted: chains froze, or a transition was not crossed.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import LabelField
    >>> from nearfield.log_partition import log_partition_curve
    >>> field = LabelField.from_weights((1.0 - np.eye(20)) / 19.0, n_classes=3)
    >>> log_z, error = log_partition_curve(0, field, [0.0, 1.0, 2.0])
    >>> bool(abs(log_z[0] - 20 * np.log(3)) < 1e-3)
    True
    """
    rng = check_generator(rng)
    check_field(field)
    betas = np.asarray(betas, dtype=np.float64)
    if betas.ndim != 1 or betas.size == 0 or not np.isfinite(betas).all():
        raise ValueError(
            f"Expected finite betas of shape (m,) with m >= 1; got {betas!r}. Give a list of betas."
        )
    check_positive(target_error, "target_error")
    with one_blas_thread():
        sampler = _CurveSampler(rng, field, betas)
        estimates = sampler.run(target_error)
    log_z, error = estimates.log_z[0], standard_error(estimates.log_z)
    _warn_if_short(field, betas, log_z, error, estimates.n_effective, sampler.is_crossed)
    return log_z, error


class _CurveSampler:
    """Draws at states along beta, until log z at given betas is known well enough."""

    def __init__(self, rng: np.random.Generator, field: LabelField, betas: Floats) -> None:
        self.rng, self.field, self.betas = rng, field, betas
        self.low, self.high = min(betas.min(), 0.0), max(betas.max(), 0.0)
        self.log_z_at_zero, *_ = moments_at_zero(field)
        self.rough = scan_curve(rng, field, self.low, self.high)
        self.bonds_from, self.is_crossed = 0.0, True

    def run(self, target_error: float) -> Estimates:
        """Sample with states placed by a scan, then placed anew, then more at these."""
        pool = self._draw(self._states(), _N_ROUGH)
        reweighting = self._reweight(pool)
        self.rough = self._improved(reweighting, pool)
        self.bonds_from = 0.8 * reweighting.bonds_from
        states = self._states()
        pool, n_visit = self._draw(states, _N_FIRST), _N_FIRST
        while True:
            reweighting = self._reweight(pool)
            self.is_crossed = self.rough.is_crossed and reweighting.is_connected
            estimates = reweighting.at(self.betas, pool.agreements)
            worst = float(standard_error(estimates.log_z).max())
            is_covered = estimates.n_effective.min() >= _MIN_EFFECTIVE
            is_known = is_covered and reweighting.is_connected and worst <= target_error
            n_left = _MAX_DRAWS - len(pool.states)
            if is_known or n_left <= 0:
                return estimates
            growth = np.clip((1.1 * worst / target_error) ** 2, 1.5, _LARGEST_GROWTH)
            n_most = max(n_left * n_visit // len(pool.states), 1)
            n_more = min(int(np.ceil((growth - 1.0) * n_visit)), n_most)
            pool = pool.extended(self._draw(states, n_more))
            n_visit += n_more

    def _states(self) -> States:
        builder = StateBuilder()
        for sign, end in ((1, self.high), (-1, self.low)):
            if end != 0.0:
                placed = place_states(self.rough, min(end, 0.0), max(end, 0.0), _SPACING)
                is_new = (placed.betas != 0.0) | (placed.stiffness > 0.0)
                kept = placed.part(np.flatnonzero(is_new)[::sign])
                builder.schedule([0, *builder.add(0, kept)])
        if not builder.schedules:
            builder.schedule([0])
        return builder.finish()

    def _draw(self, states: States, n_draws: int) -> Pool:
        counts = np.full(len(states.betas), n_draws)
        return draw_pool(
            self.rng, lambda _: self.field, np.ones(1), states, counts, self.bonds_from, None
        )

    def _reweight(self, pool: Pool) -> Reweighting:
        shape = len(pool.states), len(pool.betas)
        agreements = np.broadcast_to(pool.agreements[:, None], shape)
        return reweight(pool, agreements, self.log_z_at_zero)

    def _improved(self, reweighting: Reweighting, pool: Pool) -> RoughCurve:
        knots = self.rough.log_partition.evenly(self.low, self.high, _KNOT_SPACING, n_least=3)
        estimates = reweighting.at(knots, pool.agreements)
        curve = LogPartition(knots, estimates.log_z[0], estimates.slopes[0])
        return self.rough._replace(log_partition=curve)


def _warn_if_short(
    field: LabelField,
    betas: Floats,
    log_z: Floats,
    error: Floats,
    n_effective: Floats,
    is_crossed: bool,
) -> None:
    """Warn where the draws do not cover a beta: the error is then no guide.

    It shows in few effective draws, or in a z below what labels all the same contribute alone.
    """
    log_same = logsumexp(field.n_points * field.external_field)
    least = log_same + betas * 0.5 * float(field.total_coupling.sum())
    is_short = (n_effective < _MIN_EFFECTIVE) | (log_z + 3.0 * error < least)
    if is_short.any():
        warnings.warn(
            f"The chains did not reach the agreements of beta={betas[is_short][0]:g}: log z there "
            f"is {log_z[is_short][0]:g} from {n_effective[is_short][0]:.0f} effective draws, and "
            f"cannot be below {least[is_short][0]:g}. Its standard error cannot be trusted; ask "
            "for betas closer to zero.",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif not is_crossed:
        warnings.warn(
            "A first-order transition was found that chains could not cross; log z beyond it may "
            "be too small, and its standard error too. Ask for betas below the transition.",
            ConvergenceWarning,
            stacklevel=3,
        )
