"""Values that stay on the workers once they are computed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import dask
from dask.delayed import Delayed


class Kept:
    """Delayed values, computed at first use and then kept where they were computed.

    A worker that is lost takes some of them along: Dask then computes these anew. So does a
    pickled copy, elsewhere, with all of them: it holds the recipes, not the values.

    Parameters
    ----------
    recipes : sequence of Delayed
        Deterministic, so that a value computed again is the same.
    """

    def __init__(self, recipes: Sequence[Delayed]) -> None:
        self.recipes = tuple(recipes)

    @cached_property
    def values(self) -> tuple[Delayed, ...]:
        """The values, on the workers."""
        return dask.persist(*self.recipes)

    def __getstate__(self) -> dict[str, Any]:
        return {"recipes": self.recipes}
