"""The posterior of (beta, sigma) or (beta, k): engines, and the record that they all give.

An engine is a frozen dataclass of settings with one method, ``infer(rng, family, labels,
priors)``. It sees the labels and a family of fields, never features: a new kernel, metric or
neighbourhood needs no change here.
"""

from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference.auxiliary import AuxiliaryVariable
from nearfield.inference.exchange import Exchange
from nearfield.inference.path_sampling import PathSampling
from nearfield.inference.predictive import (
    leave_one_out,
    posterior_predictive_check,
    prior_predictive,
)
from nearfield.inference.pseudolikelihood import Pseudolikelihood
from nearfield.log_partition import log_partition_curve

__all__ = [
    "AuxiliaryVariable",
    "Exchange",
    "PathSampling",
    "Posterior",
    "Priors",
    "Pseudolikelihood",
    "leave_one_out",
    "log_partition_curve",
    "posterior_predictive_check",
    "prior_predictive",
]
