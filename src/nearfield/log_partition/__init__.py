"""Log z along beta and over scales: one estimator for curves and for path sampling.

A rough scan (`scan_curve`) finds where log z bends, and first-order transitions. States are placed
by thermodynamic length (`place_states`), with harmonic restraints across transitions; independent
groups of chains visit them forward and backward (`draw_pool`), and all draws together give log z
(`reweight`: MBAR with Stein control variates and bond estimates), with errors.
"""

from nearfield.log_partition.agreements import AgreementTable
from nearfield.log_partition.curve import log_partition_curve
from nearfield.log_partition.estimate import (
    Estimates,
    Reweighting,
    jackknife_error,
    reweight,
    standard_error,
)
from nearfield.log_partition.gaps import RoughCurve, curve_between
from nearfield.log_partition.interpolant import LogPartition, cubic
from nearfield.log_partition.pool import N_GROUPS, Pool, draw_pool
from nearfield.log_partition.scan import log_z_at_zero, scan_curve
from nearfield.log_partition.states import (
    StateBuilder,
    States,
    add_ladder,
    phases_of,
    place_states,
)

__all__ = [
    "N_GROUPS",
    "AgreementTable",
    "Estimates",
    "LogPartition",
    "Pool",
    "Reweighting",
    "RoughCurve",
    "StateBuilder",
    "States",
    "add_ladder",
    "cubic",
    "curve_between",
    "draw_pool",
    "jackknife_error",
    "log_partition_curve",
    "log_z_at_zero",
    "phases_of",
    "place_states",
    "reweight",
    "scan_curve",
    "standard_error",
]
