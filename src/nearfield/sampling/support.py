"""The support that a kernel keeps up to date while labels change, for dense and sparse coupling.

A change of label touches a row of the support, shape (G, n), or two. A label that stays costs
nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._compile import overload, types
from nearfield.field import LabelField

Floats = NDArray[np.float64]
CsrArrays = tuple[Floats, NDArray[np.int32], NDArray[np.int32]]
"""The data, the indices and the row pointers of a sparse matrix."""

Coupling = Floats | CsrArrays
"""A matrix, shape (n, n), or the three arrays of a CSR one."""


def coupling_arrays(field: LabelField, factor: float = 1.0) -> Coupling:
    """Give the coupling as the kernels take it: a matrix, or the three arrays of a CSR one.

    It is multiplied by a factor, such as beta: a kernel that adds rows of it need not do that.
    """
    coupling = field.coupling if factor == 1.0 else factor * field.coupling
    if not field.is_sparse:
        return np.ascontiguousarray(coupling)
    return coupling.data, coupling.indices, coupling.indptr


def starting_labels(
    rng: np.random.Generator, field: LabelField, initial: ArrayLike | None
) -> NDArray[np.int64]:
    """Copy the labels that a chain starts from; uniform random ones where none are given."""
    if initial is None:
        return rng.integers(field.n_classes, size=field.n_points)
    return field.check_labels(initial).copy()


def add_coupling(coupling: Coupling, i: int, sign: float, support: Floats, row: int) -> None:
    """Add `sign` times row i of the coupling to one row of the support."""
    _add: Callable[..., None] = _add_sparse if isinstance(coupling, tuple) else _add_dense
    _add(coupling, i, sign, support, row)


def _add_dense(coupling: Floats, i: int, sign: float, support: Floats, row: int) -> None:
    for j in range(support.shape[1]):
        support[row, j] += sign * coupling[i, j]


def _add_sparse(coupling: CsrArrays, i: int, sign: float, support: Floats, row: int) -> None:
    data, indices, indptr = coupling
    for position in range(indptr[i], indptr[i + 1]):
        support[row, indices[position]] += sign * data[position]


def move_coupling(coupling: Coupling, i: int, support: Floats, old: int, new: int) -> None:
    """Take row i of the coupling from one row of the support and add it to another, in one go."""
    _move: Callable[..., None] = _move_sparse if isinstance(coupling, tuple) else _move_dense
    _move(coupling, i, support, old, new)


def _move_dense(coupling: Floats, i: int, support: Floats, old: int, new: int) -> None:
    for j in range(support.shape[1]):
        support[old, j] -= coupling[i, j]
        support[new, j] += coupling[i, j]


def _move_sparse(coupling: CsrArrays, i: int, support: Floats, old: int, new: int) -> None:
    data, indices, indptr = coupling
    for position in range(indptr[i], indptr[i + 1]):
        support[old, indices[position]] -= data[position]
        support[new, indices[position]] += data[position]


@overload(move_coupling, inline="always")
def _compile_move_coupling(
    coupling: Any, i: Any, support: Any, old: Any, new: Any
) -> Callable[..., None]:
    return _move_sparse if isinstance(coupling, types.BaseTuple) else _move_dense


@overload(add_coupling, inline="always")
def _compile_add_coupling(
    coupling: Any, i: Any, sign: Any, support: Any, row: Any
) -> Callable[..., None]:
    return _add_sparse if isinstance(coupling, types.BaseTuple) else _add_dense
