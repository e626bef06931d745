"""What the paper prints: its tables and settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from nearfield.field import KernelName

METHODS: Final = ("k-nn", "d-nn1", "d-nn2", "d-nn3")
"""The columns of its Table 2."""

KERNELS: Final[Mapping[str, "KernelName"]] = {
    "d-nn1": "gaussian",
    "d-nn2": "radius",
    "d-nn3": "exponential",
}

BENCHMARKS: Final = ("pima", "glass", "iris", "crabs", "wine", "olive")
"""The data sets of Tables 1 and 2, in the paper's order."""

SPECTRA: Final = ("meat", "olive-oil")

TITLES: Final[Mapping[str, str]] = {
    "pima": "Pima",
    "glass": "Forensic glass",
    "iris": "Iris",
    "crabs": "Crabs",
    "wine": "Wine",
    "olive": "Olive",
    "meat": "Meat",
    "olive-oil": "Greek olive oil",
}


class Sizes(NamedTuple):
    """A row of Table 1."""

    n_classes: int
    n_features: int
    n_points: int


# The sizes of the spectra are in the text of section 5.2.
TABLE1: Final[Mapping[str, Sizes]] = {
    "pima": Sizes(2, 8, 532),
    "glass": Sizes(4, 9, 214),
    "iris": Sizes(3, 4, 150),
    "crabs": Sizes(4, 5, 200),
    "wine": Sizes(3, 13, 178),
    "olive": Sizes(3, 9, 572),
    "meat": Sizes(5, 1050, 231),
    "olive-oil": Sizes(3, 1050, 65),
}

# Methods in the order of METHODS.
_TABLE2: Final = {
    "pima": (30, 29, 32, 30),
    "glass": (35, 33, 39, 31),
    "iris": (6, 5, 5, 6),
    "crabs": (16, 16, 23, 16),
    "wine": (6, 4, 6, 4),
    "olive": (1, 3, 4, 2),
    "meat": (35, 29, 33, 27),
    "olive-oil": (29, 20, 26, 20),
}

ERRORS: Final[Mapping[str, Mapping[str, int]]] = {
    name: dict(zip(METHODS, errors, strict=True)) for name, errors in _TABLE2.items()
}
"""``ERRORS[data set][method]``: the paper's test error on one split, in whole per cent."""

TRAIN_SHARE: Final = 0.25
"""Of each benchmark data set."""

OLIVE_OIL_TRAIN: Final = 25
"""Of the 65 samples."""

MAX_SIGMA: Final[Mapping[str, float]] = {"meat": 10.0}
"""The upper end of the uniform prior of sigma where it is not 100."""
