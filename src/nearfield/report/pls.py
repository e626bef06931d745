"""PLS-DA, the customary method for spectra, as a classifier with probabilities."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

PLS_COMPONENTS = (2, 4, 6, 8, 12, 16, 24)
"""Numbers of components to choose from by cross-validation."""


class PLSDiscriminantAnalysis(ClassifierMixin, BaseEstimator):
    """Partial least squares on class indicators, and a linear discriminant on its scores.

    Barker and Rayens, *Partial least squares for discrimination*, Journal of Chemometrics, 2003.

    Parameters
    ----------
    n_components : int
        At most the number of features, and of samples less one.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    pls_ : PLSRegression
    discriminant_ : LinearDiscriminantAnalysis
    """

    def __init__(self, n_components: int = 5) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to labelled samples.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Expected at least two classes; got one class, {self.classes_[0]!r}. "
                "Supply samples of another."
            )
        n_components = min(self.n_components, X.shape[1], len(X) - 1)
        indicators = np.eye(len(self.classes_))[labels]
        self.pls_ = PLSRegression(n_components, scale=True).fit(X, indicators)
        self.discriminant_ = LinearDiscriminantAnalysis().fit(self.pls_.transform(X), labels)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.discriminant_.predict_proba(self.pls_.transform(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class of each sample."""
        probabilities = self.predict_proba(X)  # first: it says if there is nothing fitted
        return self.classes_[probabilities.argmax(axis=1)]
