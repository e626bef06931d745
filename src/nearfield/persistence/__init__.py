"""Fitted models in files: plain arrays and names, checked before anything uses them.

``docs/file_format.md`` describes the format. `_schema` has the codecs, `_settings` the arguments of
estimators, `_spaces` and `_fields` what fitted estimators are made of, and `_estimators` the
estimators.
"""

import os
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from nearfield import __version__
from nearfield._archive import Archive, pack, unpack
from nearfield._files import replace_file
from nearfield.persistence._classifier import Classifier
from nearfield.persistence._estimators import ESTIMATOR
from nearfield.persistence._schema import Reader, Writer, ask

__all__ = ["Classifier", "load", "save"]

_FORMAT = "nearfield model"
_VERSION = 1


def save(estimator: BaseEstimator | Classifier, path: str | os.PathLike[str]) -> None:
    """Save a model, alone or in a pipeline of scikit-learn, to a file.

    The file is replaced as a whole: an interruption leaves the old one.

    Parameters
    ----------
    estimator : estimator
        A classifier of nearfield, fitted or not, or a ``Pipeline`` that has `StandardScaler`,
        `PowerTransform` or transformers of `nearfield.spectra` before one; one of
        `nearfield.dask` is fitted, and saved as what its ``to_local()`` gives.
    path : str or path
        By custom with the ending ``.nearfield``.

    Raises
    ------
    TypeError
        If the model holds something that a file cannot, such as a function as its metric.

    Examples
    --------
    >>> import os, tempfile
    >>> import nearfield
    >>> from nearfield.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nearfield.DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.nearfield")
    ...     nearfield.save(model, path)
    ...     again = nearfield.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    replace_file(path, to_bytes(estimator))


def to_bytes(estimator: BaseEstimator | Classifier) -> bytes:
    """Give the content of the file that `save` writes."""
    # A model on Dask is saved as that of one machine.
    estimator = getattr(estimator, "to_local", lambda: estimator)()
    writer = Writer()
    try:
        model = ESTIMATOR.pack(estimator, writer)
    except TypeError as error:
        raise TypeError(
            "Expected a classifier of nearfield, alone or after StandardScaler, PowerTransform or "
            f"transformers of nearfield.spectra in a Pipeline, made of plain values; {error} "
            "Nothing was written."
        ) from error
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "nearfield": __version__,
        "shared": writer.shared,
        "model": model,
    }
    return pack(header, writer.arrays)


def load(path: str | os.PathLike[str]) -> Classifier:
    """Load a model that `save` wrote.

    On one machine its predictions are the same bit for bit. No code of the file runs, and every
    value is checked against the others before a prediction could use it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator : estimator

    Raises
    ------
    ValueError
        If the file is damaged, was not written by `save`, or holds what no fit could have made.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import nearfield
    >>> from nearfield.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nearfield.KNeighborsClassifierCV().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.nearfield"
    ...     nearfield.save(model, path)
    ...     loaded = nearfield.load(path)
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    return from_bytes(Path(path).read_bytes(), os.fspath(path))


def from_bytes(content: bytes, source: str) -> Classifier:
    """Make a model of the content of a file; `source` is what an error calls the file."""
    try:
        archive = unpack(content)
    except Exception as error:  # a damaged archive can fail in any way
        raise _refusal(source, "one that is damaged or of another kind") from error
    version = archive.header.get("version")
    if archive.header.get("format") != _FORMAT or type(version) is not int:
        raise _refusal(source, "another kind of file")
    if version != _VERSION:
        raise ValueError(
            f"Expected version {_VERSION} of the format in {source!r}; got {version}, "
            f"written by nearfield {archive.header.get('nearfield')}. Load it with that version."
        )
    try:
        return _read(archive)
    except Exception as error:  # whatever a value that was never written leads to
        raise _refusal(source, f"one with a value that no fit makes ({error})") from error


def _read(archive: Archive) -> Any:
    header = archive.header
    ask(set(header) == {"format", "version", "nearfield", "shared", "model"}, "another header")
    ask(isinstance(header["shared"], list), "another header")
    return ESTIMATOR.unpack(header["model"], Reader(archive.arrays, header["shared"]))


def _refusal(source: str, what: str) -> ValueError:
    return ValueError(
        f"Expected a whole file written by nearfield.save in {source!r}; got {what}. "
        "Take it from a copy, or save the model again."
    )
