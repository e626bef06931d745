"""Methods for tables with categories and missing values, each as its users would use it.

CatBoost, LightGBM and histogram gradient boosting take categories as they are; the others have
them one-hot encoded, with missing numbers replaced by the mean and an indicator.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nearfield._extras import import_extra
from nearfield.benchmark.methods import Maker, OutOfBagForest, Shape, knn, logistic, nearfield


def one_hot(*steps: Any) -> Any:
    """Put before a method what a careful user has at hand for text and missing values."""
    imputer = SimpleImputer(add_indicator=True, keep_empty_features=True)
    text = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numeric = ["number", "bool"]
    encoder = make_column_transformer(
        (make_pipeline(imputer, StandardScaler()), make_column_selector(dtype_include=numeric)),
        (text, make_column_selector(dtype_exclude=numeric)),
    )
    return make_pipeline(encoder, *steps)


def _extra_trees(shape: Shape, seed: int) -> Any:
    return one_hot(ExtraTreesClassifier(300, min_samples_leaf=3, random_state=seed))


def _network(shape: Shape, seed: int) -> Any:
    return one_hot(MLPClassifier(early_stopping=True, max_iter=500, random_state=seed))


def _lightgbm(shape: Shape, seed: int) -> Any:
    lightgbm = import_extra("lightgbm")
    return lightgbm.LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)  # categories by type


class NativeCatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost with its defaults, told which columns are categories.

    Parameters
    ----------
    random_state : int
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "NativeCatBoost":
        """Fit to a data frame, or to an array of numbers."""
        frame = _as_text(X)
        self.model_ = import_extra("catboost").CatBoostClassifier(
            random_seed=self.random_state, thread_count=1, verbose=0, allow_writing_files=False
        )
        texts = [name for name in frame.columns if frame[name].dtype == object]
        self.model_.fit(frame, y, cat_features=texts)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, shape (m, G)."""
        return self.model_.predict_proba(_as_text(X))


def _as_text(X: Any) -> pd.DataFrame:
    """Give categories as text, a missing one as a level, which is what CatBoost takes."""
    frame = pd.DataFrame(X)
    texts = frame.select_dtypes("category").columns
    return frame.assign(
        **{name: frame[name].astype(object).where(frame[name].notna(), "none") for name in texts}
    )


TABLE_METHODS: Mapping[str, Maker] = {
    "nearfield": nearfield,
    "k-nn": knn,
    "logistic regression": lambda shape, seed: one_hot(logistic(shape)),
    "CatBoost": lambda shape, seed: NativeCatBoost(seed),
    "LightGBM": _lightgbm,
    "HistGradientBoosting": lambda shape, seed: HistGradientBoostingClassifier(random_state=seed),
    "random forest": lambda shape, seed: one_hot(OutOfBagForest(random_state=seed)),
    "extra trees": _extra_trees,
    "neural network": _network,
}
"""Makers of the methods by name."""

LARGE_METHODS = ("nearfield", "logistic regression", "LightGBM", "HistGradientBoosting")
"""Those that are compared on large tables too; the others take too long."""

_PACKAGES = {"CatBoost": "catboost", "LightGBM": "lightgbm"}  # beyond those of nearfield


def installed(methods: Mapping[str, Maker]) -> dict[str, Maker]:
    """Leave out methods whose package is not installed."""
    return {
        name: maker
        for name, maker in methods.items()
        if name not in _PACKAGES or find_spec(_PACKAGES[name]) is not None
    }
