"""What all engines share: the border, and the one method that they offer."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import Rng, check_generator
from nearfield.field import FieldFamily, check_labels
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors, check_priors, default_priors


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
        checked, priors = check_problem(family, labels, priors, needs_joint=self.needs_joint)
        rng = check_generator(rng)
        return self._infer(rng, family, checked.copy(), priors, n_jobs, verbose)

    def _infer(
        self,
        rng: np.random.Generator,
        family: FieldFamily,
        labels: NDArray[np.int64],
        priors: Priors,
        n_jobs: int | None,
        verbose: int,
    ) -> Posterior:
        raise NotImplementedError


def check_problem(
    family: FieldFamily, labels: ArrayLike, priors: Priors | None, *, needs_joint: bool = True
) -> tuple[NDArray[np.int64], Priors]:
    """Accept labels and priors for a family, or say what is wrong with them."""
    if not (hasattr(family, "at") and hasattr(family, "scale_range")):
        raise TypeError(
            f"Expected a family of fields; got {_describe(family)}. Make one of distances, such as "
            'nearfield.field.DistanceFamily(distances, "gaussian", n_classes).'
        )
    if family.n_points < 3:
        raise ValueError(
            f"Expected n_points >= 3; got n_points={family.n_points}. Supply more points."
        )
    priors = default_priors(family) if priors is None else priors
    check_priors(priors, family)
    if needs_joint and family.multiplicities is not None:
        raise ValueError(
            "Expected points that count once each; got points with weights, whose labels have "
            "conditional distributions but no joint one that this engine could work on. Use "
            "pseudolikelihood, or repeat the points whose weights are whole numbers."
        )
    if needs_joint:
        family.at(family.scale_range[0])  # refuses conditionals that belong to no joint
    return check_labels(labels, family.n_points, family.n_classes), priors


def _describe(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {value!r}" if shape is None else f"an array of shape {shape}"
