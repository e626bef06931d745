"""Values that stay on the workers once they are computed."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import dask
from dask.delayed import Delayed, delayed


def each(function: Callable[[Any], Any], values: Sequence[Delayed]) -> list[Delayed]:
    """Apply a function where the values are."""
    return [delayed(function)(value) for value in values]


class Kept:
    """Delayed values, computed at first use and then kept where they were computed.

    A worker that is lost takes some of them along: Dask then computes these anew. So does a
    pickled copy, elsewhere, with all of them: it holds how they come about, not the values.

    Parameters
    ----------
    build : callable
        Takes the values of the parents, a tuple of Delayed each, and gives those to keep. It is
        deterministic, so that a value computed again is the same. May be a lambda.
    *parents : Kept
    """

    def __init__(self, build: Callable[..., Sequence[Delayed]], *parents: "Kept") -> None:
        self.build, self.parents = build, parents

    @cached_property
    def values(self) -> tuple[Delayed, ...]:
        """The values, on the workers."""
        return dask.persist(*self._recipes())

    def in_place_of_parents(self) -> "Kept":
        """Compute the values; those of the parents are then kept no longer."""
        dask.compute(*each(id, self.values))
        for parent in self.parents:
            parent.release()
        return self

    def release(self) -> None:
        """Keep the values no longer; they are computed again if they are needed."""
        self.__dict__.pop("values", None)

    def _recipes(self) -> Sequence[Delayed]:
        now = (parent.__dict__.get("values") or parent._recipes() for parent in self.parents)
        return self.build(*now)

    def __getstate__(self) -> tuple[bytes, tuple["Kept", ...]]:
        return cloudpickle.dumps(self.build), self.parents

    def __setstate__(self, state: tuple[bytes, tuple["Kept", ...]]) -> None:
        self.build, self.parents = cloudpickle.loads(state[0]), state[1]
