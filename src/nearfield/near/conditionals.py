"""The conditionals of some sites of the near field: what pseudolikelihood infers from."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.field import LabelField
from nearfield.near._family import FamilyOfNearField
from nearfield.near.field import NearField
from nearfield.near.support_table import SupportTable


@dataclass(frozen=True, eq=False)
class NearConditionals(FamilyOfNearField):
    """The conditionals of some training points given all the others; a family of fields.

    The neighbours of the sites come from all the data. The product of their conditionals is not
    scaled up: it knows less than that of all sites, and the posterior is as much wider.

    Attributes
    ----------
    near_field : NearField
    labels : ndarray of int, shape (n_sites,)
    table : SupportTable
        The support of the sites.
    external_field : ndarray, shape (G,), optional
    """

    near_field: NearField
    labels: NDArray[np.int64] = field(repr=False)
    table: SupportTable = field(repr=False)
    external_field: ArrayLike | None = None

    has_joint = False

    @property
    def n_points(self) -> int:
        """The number of sites."""
        return len(self.labels)

    @property
    def scale_steps(self) -> NDArray[np.float64]:
        """None: they are too many to count."""
        return np.empty(0)

    def at(self, scale: float) -> LabelField:
        """Refuse: some conditionals are not a field."""
        raise ValueError(
            "Expected a model with a joint distribution; got the conditionals of some sites of a "
            "near field. Use pseudolikelihood, or give n_neighbors with the engine."
        )

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the support of each class in the conditionals at sigma, shape (n_sites, G).

        `labels` are not read: those of all training points are known.
        """
        return self.table.at(np.array([scale]))[:, 0]
