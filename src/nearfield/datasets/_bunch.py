"""What a loader hands back: scikit-learn's Bunch, or (X, y), with a description of the data."""

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

Arrays = tuple[NDArray[np.float64], NDArray[np.int64]]
Frames = tuple[pd.DataFrame, pd.Series]
Folder = str | os.PathLike[str] | None
Loaded: TypeAlias = Any  # a Bunch, or (data, target): `Loader` tells by the arguments

_Data_co = TypeVar("_Data_co", covariant=True)
_Target_co = TypeVar("_Target_co", covariant=True)
_Frame_co = TypeVar("_Frame_co", covariant=True)


class LoadedBunch(Protocol[_Data_co, _Target_co, _Frame_co]):
    """A Bunch of scikit-learn, which ships no type hints, with the entries of all loaders."""

    @property
    def data(self) -> _Data_co:
        """The features, shape (N, F)."""

    @property
    def target(self) -> _Target_co:
        """The classes as codes 0..G-1, shape (N,)."""

    @property
    def frame(self) -> _Frame_co:
        """The features and the classes in one frame, or None."""

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""

    @property
    def target_names(self) -> NDArray[np.str_]:
        """The names of the classes."""

    @property
    def DESCR(self) -> str:  # noqa: N802, scikit-learn's name
        """What the data is, where it comes from, and where it differs from the paper."""

    def __getattr__(self, name: str) -> Any:
        """Give further entries, which some data sets have."""

    def __getitem__(self, name: str) -> Any:
        """Give an entry by its name."""


ArrayBunch = LoadedBunch[NDArray[np.float64], NDArray[np.int64], None]
FrameBunch = LoadedBunch[pd.DataFrame, pd.Series, pd.DataFrame]


class Loader(Protocol):
    """A function that loads a data set: what it returns follows from its arguments."""

    @overload
    def __call__(self, *, as_frame: Literal[False] = ...) -> ArrayBunch: ...
    @overload
    def __call__(self, *, as_frame: Literal[True]) -> FrameBunch: ...
    @overload
    def __call__(self, *, return_X_y: Literal[True], as_frame: Literal[False] = ...) -> Arrays: ...
    @overload
    def __call__(self, *, return_X_y: Literal[True], as_frame: Literal[True]) -> Frames: ...
    @overload
    def __call__(self, *, return_X_y: bool = ..., as_frame: bool = ...) -> Any: ...


class FolderLoader(Protocol):
    """As `Loader`, for data in a folder of the user."""

    @overload
    def __call__(
        self, data_home: Folder = ..., *, as_frame: Literal[False] = ...
    ) -> ArrayBunch: ...
    @overload
    def __call__(self, data_home: Folder = ..., *, as_frame: Literal[True]) -> FrameBunch: ...
    @overload
    def __call__(
        self, data_home: Folder = ..., *, return_X_y: Literal[True], as_frame: Literal[False] = ...
    ) -> Arrays: ...
    @overload
    def __call__(
        self, data_home: Folder = ..., *, return_X_y: Literal[True], as_frame: Literal[True]
    ) -> Frames: ...
    @overload
    def __call__(
        self, data_home: Folder = ..., *, return_X_y: bool = ..., as_frame: bool = ...
    ) -> Any: ...


def loader(function: Callable[..., Loaded]) -> Loader:
    """Tell type checkers what a loader returns; the function stays as it is."""
    return function


def folder_loader(function: Callable[..., Loaded]) -> FolderLoader:
    """Tell type checkers what a loader of a folder returns; the function stays as it is."""
    return function


class Description(NamedTuple):
    """The words of DESCR; its counts are taken from the data."""

    title: str
    about: str
    source: str
    against_paper: str


def to_bunch(
    features: pd.DataFrame,
    labels: NDArray[np.str_],
    target_names: Sequence[str],
    description: Description,
    *,
    return_X_y: bool,
    as_frame: bool,
    **extras: Any,
) -> Loaded:
    """Code the labels by their place in ``target_names`` and pack all in scikit-learn's shape.

    Parameters
    ----------
    features : DataFrame of shape (N, F)
    labels : ndarray of shape (N,)
        Class names, every one of them in ``target_names``.
    target_names : sequence of str, length G
    description : Description
    return_X_y, as_frame : bool
    **extras
        Further entries of the Bunch.

    Returns
    -------
    Bunch, or (data, target) if ``return_X_y``
    """
    feature_names = list(features.columns)
    target: Any = pd.Index(target_names).get_indexer(pd.Index(labels)).astype(np.int64)
    # A copy, because pandas may lend a read-only view.
    data: Any = np.array(features, dtype=np.float64, order="C")
    frame = None
    if as_frame:
        frame = pd.DataFrame(data, columns=feature_names).assign(target=target)
        data, target = frame[feature_names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=np.array(target_names, dtype=np.str_),
        DESCR=_describe(features, labels, target_names, description),
        **extras,
    )


def _describe(
    features: pd.DataFrame,
    labels: NDArray[np.str_],
    target_names: Sequence[str],
    description: Description,
) -> str:
    n_points, n_features = features.shape
    class_sizes = ", ".join(f"{name} {np.sum(labels == name)}" for name in target_names)
    paragraphs = [
        f"N={n_points} points, F={n_features} features, G={len(target_names)} classes: "
        f"{class_sizes}.",
        description.about,
        f"Source: {description.source}",
        f"Against the paper: {description.against_paper}",
    ]
    heading = f"{description.title}\n{'=' * len(description.title)}"
    return "\n\n".join([heading, *(textwrap.fill(text, width=88) for text in paragraphs)]) + "\n"
