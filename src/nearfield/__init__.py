"""Bayesian nearest-neighbour classification: labels as a Markov random field over distances.

The distance nearest neighbour models of Friel and Pettitt (2011), and what they build on.
Layers, each importing only from those before it: ``datasets``, ``distances``, ``field``,
``sampling``, ``inference``, ``prediction``, ``estimators``, ``persistence``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearfield.estimators import (
        DistanceNeighborsClassifier,
        KNeighborsClassifierCV,
        NearfieldClassifier,
        ProbabilisticKNeighborsClassifier,
    )
    from nearfield.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "DistanceNeighborsClassifier",
    "KNeighborsClassifierCV",
    "NearfieldClassifier",
    "ProbabilisticKNeighborsClassifier",
    "__version__",
    "load",
    "save",
]

# Imported when asked for, so that ``import nearfield`` costs nothing.
_HOMES = {
    "DistanceNeighborsClassifier": "nearfield.estimators",
    "KNeighborsClassifierCV": "nearfield.estimators",
    "NearfieldClassifier": "nearfield.estimators",
    "ProbabilisticKNeighborsClassifier": "nearfield.estimators",
    "load": "nearfield.persistence",
    "save": "nearfield.persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nearfield' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
