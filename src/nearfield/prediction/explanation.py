r"""Why a class was predicted: training samples, features, and what would change the answer.

The log odds of the two most probable classes are attributed to features along the straight path
from the training mean to the point, as by integrated gradients (Sundararajan, Taly and Yan, 2017),

.. math:: a_f = (x_f - \bar x_f) \int_0^1
          \frac{\partial \ell}{\partial x_f} \bigl(\bar x + t (x - \bar x)\bigr) \, dt, \qquad
          \ell = \log p(\text{first}) - \log p(\text{second})

which add up to the log odds of the point less those of the mean, but for the error of the numerical
integral (see `N_STEPS`). A spectrum on the path is as smooth as the two at its ends, while a single
wavelength put to its mean would leave a spike unlike all data.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = Sequence[NDArray[np.int64]]

N_STEPS = 16
"""Steps of the path. For three samples of wine, 8 and 16 steps add up to within 7% of the log odds
for d-nn and averages of it, 4 to within 22%. Of pk-nn, whose log odds jump, 16 add up to within
25%."""

# Of more features, one alone would soon leave the data: for a meat spectrum, steps of 1/16 of the
# path add up to 13 times the log odds. Derivatives take their place, by differences to one side.
# For three meat spectra 8 of them along the path add up to within 41% of the log odds; 16 to within
# 6%, in twice the time. The attributions of the two correlate by 0.93 or more.
_MANY_FEATURES = 100
_N_DERIVATIVES = 8
_SMALL_STEP = 1e-7  # of the path
_VALUES_AT_ONCE = 2**19  # of copies of a point: 4 MB, which a cache holds


@dataclass(frozen=True)
class SampleInfluence:
    """What one training sample adds to a prediction.

    Attributes
    ----------
    row : int
        Its row in the training data, from 0.
    label : Any
        Its class.
    influence : float
        What it adds to the log odds of its class.
    """

    row: int
    label: Any
    influence: float


@dataclass(frozen=True)
class FeatureAttribution:
    """What the value of one feature does for the first class against the second.

    Attributes
    ----------
    feature : Any
        Its name, or its position without names.
    value : Any
        The value of the sample; None where it is missing or not known.
    attribution : float
        Its share of the log odds of the first class against the second, less those of the mean
        of the training samples: positive if the value favours the first class.
    """

    feature: Any
    value: Any
    attribution: float


@dataclass(frozen=True)
class ClassChange:
    """Values of another sample that change the predicted class.

    Attributes
    ----------
    label : Any
        The class that is predicted with these values.
    row : int
        The other sample's row in the training data.
    values : tuple of (feature, value)
        The features that take the value of the other sample, most effective first.
    """

    label: Any
    row: int
    values: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Explanation:
    """The prediction of one sample, and what made it.

    Attributes
    ----------
    classes : tuple
    probabilities : tuple of float
        In the order of `classes`.
    first, second : Any
        The most probable class, which is predicted, and the next.
    samples : tuple of SampleInfluence
        The training samples with the largest influence, largest first.
    features : tuple of FeatureAttribution
        All features in their order; none where distances are precomputed.
    nearest_other : SampleInfluence
        The nearest training sample of the second class, among those whose features are kept: all,
        or 2,000 of more.
    change : ClassChange or None
        The features that must take the values of another training sample for another class, found
        in the order of their single effects; of many correlated ones, few may do. The sample is the
        nearest of the second class that is not itself predicted to be of the first; None if none
        of the 32 nearest is such.

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data[::2], iris.target_names[iris.target[::2]]
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> why = model.explain(iris.data[71:72])[0]
    >>> print(why.first, "rather than", why.second)
    versicolor rather than virginica
    >>> len(why.to_frame("samples")), len(why.to_frame("features"))
    (10, 4)
    >>> why.change.label
    'virginica'
    """

    classes: tuple[Any, ...]
    probabilities: tuple[float, ...]
    first: Any
    second: Any
    samples: tuple[SampleInfluence, ...]
    features: tuple[FeatureAttribution, ...]
    nearest_other: SampleInfluence
    change: ClassChange | None

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers, text, lists and dicts, for JSON; probabilities in the classes' order.

        Values that are missing are None.
        """
        plain = asdict(self)
        return {
            **plain,
            "classes": list(self.classes),
            "probabilities": list(self.probabilities),
            "samples": list(plain["samples"]),
            "features": list(plain["features"]),
            "change": self.change
            and {
                "label": self.change.label,
                "row": self.change.row,
                "values": [{"feature": name, "value": value} for name, value in self.change.values],
            },
        }

    def to_frame(self, part: str = "features") -> pd.DataFrame:
        """Give the features or the training samples as a table, most important first.

        Parameters
        ----------
        part : {"features", "samples"}
        """
        if part == "samples":
            return pd.DataFrame(
                [asdict(sample) for sample in self.samples], columns=["row", "label", "influence"]
            )
        if part != "features":
            raise ValueError(
                f'Expected part as "features" or "samples"; got {part!r}. Choose one of them.'
            )
        columns = ["feature", "value", "attribution"]
        frame = pd.DataFrame([asdict(feature) for feature in self.features], columns=columns)
        order = np.argsort(-np.abs(frame["attribution"].to_numpy(dtype=float)), kind="stable")
        return frame.iloc[order].reset_index(drop=True)


