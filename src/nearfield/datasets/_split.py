"""Splits into training and test points that keep the proportions of the classes."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Counts: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def stratified_split(
    labels: ArrayLike,
    train_size: int | float | Mapping[Any, int],
    *,
    random_state: Seed = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    r"""Draw a training set in which every class has its share.

    Of N points, n to train on, class g of size N_g gets

    .. math:: n_g \approx n N_g / N, \qquad \textstyle\sum_g n_g = n

    training points, rounded by the largest remainder (ties: the first class in sorted order). Two
    rules go before the proportion: if n is at least the number of classes, every class
    has a training point; and every class of two or more points has a test point, unless
    there are too few test points for that.

    Parameters
    ----------
    labels : array-like of shape (N,)
        Numbers or strings.
    train_size : int, float or mapping
        The number of training points, 1 <= train_size <= N - 1; or their fraction, in (0, 1), of
        which train_size * N is rounded, halves up; or, for each class of ``labels``,
        its number of training points, from 0 to the size of the class.
    random_state : int, Generator, RandomState or None
        Fixes the draw. The numbers of points do not depend on it.

    Returns
    -------
    train_indices, test_indices : ndarray
        Sorted, disjoint, and together 0..N-1.

    Examples
    --------
    >>> from nearfield.datasets import load_iris, stratified_split
    >>> iris = load_iris()
    >>> train, test = stratified_split(iris.target, 0.25, random_state=0)
    >>> len(train), len(test)
    (38, 112)

    A mapping has the labels as its keys; for names in place of codes, as in the meat table,
    ``stratified_split(meat.target_names[meat.target], MEAT_TRAINING_COUNTS)``.
    """
    classes, codes = _encode(labels)
    class_sizes = np.bincount(codes).astype(np.int64)
    if isinstance(train_size, Mapping):
        train_counts = _checked_counts(train_size, classes, class_sizes)
    else:
        n_train = _checked_size(train_size, n_points=len(codes))
        train_counts = _allocate(n_train, class_sizes)

    shuffled = _to_generator(random_state).permutation(len(codes))
    is_train = np.zeros(len(codes), dtype=np.bool_)
    for g, count in enumerate(train_counts):
        is_train[shuffled[codes[shuffled] == g][:count]] = True
    return np.flatnonzero(is_train), np.flatnonzero(~is_train)


def _encode(labels: ArrayLike) -> tuple[list[Any], NDArray[np.intp]]:
    # As objects: a string array would turn a missing label into the class 'nan'.
    values = np.asarray(labels, dtype=object)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(
            f"Expected labels of shape (N,) with N >= 2; got shape {values.shape}. "
            "Pass one label for each point."
        )
    codes, classes = pd.factorize(values, sort=True)
    if (codes < 0).any():
        raise ValueError(
            f"Expected a label for every point; got {int(np.sum(codes < 0))} missing, the first at "
            f"index {int(np.argmax(codes < 0))}. Leave out the points without a label."
        )
    return classes.tolist(), codes


def _checked_size(train_size: int | float, n_points: int) -> int:
    if isinstance(train_size, bool | np.bool_) or not isinstance(train_size, Real):
        raise ValueError(
            "Expected train_size to be an int, a float in (0, 1) or a mapping from class to count; "
            f"got {train_size!r}."
        )
    if isinstance(train_size, Integral):
        n_train = int(train_size)
    elif 0.0 < train_size < 1.0:
        n_train = int(np.floor(float(train_size) * n_points + 0.5))
    else:
        raise ValueError(
            f"Expected 0 < train_size < 1 for a fraction; got train_size={train_size!r}. "
            "Pass an int for a number of points."
        )
    if not 1 <= n_train <= n_points - 1:
        raise ValueError(
            f"Expected 1 <= training points <= N - 1; got train_size={train_size!r}, which is "
            f"{n_train} of N={n_points} points. Leave at least one point on each side."
        )
    return n_train


def _checked_counts(counts: Mapping[Any, int], classes: list[Any], class_sizes: Counts) -> Counts:
    missing = [label for label in classes if label not in counts]
    unknown = [label for label in counts if label not in classes]
    if missing or unknown:
        raise ValueError(
            f"Expected one training count for each of the classes {classes}; got none for "
            f"{missing}, and counts for the unknown {unknown}. The keys are the values of "
            "labels, for instance codes or names, but not one for the other."
        )
    for label, size in zip(classes, class_sizes, strict=True):
        count = counts[label]
        is_integer = isinstance(count, Integral) and not isinstance(count, bool)
        if not is_integer or not 0 <= count <= size:
            raise ValueError(
                f"Expected an integer 0 <= count <= class size; got count={count!r} for class "
                f"{label!r} of size {size}."
            )
    return np.array([counts[label] for label in classes], dtype=np.int64)


def _allocate(n_train: int, class_sizes: Counts) -> Counts:
    """Share ``n_train`` points out in proportion to the class sizes, within bounds.

    Starting from the shares rounded down, one point at a time goes to (or comes from) the class
    that is furthest below (above) its share. Without bounds this is the largest remainder.
    """
    n_points = class_sizes.sum()
    lower = np.full_like(class_sizes, n_train >= len(class_sizes))
    upper = np.maximum(class_sizes - 1, lower)
    if n_train > upper.sum():
        upper = class_sizes

    # Shares times n_points: integers, so that equal remainders are equal.
    scaled_shares = n_train * class_sizes
    counts = np.clip(scaled_shares // n_points, lower, upper)
    while surplus := counts.sum() - n_train:
        step = -np.sign(surplus)
        is_free = counts < upper if step > 0 else counts > lower
        distance = step * (scaled_shares - counts * n_points)
        counts[np.argmax(np.where(is_free, distance, np.iinfo(np.int64).min))] += step
    return counts


def _to_generator(random_state: Seed) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        # Drawn from it, so that it moves on and a second split is another one.
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "Expected random_state to be None, an int >= 0, a numpy Generator or a RandomState; "
            f"got {random_state!r}."
        ) from error
