"""Fitted models in files: safe to load, whole or not there at all.

Files are written by skops, which describes objects in JSON and arrays in NumPy's own format. It
names the types that a file asks for before anything of it is made: what is not known here is
refused, and no code of it ever runs.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

from sklearn.base import BaseEstimator

from nearfield import __version__, distances, estimators, inference
from nearfield._files import replace_file

_FORMAT = 1

_PARTS = (
    "nearfield.distances.power.PowerTransform",
    "nearfield.estimators._measured.MeasuredFamily",
    "nearfield.estimators._metric.MetricSpace",
    "nearfield.estimators._standardize.Standardization",
    "nearfield.field.families.DistanceFamily",
    "nearfield.field.neighbor_family.NeighborFamily",
    "nearfield.inference._posterior.Posterior",
    "nearfield.neighbors.graph.NeighborGraph",
    "nearfield.inference._priors.Priors",
    "pathlib.PosixPath",  # of a checkpoint
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",
    "pathlib._local.WindowsPath",
)


def save(
    estimator: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str | type] = (),
) -> None:
    """Save a model, alone or in a pipeline of scikit-learn, to a file.

    At any moment the file is the old one or the new one, whole.

    Parameters
    ----------
    estimator : estimator
        Fitted or not; one of `nearfield.dask` is fitted, and saved as what its ``to_local()``
        gives.
    path : str or path
        By custom with the ending ``.skops``.
    trusted : sequence of str or type
        Further types that the model is made of, such as ``"package.module.Transformer"``; to
        load it they must be given again.

    Raises
    ------
    TypeError
        If the model holds something that could not be loaded again, such as a function as its
        metric.

    Examples
    --------
    >>> import os, tempfile
    >>> import nearfield
    >>> from nearfield.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nearfield.DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.skops")
    ...     nearfield.save(model, path)
    ...     again = nearfield.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    import skops.io

    if not isinstance(estimator, BaseEstimator):
        raise TypeError(
            f"Expected an estimator; got {type(estimator).__name__}. Save a model or a pipeline."
        )
    # A model on Dask is saved as that of one machine.
    estimator = getattr(estimator, "to_local", lambda: estimator)()
    record = {"format": _FORMAT, "nearfield": __version__, "estimator": estimator}
    try:
        content = skops.io.dumps(record, compression=ZIP_DEFLATED, compresslevel=1)
    except Exception as error:  # skops knows no end of things that it cannot describe
        raise TypeError(
            f"Expected a model made of arrays and known types; {error} Give metrics by name, and "
            "priors as distributions of scipy.stats."
        ) from error
    foreign = _foreign_types(content, trusted)
    if foreign:
        raise TypeError(
            f"Expected a model made of types that can be loaded again; got {foreign}. Give metrics "
            "by name, priors as distributions of scipy.stats, or name the types in trusted."
        )
    replace_file(path, content)


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type] = ()) -> Any:
    """Load a model that `save` wrote; its predictions are the same, bit for bit.

    Parameters
    ----------
    path : str or path
    trusted : sequence of str or type
        Types beyond those of nearfield, scikit-learn, NumPy and SciPy that may be made. Name
        only what you know: making them runs their code.

    Returns
    -------
    estimator : estimator

    Raises
    ------
    ValueError
        If the file is damaged, was not written by `save`, or asks for another type. Nothing of it
        has run then.
    """
    import skops.io

    content = Path(path).read_bytes()
    try:
        foreign = _foreign_types(content, trusted)
        record = None if foreign else skops.io.loads(content, trusted=_trusted_types(trusted))
    except Exception as error:  # a damaged archive can fail in any way
        raise ValueError(
            f"Expected a whole file written by nearfield.save in {os.fspath(path)!r}; got one that "
            "is damaged or of another kind. Take it from a copy, or save the model again."
        ) from error
    if foreign:
        raise ValueError(
            f"Expected only types that nearfield knows in {os.fspath(path)!r}; got {foreign}. "
            "Nothing was loaded. If you know them and where the file is from, name them in trusted."
        )
    return _unwrapped(record, path)


def _foreign_types(content: bytes, trusted: Sequence[str | type]) -> list[str]:
    """Name the types that a file asks for and that nobody trusts; makes none of them."""
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - set(_trusted_types(trusted)))


def _trusted_types(further: Sequence[str | type]) -> list[str]:
    layers = (distances, inference, estimators)
    exported = [getattr(layer, name) for layer in layers for name in layer.__all__]
    types = [t for t in exported if isinstance(t, type)]  # functions have no place in a model
    known = [*types, *further]
    names = [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in known]
    return [*_PARTS, *names]


def _unwrapped(record: Any, path: str | os.PathLike[str]) -> Any:
    is_ours = isinstance(record, dict) and {"format", "nearfield", "estimator"} <= set(record)
    if not is_ours or not isinstance(record["estimator"], BaseEstimator):
        raise ValueError(
            f"Expected a model written by nearfield.save in {os.fspath(path)!r}; got something "
            "else. Save a model with nearfield.save."
        )
    if record["format"] != _FORMAT:
        raise ValueError(
            f"Expected format {_FORMAT} in {os.fspath(path)!r}; got {record['format']!r}, written "
            f"by nearfield {record['nearfield']}. Load it with that version."
        )
    return record["estimator"]