class Contrast(NamedTuple):
    """The two most probable classes of a point, as positions in ``classes_``."""

    first: int
    second: int

    @classmethod
    def from_probabilities(cls, probabilities: Floats) -> "Contrast":
        """Rank the classes of one point, shape (G,); of equals the first comes first."""
        first, second = np.argsort(-probabilities, kind="stable")[:2]
        return cls(int(first), int(second))

    def log_odds(self, probabilities: Floats) -> Floats:
        """Give the log odds of the first class against the second, shape (m,)."""
        logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
        return logs[:, self.first] - logs[:, self.second]


def leading_samples(influence: Floats, n_samples: int) -> NDArray[np.int64]:
    """Rank training samples by the size of their influence, shape (n,), and give the first."""
    order = np.argsort(-np.abs(influence), kind="stable")[:n_samples]
    return order[influence[order] != 0.0]


def path_attributions(
    predict: Callable[[Floats], Floats],
    point: Floats,
    mean: Floats,
    groups: Groups,
    contrast: Contrast,
    n_steps: int | None = None,
) -> Floats:
    """Attribute log odds to features along the path from the mean, shape (n_features,).

    At the middle of each step, a feature alone goes from the step's start to its end: central
    differences, exact for log odds that are quadratic in the features. Of more than 100 features,
    each goes a tiny part of the way, unless the log odds are piecewise constant, as those of pk-nn.
    Arguments are those of `single_effects`.
    """
    along_path = partial(_attributions, predict, point, mean, groups, contrast)
    if len(groups) > _MANY_FEATURES:
        attributions = along_path(n_steps or _N_DERIVATIVES, (_SMALL_STEP,))
        if attributions.any():
            return attributions
    n_steps = n_steps or N_STEPS
    return along_path(n_steps, (-0.5 / n_steps, 0.5 / n_steps))


def _attributions(
    predict: Callable[[Floats], Floats],
    point: Floats,
    mean: Floats,
    groups: Groups,
    contrast: Contrast,
    n_steps: int,
    offsets: Sequence[float],
) -> Floats:
    """Average the difference quotients at some offsets, in parts of the path, over its steps."""
    change = np.where(np.isnan(point), 0.0, point - mean)  # a missing value stays missing
    start = np.where(np.isnan(point), point, mean)
    attributions = np.zeros(len(groups))
    for step in range(n_steps):
        middle = start + (step + 0.5) / n_steps * change
        for offset in offsets:
            loss = single_effects(predict, middle, middle + offset * change, groups, contrast)
            attributions -= loss / (offset * len(offsets) * n_steps)
    return attributions


def single_effects(
    predict: Callable[[Floats], Floats],
    point: Floats,
    other: Floats,
    groups: Groups,
    contrast: Contrast,
) -> Floats:
    """Give what the log odds lose if one feature takes its value in another point, for each.

    Parameters
    ----------
    predict : callable
        From points, shape (m, n_columns), to probabilities, shape (m, G).
    point, other : ndarray, shape (n_columns,)
    groups : sequence of ndarray of int
        The columns that make up each feature.
    contrast : Contrast

    Returns
    -------
    effects : ndarray, shape (n_features,)
    """
    effects = np.zeros(len(groups))
    is_same = (point == other) | (np.isnan(point) & np.isnan(other))
    candidates = np.flatnonzero([not is_same[columns].all() for columns in groups])
    n_rows = max(1, _VALUES_AT_ONCE // max(len(point), 1))
    for start in range(0, len(candidates), n_rows):
        batch = candidates[start : start + n_rows]
        copies = np.tile(point, (len(batch) + 1, 1))
        for row, feature in enumerate(batch):
            copies[row, groups[feature]] = other[groups[feature]]
        log_odds = contrast.log_odds(predict(copies))  # the last row is the point itself
        effects[batch] = log_odds[-1] - log_odds[:-1]
    return effects


def find_change(
    predict: Callable[[Floats], Floats],
    point: Floats,
    other: Floats,
    groups: Groups,
    contrast: Contrast,
) -> tuple[NDArray[np.int64], int] | None:
    """Find features whose values in another point change the class of a point.

    Features take the values of the other point one after the other, in the order of their single
    effects, until the class changes. With two classes, one feature is found wherever one suffices;
    more may not be the fewest possible. Arguments are those of `single_effects`.

    Returns
    -------
    features, new_class : ndarray of int and int; or None
        None if all values of the other point leave the class as it is.
    """
    order = np.argsort(-single_effects(predict, point, other, groups, contrast), kind="stable")
    n_rows = max(1, _VALUES_AT_ONCE // max(len(point), 1))
    changed = point.copy()
    for start in range(0, len(order), n_rows):
        batch = order[start : start + n_rows]
        copies = np.empty((len(batch), len(point)))
        for row, feature in enumerate(batch):
            changed[groups[feature]] = other[groups[feature]]
            copies[row] = changed
        predicted = predict(copies).argmax(axis=1)
        is_changed = predicted != contrast.first
        if is_changed.any():
            row = int(is_changed.argmax())
            return order[: start + row + 1], int(predicted[row])
    return None
