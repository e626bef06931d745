"""What the arguments of the estimators mean: engines by name, priors by default, seeds."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nearfield import inference as nf_inference
from nearfield.estimators._sizes import sizes
from nearfield.field import FieldFamily
from nearfield.inference import Priors, check_priors, default_priors

InferenceName = Literal["auto", "path", "exchange", "pseudolikelihood", "auxiliary_variable"]
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None

ENGINES = {
    "path": "PathSampling",
    "exchange": "Exchange",
    "pseudolikelihood": "Pseudolikelihood",
    "auxiliary_variable": "AuxiliaryVariable",
}
"""The engines of `nearfield.inference` by the names that estimators know them by."""

_LARGEST = 1e150


def choose_engine(inference: Any, family: FieldFamily) -> tuple[str, Any]:
    """Turn an estimator's `inference` into the name of an engine and its settings record."""
    name, engine = name_of_engine(inference), inference
    if isinstance(inference, str):
        name = _automatic(family) if inference == "auto" else inference
        engine = getattr(nf_inference, ENGINES[name])()
    if family.multiplicities is not None and name != "pseudolikelihood":
        raise ValueError(
            'Expected inference="pseudolikelihood" with sample_weight or class_weight: labels of '
            "weighted points have conditional distributions but no joint one that another engine "
            f'could work on; got inference="{name}". Use it, or repeat the points whose weights '
            "are whole numbers."
        )
    if not family.has_joint and name != "pseudolikelihood":
        raise ValueError(
            'Expected inference="pseudolikelihood" with neighborhood="directed", whose '
            "conditionals belong to no joint distribution that another engine could work on; got "
            f'inference="{name}". Use it, or neighborhood="symmetric".'
        )
    return name, engine


def name_of_engine(inference: Any) -> str:
    """Give the name that an estimator's `inference` has; refuse what is no engine."""
    if isinstance(inference, type) or not (
        isinstance(inference, str) or hasattr(inference, "infer")
    ):
        raise TypeError(
            f"Expected inference as a name among {['auto', *ENGINES]} or a settings record such "
            f"as nearfield.inference.Exchange(); got inference={inference!r}. Give one of these."
        )
    if isinstance(inference, str):
        if inference not in ("auto", *ENGINES):
            raise ValueError(
                f"Expected inference among {['auto', *ENGINES]}, or a settings record; got "
                f"inference={inference!r}. Choose one of them."
            )
        return inference
    class_name = type(inference).__name__
    return next((name for name, engine in ENGINES.items() if engine == class_name), class_name)


def _automatic(family: FieldFamily) -> str:
    is_small = family.n_points <= sizes().max_path
    has_joint = family.has_joint and family.multiplicities is None
    return "path" if is_small and has_joint else "pseudolikelihood"


def make_priors(family: FieldFamily, prior_beta: Any, prior_scale: Any) -> Priors:
    """Fill in the default priors of `nearfield.inference`, and refuse those that fit no family."""
    default = default_priors(family)
    if prior_beta is None and prior_scale is None:
        return default
    priors = Priors(
        default.beta if prior_beta is None else prior_beta,
        default.scale if prior_scale is None else prior_scale,
    )
    check_priors(priors, family)
    return priors


def make_rng(random_state: Any) -> np.random.Generator:
    """Turn a seed, a generator of either kind or None into a NumPy generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        check_random_state(random_state)  # refuses what scikit-learn refuses
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(2**32, size=4))


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Accept one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"Expected {name} among {choices}; got {name}={value!r}. Choose one of them."
        )
    return value


def check_flag(value: Any, name: str) -> None:
    """Accept True or False, and no word or number that may mean either."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"Expected {name} as True or False; got {name}={value!r}. Give one of them."
        )


def check_common(estimator: Any) -> None:
    """Accept what every estimator has: `standardize`, `n_jobs` and, if there, `verbose`."""
    check_flag(estimator.standardize, "standardize")
    n_jobs, verbose = estimator.n_jobs, getattr(estimator, "verbose", 0)
    if not (n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0)):
        raise ValueError(
            f"Expected n_jobs as a whole number other than 0, or None; got n_jobs={n_jobs!r}. "
            "Give the number of threads, or -1 for one a core."
        )
    if not isinstance(verbose, Integral):
        raise ValueError(
            f"Expected verbose as a whole number; got verbose={verbose!r}. Give 0 or 1."
        )


def check_usable(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse distances whose squares are no numbers."""
    check_longest(float(distances.max()))
    return distances


def check_longest(longest: float) -> None:
    """Refuse a largest distance whose square is no number."""
    if longest > 0.0 and not 1.0 / _LARGEST <= longest <= _LARGEST:
        raise ValueError(
            f"Expected the largest distance between {1.0 / _LARGEST:g} and {_LARGEST:g}; got "
            f"{longest:g}. Give the features another unit, or use standardize=True."
        )


def check_dense(n_points: int) -> None:
    """Refuse more points than all distances can be kept of."""
    if n_points > sizes().max_dense:
        raise ValueError(
            f"Expected at most {sizes().max_dense} points, whose distances to each other are all "
            f"kept; got {n_points}. Use n_neighbors, or fit on a subset."
        )


def check_neighbors(n_neighbors: Any) -> int | None:
    """Accept a number of neighbours, or None."""
    if n_neighbors is None:
        return None
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool) or n_neighbors < 1:
        raise ValueError(
            "Expected n_neighbors as a whole number >= 1, or None; got "
            f"n_neighbors={n_neighbors!r}. Leave it out for all points, or as many as the data "
            "suggest."
        )
    return int(n_neighbors)
