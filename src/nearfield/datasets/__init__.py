"""The data of the paper: features and labels, and the splits to train and test on.

The six benchmark sets of its Table 1 come with the package: ``load_iris``, ``load_wine``,
``load_pima``, ``load_glass``, ``load_crabs``, ``load_olive``. The two sets of near infra-red
spectra do not: ``load_meat`` and ``load_greek_olive_oil`` read a folder of yours, named by
``data_home`` or by the environment variable ``NEARFIELD_DATA``. ``stratified_split`` splits
any of them into training and test points.

Every loader follows scikit-learn's conventions. It returns a Bunch with

- ``data``, shape (N, F), float64, and ``target``, shape (N,), int64 codes 0..G-1;
- ``feature_names``, a list, and ``target_names``, an array: ``target_names[target]`` are the names.
  Classes are in scikit-learn's order for iris and wine, in the order of the file otherwise;
- ``DESCR``: what the data is, where it comes from, and where it differs from the paper;
- ``frame``: None, or with ``as_frame=True`` a DataFrame of ``data`` and ``target``, which then
  are a DataFrame and a Series themselves.

With ``return_X_y=True`` it returns ``(data, target)`` alone.

This layer imports nothing from the rest of nearfield.
"""

from nearfield.datasets._embedded import (
    load_crabs,
    load_glass,
    load_iris,
    load_olive,
    load_pima,
    load_wine,
)
from nearfield.datasets._spectra import MEAT_TRAINING_COUNTS, load_greek_olive_oil, load_meat
from nearfield.datasets._split import stratified_split

__all__ = [
    "MEAT_TRAINING_COUNTS",
    "load_crabs",
    "load_glass",
    "load_greek_olive_oil",
    "load_iris",
    "load_meat",
    "load_olive",
    "load_pima",
    "load_wine",
    "stratified_split",
]
