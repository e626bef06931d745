"""What is drawn of the training points: references, which stand for others, and sites."""

import numpy as np
from numpy.typing import NDArray

from nearfield.near._hashing import sample_rows

N_REFERENCES = 4_096
"""So many points, drawn at random, stand for all that are not near."""

MAX_ALL_REFERENCES = 8_192
"""Up to so many points all do, and no sum is an estimate."""

_REFERENCE_STREAM, _SITE_STREAM = 1, 2


def n_references(n_points: int) -> int:
    """Choose how many references to draw."""
    return n_points if n_points <= MAX_ALL_REFERENCES else min(N_REFERENCES, n_points)


def reference_rows(
    n_points: int, n_neighbors: int, seed: int, size: int | None = None
) -> NDArray[np.int64]:
    """Draw the references; fewer of them are the first ones of more."""
    size = n_references(n_points) if size is None else size
    # Twice as many as neighbours: some of them are sure not to be neighbours.
    size = min(max(size, 2 * n_neighbors), n_points)
    return sample_rows(n_points, size, seed, _REFERENCE_STREAM)


def site_rows(n_points: int, n_sites: int, seed: int) -> NDArray[np.int64]:
    """Draw sites; fewer of them are the first ones of more."""
    return sample_rows(n_points, n_sites, seed, _SITE_STREAM)
