"""The two sets of near infra-red spectra, read from a folder that the user names.

Their licences keep them out of the package: it holds the readers and not the data.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield._extras import import_extra
from nearfield.datasets._bunch import Description, Folder, Loaded, folder_loader, to_bunch
from nearfield.datasets._table import read_labelled_csv, to_finite

FOLDER_VARIABLE: Final = "NEARFIELD_DATA"

WAVELENGTH_NAMES: Final = [f"nm{wavelength}" for wavelength in range(400, 2500, 2)]

MEAT_TRAINING_COUNTS: Final[Mapping[str, int]] = MappingProxyType(
    {"Chicken": 15, "Turkey": 20, "Pork": 13, "Beef": 11, "Lamb": 11}
)
"""Training points of each class in the paper's meat table (70 in all, which leaves 161).

Use it with the class names:
``stratified_split(meat.target_names[meat.target], MEAT_TRAINING_COUNTS)``.
"""


@dataclass(frozen=True)
class _Spectra:
    """One set: its files, what they must hold, and where to get them."""

    csv_name: str
    rdata_name: str
    rdata_content: str
    from_r: Callable[[Mapping[str, Any]], tuple[NDArray[Any], NDArray[Any]]]
    class_sizes: Mapping[str, int]
    origin: str
    description: Description

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.class_sizes.values()), len(WAVELENGTH_NAMES)


def _meat_from_r(objects: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    meat = objects["Meat"]
    return np.asarray(meat["x"]), np.asarray(meat["y"])


def _greek_olive_oil_from_r(objects: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    labels = np.asarray(objects["oliveoillabels"])
    # R holds integers, 1e7 to the unit, and misspells the peninsula.
    return np.asarray(objects["oliveoils"]) / 1e7, np.where(
        labels == "Peloponese", "Peloponnese", labels
    )


_WAVELENGTHS = (
    "The paper's range, 400-2098 nm, does not fit its 1050 values; the data runs over 400-2498 nm "
    "in steps of 2 nm."
)

_MEAT = _Spectra(
    csv_name="meat.csv",
    rdata_name="Meat.RData",
    rdata_content="a list Meat with the matrix x and the labels y",
    from_r=_meat_from_r,
    class_sizes=MappingProxyType({"Chicken": 55, "Turkey": 55, "Pork": 55, "Beef": 32, "Lamb": 34}),
    origin=(
        "Meat.RData is data/Meat.RData in the source of the CRAN package RPEClust 0.1.0 "
        "(https://cran.r-project.org/package=RPEClust)."
    ),
    description=Description(
        title="Meat spectra",
        about=(
            "Near infra-red spectra of raw meat, 1050 values at 400-2498 nm (nm400 to nm2498); the "
            "class is the kind of meat."
        ),
        source=(
            "Meat of the R package RPEClust 0.1.0 (GPL-3), not part of nearfield. McElhinney, J., "
            "Downey, G. and Fearn, T. (1999). Chemometric processing of visible and near infrared "
            "reflectance spectra for species identification in selected raw homogenised meats. "
            "Journal of Near Infrared Spectroscopy 7, 145-154."
        ),
        against_paper=(
            "The text (not in Table 1) has G=5, N=231 and 1050 values: the same. The text says 60 "
            "training and 171 test samples, its own table sums to 70 and 161. The table is "
            "MEAT_TRAINING_COUNTS: chicken 15, turkey 20, pork 13, beef 11, lamb 11. "
            + _WAVELENGTHS
        ),
    ),
)

_GREEK_OLIVE_OIL = _Spectra(
    csv_name="greek_olive_oil.csv",
    rdata_name="oliveoils.RData",
    rdata_content="a matrix oliveoils and the labels oliveoillabels",
    from_r=_greek_olive_oil_from_r,
    class_sizes=MappingProxyType({"Crete": 18, "Peloponnese": 28, "Other": 19}),
    origin=(
        "oliveoils.RData is in a public teaching repository, without a licence: search for the "
        "file by its name."
    ),
    description=Description(
        title="Greek olive oil spectra",
        about=(
            "Near infra-red spectra of virgin olive oils, 1050 values at 400-2498 nm (nm400 to "
            "nm2498), those of oliveoils.RData divided by 1e7; the class is the region of Greece."
        ),
        source=(
            "oliveoils.RData of a public teaching repository without a licence, not part of "
            "nearfield. Described by Dean, N., Murphy, T. B. and Downey, G. (2006). Using "
            "unlabelled data to update classification rules with applications in food authenticity "
            "studies. Journal of the Royal Statistical Society C 55, 1-14."
        ),
        against_paper=(
            "The text (not in Table 1) has G=3, N=65, 1050 values and classes of 18, 28 and 19: "
            "the same. It trains on 25 samples in about the proportions of the whole: "
            "stratified_split(target, 25). " + _WAVELENGTHS
        ),
    ),
)


@folder_loader
def load_meat(
    data_home: Folder = None,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Loaded:
    """Load the meat spectra from a folder of yours: N=231, F=1050, G=5.

    Parameters
    ----------
    data_home : path, optional
        The folder with ``meat.csv`` or ``Meat.RData``; by default the one that the environment
        variable ``NEARFIELD_DATA`` names. Both files give the same data; where both are
        there, the csv is read.
    return_X_y, as_frame : bool, default=False
        As in scikit-learn: (data, target) alone; pandas in place of arrays.

    Returns
    -------
    Bunch, or (data, target) if ``return_X_y``
        See :mod:`nearfield.datasets`.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or file; the message says where to get the file.
    ValueError
        If the file is damaged or holds something else.

    Examples
    --------
    >>> from nearfield.datasets import load_meat
    >>> meat = load_meat(data_home="my_spectra")  # doctest: +SKIP
    >>> meat.data.shape  # doctest: +SKIP
    (231, 1050)
    """
    return _load(_MEAT, data_home, return_X_y=return_X_y, as_frame=as_frame)


@folder_loader
def load_greek_olive_oil(
    data_home: Folder = None,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Loaded:
    """Load the spectra of Greek olive oils from a folder of yours: N=65, F=1050, G=3.

    Parameters
    ----------
    data_home : path, optional
        The folder with ``greek_olive_oil.csv`` or ``oliveoils.RData``; by default the one that the
        environment variable ``NEARFIELD_DATA`` names. Both files give the same data; where both
        are there, the csv is read.
    return_X_y, as_frame : bool, default=False
        As in scikit-learn: (data, target) alone; pandas in place of arrays.

    Returns
    -------
    Bunch, or (data, target) if ``return_X_y``
        See :mod:`nearfield.datasets`.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or file; the message says where to get the file.
    ValueError
        If the file is damaged or holds something else.

    Examples
    --------
    >>> from nearfield.datasets import load_greek_olive_oil
    >>> oil = load_greek_olive_oil(data_home="my_spectra")  # doctest: +SKIP
    >>> oil.data.shape  # doctest: +SKIP
    (65, 1050)
    """
    return _load(_GREEK_OLIVE_OIL, data_home, return_X_y=return_X_y, as_frame=as_frame)


def _load(
    spectra: _Spectra,
    data_home: Folder,
    *,
    return_X_y: bool,
    as_frame: bool,
) -> Loaded:
    path = _find_file(spectra, data_home)
    read = _read_csv if path.name == spectra.csv_name else _read_rdata
    features, labels = read(spectra, path)
    _check_classes(spectra, labels, path)
    return to_bunch(
        features,
        labels,
        list(spectra.class_sizes),
        spectra.description,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def _find_file(spectra: _Spectra, data_home: Folder) -> Path:
    named = data_home if data_home is not None else os.environ.get(FOLDER_VARIABLE)
    if not named:
        found = f"no folder was named: data_home={data_home!r}, and {FOLDER_VARIABLE} names none"
    elif not (folder := Path(named).expanduser()).is_dir():
        found = f"{str(folder)!r} is not a folder"
    else:
        for name in (spectra.csv_name, spectra.rdata_name):
            if (folder / name).is_file():
                return folder / name
        found = f"the folder {str(folder)!r} holds neither"
    raise FileNotFoundError(
        f"Expected {spectra.rdata_name} or {spectra.csv_name} in a folder of yours; {found}. "
        f"nearfield does not ship it. {spectra.origin} Put the file in a folder and name that "
        f"folder by data_home or by the environment variable {FOLDER_VARIABLE}."
    )


def _read_csv(spectra: _Spectra, path: Path) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    features, labels = read_labelled_csv(path, str(path))
    _check_shape(spectra, features.shape, path)
    if unknown := sorted(set(features.columns) - set(WAVELENGTH_NAMES)):
        raise ValueError(
            f"Expected the columns nm400, nm402, ..., nm2498 and class in {path}; got also "
            f"{unknown[0]!r} ({len(unknown)} unknown in all). Rename the columns of the file."
        )
    return features[WAVELENGTH_NAMES], labels


def _read_rdata(spectra: _Spectra, path: Path) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    rdata = import_extra("rdata", f", or put {spectra.csv_name} beside {path}.")

    with path.open("rb") as file, warnings.catch_warnings():
        # What rdata guesses about an odd file is no news: the content is checked below.
        warnings.simplefilter("ignore")
        try:
            objects = rdata.read_rda(file)
        except Exception as error:  # a damaged file can fail anywhere in the decoder
            raise ValueError(
                f"Expected R data in {path}; reading it failed: {type(error).__name__}: {error}. "
                f"The file is damaged: fetch it again. {spectra.origin}"
            ) from error
    try:
        values, labels = spectra.from_r(objects)
    except (KeyError, IndexError, TypeError) as error:
        found = list(objects) if isinstance(objects, Mapping) else type(objects).__name__
        raise ValueError(
            f"Expected {spectra.rdata_content} in {path}; got {found}. "
            f"This is another file: fetch the right one. {spectra.origin}"
        ) from error
    _check_shape(spectra, values.shape, path)
    features = to_finite(pd.DataFrame(values, columns=WAVELENGTH_NAMES), str(path))
    return features, labels.astype(np.str_).ravel()


def _check_shape(spectra: _Spectra, shape: tuple[int, ...], path: Path) -> None:
    if shape != spectra.shape:
        raise ValueError(
            f"Expected {spectra.shape[0]} spectra of {spectra.shape[1]} wavelengths in {path}; got "
            f"the shape {shape}. The file is cut off or another one: fetch it again. "
            f"{spectra.origin}"
        )


def _check_classes(spectra: _Spectra, labels: NDArray[np.str_], path: Path) -> None:
    class_sizes = Counter(labels.tolist())
    if class_sizes != Counter(spectra.class_sizes):
        raise ValueError(
            f"Expected the classes {dict(spectra.class_sizes)} in {path}; got (the largest) "
            f"{dict(class_sizes.most_common(6))}. Repair the labels or fetch the file again. "
            f"{spectra.origin}"
        )
