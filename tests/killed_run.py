"""A run to be killed: `python killed_run.py engine checkpoint result`, by test_checkpoint.py."""

import sys
import warnings

import numpy as np
from oracle import tiny_family, tiny_labels, tiny_priors

from nearfield.inference import _chains
from nearfield.inference.auxiliary import AuxiliaryVariable
from nearfield.inference.exchange import Exchange

ENGINES = {"exchange": Exchange, "auxiliary": AuxiliaryVariable}
_chains.ROUND_SECONDS = 0.02
_chains._MAX_SHARE_OF_SAVING = 1.0


def infer(engine, checkpoint=None, n_jobs=None):
    family = tiny_family("gaussian", n_classes=3)
    settings = {"n_draws": 1_500, "n_burn": 1_000, "n_sweeps": 200, "n_chains": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ENGINES[engine](checkpoint=checkpoint, **settings).infer(
            np.random.default_rng(11),
            family,
            tiny_labels(family),
            tiny_priors(family),
            n_jobs=n_jobs,
        )


if __name__ == "__main__":
    posterior = infer(*sys.argv[1:3])
    np.savez(sys.argv[3], beta=posterior.beta, sigma=posterior.sigma)
