"""k nearest neighbours with k chosen by leave-one-out cross-validation over every k at once."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_whole
from nearfield._fitting import all_or_nothing
from nearfield.estimators._base import MetricClassifier
from nearfield.estimators._metric import Metric, is_named
from nearfield.estimators._settings import check_choice, check_common, make_rng
from nearfield.estimators._sizes import sizes
from nearfield.estimators._validation import check_training_data
from nearfield.estimators._votes import leave_one_out_errors, list_shares, outvoted, vote_shares
from nearfield.neighbors import SEARCHES, Index, SearchName
from nearfield.prediction import map_chunks

_VALUES_A_CHUNK = 2**20  # distances at once: 8 MB
_N_QUERIES = 512  # at once


class KNeighborsClassifierCV(MetricClassifier):
    r"""Classification by k nearest neighbours, k chosen by leave-one-out cross-validation.

    .. math:: \hat k = \arg\min_k \frac1n \sum_i 1[\hat y^{(k)}_{-i} \ne y_i]

    over every k from 1 to n/2, with ties to the smallest k; the comparator of Friel and Pettitt
    (2011). One sort of the neighbours and one running sum of their votes serve all k: the errors
    are those of a loop over scikit-learn's ``KNeighborsClassifier``.

    With more than 10,000 points, 5,000 of them, drawn at random, are left out in turn, with their
    neighbours from all points, and k goes up to 512: memory grows with n, and the standard error
    of an error rate is at most 0.007. Neighbours are found by a search; the sorted distances of
    all points to all are never made.

    Parameters
    ----------
    metric, metric_params, standardize, categorical_features
        As in `DistanceNeighborsClassifier`. What they learn from the training points is learned
        once, from all of them.
    max_neighbors : int, optional
        The largest k to try; by default n/2, but with more than 10,000 points 512.
    search : {"exact", "approximate"}
        With more than 10,000 points, how neighbours are found; as in
        `DistanceNeighborsClassifier`.
    n_jobs : int, optional
        Parallel threads; no result depends on it.
    random_state : int, RandomState, Generator or None
        Draws the points that are left out, of more than 10,000.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    columns_, encoder_
        As in `DistanceNeighborsClassifier`.
    cv_errors_ : ndarray, shape (max_neighbors,)
        The leave-one-out error rate of k = 1, 2, ...
    n_neighbors_ : int
        The k that was chosen.
    labels_, metric_space_
        As in `DistanceNeighborsClassifier`.

    Notes
    -----
    Of classes with as many votes the first in ``classes_`` wins, as in scikit-learn. Of training
    points at the same distance the first in the order of training are nearer; scikit-learn leaves
    that order open, and so does the search with more than 10,000 points. Distances that are
    precomputed are there already, and all points are left out in turn whatever their number.

    Examples
    --------
    >>> from nearfield import KNeighborsClassifierCV
    >>> from nearfield.datasets import load_iris, stratified_split
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = stratified_split(y, 0.25, random_state=0)
    >>> model = KNeighborsClassifierCV().fit(X[train], y[train])
    >>> model.n_neighbors_
    7
    >>> print(f"{model.score(X[test], y[test]):.2f}")
    0.93
    """

    def __init__(
        self,
        metric: Metric = "euclidean",
        *,
        metric_params: dict[str, Any] | None = None,
        standardize: bool = True,
        categorical_features: Any = "from_dtype",
        max_neighbors: int | None = None,
        search: SearchName = "exact",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.metric_params = metric_params
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.max_neighbors = max_neighbors
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose k for labelled points.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances, shape (n_samples, n_samples).
        y : array-like, shape (n_samples,)
            Classes of any kind: text, whole numbers, truth values.

        Returns
        -------
        self : object
        """
        check_common(self)
        check_choice(self.search, "search", SEARCHES)
        X, labels = check_training_data(self, X, y)
        max_k = self._max_k(len(labels))
        space = self._fit_space(X, labels)
        index = None
        if self._is_large(len(labels)):
            index = space.make_index(self.search)
            sites = make_rng(self.random_state).permutation(len(labels))[: sizes().n_left_out]
            n_errors = self._errors_by_lists(index, space.points, labels, sites, max_k)
        else:
            sites = np.arange(len(labels))
            distances = space.training_distances(X, self.n_jobs)
            n_errors = map_chunks(
                lambda own: leave_one_out_errors(distances[own], own, labels, max_k)[None],
                sites,
                max(1, _VALUES_A_CHUNK // len(labels)),
                self.n_jobs,
            ).sum(axis=0)
        self.metric_space_ = space
        self._index = index
        self.labels_ = labels
        self.cv_errors_ = n_errors / len(sites)
        self.n_neighbors_ = int(np.argmin(n_errors)) + 1  # the first of equals
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the share of each class among the k nearest training points.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances to the training points. A row without any
            value gets the class proportions of the training points.

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        shares = self._shares_by_lists if self._is_large(len(self.labels_)) else self._all_shares
        return self._predict_gaps(X, None, lambda points: (shares(points),))[0]

    def _all_shares(self, points: Any) -> NDArray[np.float64]:
        """Count votes by the distances to all training points."""
        return map_chunks(
            lambda chunk: vote_shares(
                self.metric_space_.distances_to(chunk),
                self.labels_,
                len(self.classes_),
                self.n_neighbors_,
            ),
            points,
            max(1, _VALUES_A_CHUNK // self.metric_space_.n_points),
            self.n_jobs,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the index, which follows from the points."""
        return {name: v for name, v in super().__getstate__().items() if name != "_index"}

    def _is_large(self, n_points: int) -> bool:
        """Tell whether to search for neighbours, as all distances would be too many."""
        is_given = is_named(self.metric, "precomputed")
        return n_points > sizes().max_dense and not is_given

    def _errors_by_lists(
        self,
        index: Index,
        points: Any,
        labels: NDArray[np.int64],
        sites: NDArray[np.int64],
        max_k: int,
    ) -> NDArray[np.int64]:
        """Count the errors of some sites, for every k, by their lists of neighbours."""

        def count(own: NDArray[np.int64]) -> NDArray[np.int64]:
            found = index.query(points[own], max_k + 1).without(own)
            return outvoted(labels[found.rows], labels[own])[None]

        return map_chunks(count, sites, _N_QUERIES, self.n_jobs).sum(axis=0)

    def _shares_by_lists(self, X: Any) -> NDArray[np.float64]:
        space = self.metric_space_
        index = self._index = getattr(self, "_index", None) or space.make_index(self.search)

        def shares(chunk: Any) -> NDArray[np.float64]:
            found = index.query(space.place(chunk), self.n_neighbors_)
            return list_shares(self.labels_[found.rows], len(self.classes_))

        return map_chunks(shares, X, _N_QUERIES, self.n_jobs)

    def _max_k(self, n_points: int) -> int:
        if self.max_neighbors is None:
            most = n_points // 2
            return min(most, sizes().max_k) if self._is_large(n_points) else most
        max_k = check_whole(self.max_neighbors, "max_neighbors", minimum=1)
        if max_k >= n_points:
            raise ValueError(
                f"Expected max_neighbors < n_samples; got max_neighbors={max_k}, "
                f"n_samples={n_points}. Lower max_neighbors or supply more points."
            )
        return max_k
