"""The label field: a Markov random field over class labels, given how points weigh each other."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nearfield._checks import check_beta, check_whole


@dataclass(frozen=True, eq=False)
class LabelField:
    r"""A distribution over labelings in which points that weigh on each other tend to agree.

    .. math:: \pi(y) \propto \exp\Big(\sum_i \alpha_{y_i} + \beta S(y)\Big), \qquad
              S(y) = \sum_{i<j} c_{ij} 1[y_i = y_j]

    Friel and Pettitt (2011), section 3. The field holds everything but beta. Its coupling is
    dense, or sparse (CSR) for k-nn and many points: the same interface, the same answers.

    Parameters
    ----------
    coupling : ndarray or csr_array, shape (n, n)
        Symmetric, at least zero, zero on the diagonal: `from_weights` builds such a one and checks
        it; here it is taken as it is.
    n_classes : int
        G, at least 2.
    external_field : ndarray, shape (G,)
        alpha: class intercepts, the log odds of the classes without neighbours; zeros for none.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import LabelField, gaussian_weights
    >>> weights = gaussian_weights(distance_matrix([[0.0], [1.0], [3.0]]), 1.0)
    >>> field = LabelField.from_weights(weights, n_classes=2)
    >>> round(field.agreement([0, 0, 1]), 2)
    1.8
    >>> field.conditionals([0, 0, 1], beta=1.0).round(2)
    array([[0.85, 0.15],
           [0.67, 0.33],
           [0.77, 0.23]])
    """

    coupling: Any
    n_classes: int
    external_field: NDArray[np.float64] = field(repr=False)

    @classmethod
    def from_weights(
        cls, weights: Any, n_classes: int, external_field: ArrayLike | None = None
    ) -> Self:
        r"""Build the field from directed weights, dense or sparse.

        .. math:: c_{ij} = w_{ij} + w_{ji}

        Parameters
        ----------
        weights : array-like or sparse array, shape (n, n)
            At least zero, with a zero diagonal. They need not be symmetric.
        n_classes : int
        external_field : array-like, shape (n_classes,), optional
        """
        checked = _check_weights(weights)
        n_classes = check_whole(n_classes, "n_classes", minimum=2)
        coupling = (
            sp.csr_array(checked + checked.T) if sp.issparse(checked) else checked + checked.T
        )
        return cls(coupling, n_classes, check_external_field(external_field, n_classes))

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.coupling.shape[0]

    @property
    def is_sparse(self) -> bool:
        """Whether the coupling is a CSR array."""
        return sp.issparse(self.coupling)

    @cached_property
    def total_coupling(self) -> NDArray[np.float64]:
        """The support summed over classes, shape (n,): how much all others weigh on a point."""
        return np.asarray(self.coupling.sum(axis=1)).ravel()

    def agreement(self, labels: ArrayLike) -> float:
        r"""Sum the coupling of the pairs that agree.

        .. math:: S(y) = \sum_i \sum_{j \ne i} w_{ij} 1[y_i = y_j] = \sum_{i<j} c_{ij} 1[y_i = y_j]
        """
        labels = self.check_labels(labels)
        support = self.support(labels)
        return 0.5 * float(support[np.arange(self.n_points), labels].sum())

    def support(self, labels: ArrayLike) -> NDArray[np.float64]:
        r"""Sum, for each point and class, the coupling to the points of that class.

        .. math:: h_{ig} = \sum_j c_{ij} 1[y_j = g]

        Returns
        -------
        support : ndarray, shape (n, G)
        """
        labels = self.check_labels(labels)
        is_class = labels[:, None] == np.arange(self.n_classes)
        return np.asarray(self.coupling @ is_class.astype(np.float64))

    def log_potential(self, labels: ArrayLike, beta: float) -> float:
        r"""Evaluate the log probability of a labeling up to the constant log z.

        .. math:: \sum_i \alpha_{y_i} + \beta S(y)
        """
        labels = self.check_labels(labels)
        return float(self.external_field[labels].sum()) + beta * self.agreement(labels)

    def conditional(self, labels: ArrayLike, i: int, beta: float) -> NDArray[np.float64]:
        r"""Give the distribution of one label when all the others are known, shape (G,).

        .. math:: p(y_i = g \mid y_{-i}) \propto \exp(\alpha_g + \beta h_{ig})
        """
        labels = self.check_labels(labels)
        if check_whole(i, "i", minimum=0) >= self.n_points:
            raise ValueError(
                f"Expected i < n_points; got i={i}, n_points={self.n_points}. Name a point."
            )
        beta = check_beta(beta)
        row = self.coupling[[i]].toarray()[0] if self.is_sparse else self.coupling[i]
        support = np.bincount(labels, weights=row, minlength=self.n_classes)
        return softmax(self.external_field + beta * support)

    def conditionals(self, labels: ArrayLike, beta: float) -> NDArray[np.float64]:
        """Give the full conditional of every label, shape (n, G)."""
        return softmax(self.external_field + check_beta(beta) * self.support(labels), axis=1)

    def to_dense(self) -> "LabelField":
        """Return the same field with a dense coupling."""
        coupling = self.coupling.toarray() if self.is_sparse else self.coupling
        return LabelField(coupling, self.n_classes, self.external_field)

    def to_sparse(self) -> "LabelField":
        """Return the same field with a sparse coupling (CSR)."""
        return LabelField(sp.csr_array(self.coupling), self.n_classes, self.external_field)

    def check_labels(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Accept labels 0..G-1, one a point, or say what is wrong with them."""
        return check_labels(labels, self.n_points, self.n_classes)


