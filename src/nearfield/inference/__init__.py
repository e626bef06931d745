"""The posterior of (beta, sigma) or (beta, k): engines, and the record that they all give.

An engine is a frozen dataclass of settings with one method, ``infer(rng, family, labels,
priors)``. It sees the labels and a family of fields, never features: a new kernel, metric or
neighbourhood needs no change here. Names imported `as` themselves are for the other packages of
nearfield.
"""

from nearfield.inference._engine import Engine as Engine
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._priors import check_priors as check_priors
from nearfield.inference._priors import default_priors as default_priors
from nearfield.inference._priors import pack_prior as pack_prior
from nearfield.inference._priors import unpack_prior as unpack_prior
from nearfield.inference.auxiliary import AuxiliaryVariable
from nearfield.inference.exchange import Exchange
from nearfield.inference.intercepts import InterceptFit as InterceptFit
from nearfield.inference.intercepts import fit_external_field as fit_external_field
from nearfield.inference.intercepts import maximize_intercepts as maximize_intercepts
from nearfield.inference.parameter_chain import ParameterChain as ParameterChain
from nearfield.inference.path_sampling import PathSampling
from nearfield.inference.predictive import (
    leave_one_out,
    posterior_predictive_check,
    prior_predictive,
)
from nearfield.inference.profile import maximize_pseudolikelihood as maximize_pseudolikelihood
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
