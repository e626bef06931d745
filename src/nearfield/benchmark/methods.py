"""The methods compared, each tuned as a careful user would, on the training points alone."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from nearfield import DistanceNeighborsClassifier, KNeighborsClassifierCV, NearfieldClassifier
from nearfield.field import KernelName


class Shape(NamedTuple):
    """What tuning must know of the training points."""

    n_points: int
    n_features: int
    smallest_class: int

    @property
    def n_folds(self) -> int:
        """Folds of an inner cross-validation: five, or as many as the smallest class allows."""
        return max(2, min(5, self.smallest_class))


Maker = Callable[[Shape, int], Any]


class OutOfBagForest(ClassifierMixin, BaseEstimator):
    """A random forest whose leaf size is chosen by the log loss of out-of-bag points.

    Parameters
    ----------
    n_estimators : int
    leaf_sizes : sequence of int
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        n_estimators: int = 300,
        leaf_sizes: tuple[int, ...] = (1, 3, 5),
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.leaf_sizes = leaf_sizes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "OutOfBagForest":
        """Grow a forest for each leaf size and keep the best."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        forests = [
            RandomForestClassifier(
                self.n_estimators,
                min_samples_leaf=leaf_size,
                oob_score=True,
                random_state=self.random_state,
            ).fit(X, y)
            for leaf_size in self.leaf_sizes
        ]
        losses = [_log_loss(forest.oob_decision_function_, codes) for forest in forests]
        self.forest_ = forests[int(np.argmin(losses))]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, shape (m, G)."""
        check_is_fitted(self)
        return self.forest_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class of each point, shape (m,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _log_loss(probabilities: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    own = probabilities[np.arange(len(codes)), codes]
    return -float(np.mean(np.log(np.maximum(own, 1e-3))))  # a few trees may leave a zero


def nearfield(shape: Shape, seed: int) -> Any:
    """Make the recommended classifier, without settings."""
    return NearfieldClassifier(random_state=seed)


def _distance(kernel: KernelName) -> Maker:
    return lambda shape, seed: DistanceNeighborsClassifier(kernel, inference="pseudolikelihood")


def knn(shape: Shape, seed: int) -> Any:
    """Make k-nn with k by leave-one-out."""
    return KNeighborsClassifierCV(random_state=seed)


def _calibrated_knn(shape: Shape, seed: int) -> Any:
    return CalibratedClassifierCV(knn(shape, seed), method="sigmoid", cv=shape.n_folds)


def _nca(shape: Shape, seed: int) -> Any:
    # As wide as there are points, it would separate any labels: components of 99% first.
    first = [PCA(0.99)] if shape.n_features >= shape.n_points else []
    nca = NeighborhoodComponentsAnalysis(random_state=seed, max_iter=100)
    return make_pipeline(StandardScaler(), *first, nca, knn(shape, seed))


def _gaussian_process(shape: Shape, seed: int) -> Any:
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.sqrt(shape.n_features), (1e-3, 1e4))
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=seed))


def _svc(shape: Shape, seed: int) -> Any:
    grid = {
        "C": [0.1, 1.0, 10.0, 100.0, 1_000.0],
        "gamma": list(np.array([0.01, 0.1, 1.0, 10.0]) / shape.n_features),
    }
    tuned = GridSearchCV(SVC(), grid, cv=shape.n_folds)
    # Platt's probabilities, from held-out decision values of the tuned machine.
    calibrated = CalibratedClassifierCV(tuned, cv=shape.n_folds, ensemble=False)
    return make_pipeline(StandardScaler(), calibrated)


def logistic(shape: Shape) -> Any:
    """Make logistic regression with its penalty by cross-validation, for scaled features."""
    grid = {"C": list(np.logspace(-4, 4, 9))}
    machine = LogisticRegression(max_iter=2_000)
    return GridSearchCV(machine, grid, scoring="neg_log_loss", cv=shape.n_folds)


def discriminant(shape: Shape, seed: int) -> Any:
    """Make linear discriminant analysis with a covariance shrunk by Ledoit and Wolf's rule."""
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return make_pipeline(StandardScaler(), lda)


METHODS: Mapping[str, Maker] = {
    "nearfield": nearfield,
    "d-nn1": _distance("gaussian"),
    "d-nn2": _distance("radius"),
    "d-nn3": _distance("exponential"),
    "k-nn": knn,
    "k-nn, calibrated": _calibrated_knn,
    "NCA + k-nn": _nca,
    "Gaussian process": _gaussian_process,
    "SVM": _svc,
    "random forest": lambda shape, seed: OutOfBagForest(random_state=seed),
    "logistic regression": lambda shape, seed: make_pipeline(StandardScaler(), logistic(shape)),
    "shrinkage LDA": discriminant,
}
"""Makers of the methods by name: of the shape of the training points, and a seed."""