def check_field(field: Any) -> LabelField:
    """Accept a field, or say how to make one."""
    if not isinstance(field, LabelField):
        raise TypeError(
            f"Expected a LabelField; got {type(field).__name__}. Make one from weights, shape "
            "(n, n): LabelField.from_weights(weights, n_classes)."
        )
    return field


def check_labels(labels: ArrayLike, n_points: int, n_classes: int) -> NDArray[np.int64]:
    """Accept labels 0..G-1, one a point, or say what is wrong with them."""
    checked = np.asarray(labels)
    if checked.shape != (n_points,) or not np.issubdtype(checked.dtype, np.integer):
        raise ValueError(
            f"Expected {n_points} whole-number labels, shape ({n_points},); got "
            f"shape {checked.shape} and dtype {checked.dtype}. Give one class index a point."
        )
    if checked.min() < 0 or checked.max() >= n_classes:
        raise ValueError(
            f"Expected labels from 0 to n_classes - 1 = {n_classes - 1}; got labels from "
            f"{checked.min()} to {checked.max()}. Encode the classes as 0..G-1."
        )
    return checked.astype(np.int64, copy=False)


def _check_weights(weights: Any) -> Any:
    as_array: Any = sp.csr_array if sp.issparse(weights) else np.asarray
    checked = as_array(weights, dtype=np.float64)
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1] or checked.shape[0] < 2:
        raise ValueError(
            f"Expected weights of shape (n, n) with n >= 2; got shape {checked.shape}. "
            "Give one row of weights a point."
        )
    values = checked.data if sp.issparse(checked) else checked
    if not (np.isfinite(values).all() and values.min(initial=0.0) >= 0.0):
        raise ValueError(
            "Expected finite weights >= 0; got one that is negative or not finite. "
            "Build them with the functions of nearfield.field.weights."
        )
    if checked.diagonal().any():
        raise ValueError(
            "Expected a zero diagonal; got a point that weighs on itself. Set weights[i, i] to 0."
        )
    return checked


def check_external_field(external_field: ArrayLike | None, n_classes: int) -> NDArray[np.float64]:
    """Accept one finite value a class; zeros where there is none."""
    if external_field is None:
        return np.zeros(n_classes)
    checked = np.asarray(external_field, dtype=np.float64)
    if checked.shape != (n_classes,) or not np.isfinite(checked).all():
        raise ValueError(
            f"Expected an external field of {n_classes} finite values, one a class; got "
            f"{external_field!r}. Leave it out for none."
        )
    return checked
