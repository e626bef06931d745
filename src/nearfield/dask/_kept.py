"""Values that stay on the workers once they are computed."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import dask
from dask.delayed import Delayed, delayed


class Kept:
    """Delayed values, computed at first use and then kept where they were computed.

    A worker that is lost takes some of them along: Dask then computes these anew. So does a
    pickled copy, elsewhere, with all of them: it holds how they come about, not the values.

    Parameters
    ----------
    build : callable
        Takes the values of the parents, a tuple of Delayed each, and gives those to keep. It is
        deterministic, so that a value computed again is the same.
    *parents : Kept
    """

    def __init__(self, build: Callable[..., Sequence[Delayed]], *parents: "Kept") -> None:
        self.build, self.parents = build, parents

    @cached_property
    def values(self) -> tuple[Delayed, ...]:
        """The values, on the workers."""
        return dask.persist(*self._recipes())

    @property
    def value(self) -> Delayed:
        """The one value, where there is one."""
        (value,) = self.values
        return value

    def wait(self) -> "Kept":
        """Compute the values: then those of the parents may be released."""
        dask.compute(*[delayed(id)(value) for value in self.values])
        return self

    def release(self) -> None:
        """Keep the values no longer; they are computed again if they are needed."""
        self.__dict__.pop("values", None)

    def _recipes(self) -> Sequence[Delayed]:
        now = (parent.__dict__.get("values") or parent._recipes() for parent in self.parents)
        return self.build(*now)

    def __getstate__(self) -> dict[str, Any]:
        return {"build": self.build, "parents": self.parents}


class Holder:
    """Keeps an object alive here for as long as a lazy result may need what it keeps elsewhere.

    Dask forgets values that nothing here refers to, even where a graph depends on them.
    """

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def __reduce__(self) -> tuple[Any, ...]:
        return Holder, ()
