"""What a loader hands back: scikit-learn's Bunch, or (X, y), with a description of the data."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

# A Bunch, or (X, y) when return_X_y is set. scikit-learn ships no type hints, so its Bunch is Any
# to a type checker; a union with the tuple would only forbid ``load_pima().data``.
Loaded: TypeAlias = Any


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
