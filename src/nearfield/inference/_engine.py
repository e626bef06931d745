"""What all engines share: the one method that they offer."""

import numpy as np
from numpy.typing import ArrayLike

from nearfield._checks import Rng, check_generator
from nearfield.field import FieldFamily
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._target import Target, check_target


class Engine:
    """A way to compute the posterior: a frozen dataclass of settings with `_infer`."""

    needs_joint = True
    """Whether the labels need a joint distribution, which directed neighbourhoods have not."""

    def infer(
        self,
        rng: Rng,
        family: FieldFamily,
        labels: ArrayLike,
        priors: Priors | None = None,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Posterior:
        """Compute the posterior of beta and the scale.

        Parameters
        ----------
        rng : Generator, seed or None, as `numpy.random.default_rng` takes it
            Its state alone decides the answer.
        family : FieldFamily
        labels : array-like of int, shape (n,)
        priors : Priors, optional
            By default beta ~ N(0, 50^2) given that beta >= 0, sigma ~ U(0, 100), k uniform.
        n_jobs : int, optional
            Chains or scales to run at a time; the answer does not depend on it.
        verbose : int
            A progress bar from 1 on.

        Returns
        -------
        posterior : Posterior
            Draws, shape (n_chains, n_draws), of chains; else nodes with the log evidence.

        Warns
        -----
        ConvergenceWarning
            Where the posterior may be wrong by more than its errors say: see the engine.
        """
        target = check_target(family, labels, priors, needs_joint=self.needs_joint)
        return self._infer(check_generator(rng), target, n_jobs, verbose)

    def _infer(
        self, rng: np.random.Generator, target: Target, n_jobs: int | None, verbose: int
    ) -> Posterior:
        raise NotImplementedError
