"""Codecs: how a value is written in the header of a file, and what is asked of it when read.

A codec has two methods. ``pack(value, writer)`` gives what JSON can say, and hands arrays to the
writer. ``unpack(plain, reader)`` gives the value again, and raises `UnfitValueError` for any that
no fit could have made: one of another type, length or range. Lengths have names: the first codec
that meets a name sets it, and all later ones must agree.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float64).max)
REACH = 1e150  # the square of a larger number is none


class UnfitValueError(ValueError):
    """A value in a file that no fit could have made."""


class Writer:
    """Collects the arrays of a file, each once, and what several objects share."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.shared: list[Any] = []
        self.standardized: dict[str, NDArray[Any]] = {}
        self._names: dict[bytes, str] = {}
        self._places: dict[int, int] = {}

    def add(self, array: NDArray[Any]) -> str:
        """Take an array; give its name."""
        key = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).digest()
        if key not in self._names:
            self._names[key] = f"a{len(self.arrays)}"
            self.arrays[self._names[key]] = array
        return self._names[key]

    def share(self, value: Any, codec: "Codec") -> int:
        """Write an object once, however many others hold it; give its place."""
        if id(value) not in self._places:
            packed = codec.pack(value, self)
            self._places[id(value)] = len(self.shared)
            self.shared.append(packed)
        return self._places[id(value)]


@dataclass
class Reader:
    """The arrays of a file, what several objects share, and the lengths known so far."""

    arrays: Mapping[str, NDArray[Any]]
    shared: Sequence[Any]
    lengths: dict[str, int] = field(default_factory=dict)
    made: dict[Any, Any] = field(default_factory=dict)

    def within(self, *names: str) -> "Reader":
        """Give a reader that knows only some of the lengths, for an object inside another."""
        known = {name: self.lengths[name] for name in names if name in self.lengths}
        return Reader(self.arrays, self.shared, known, self.made)

    def bind(self, name: str | int, length: int) -> None:
        """Set a length, or compare it with what it is known to be."""
        known = name if isinstance(name, int) else self.lengths.setdefault(name, length)
        if known != length:
            raise UnfitValueError(f"a length {name} is {length} where {known} is expected")


class Codec(Protocol):
    """How one kind of value is written and read."""

    def pack(self, value: Any, writer: Writer) -> Any:
        """Say it in JSON."""

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check it and make it again."""


def ask(is_met: bool, what: str) -> None:
    """Refuse a file unless a condition is met."""
    if not is_met:
        raise UnfitValueError(what)


@dataclass(frozen=True)
class Number:
    """A real or a whole number within limits."""

    least: float = -LARGEST
    most: float = LARGEST
    is_whole: bool = False
    length: str | None = None  # the name of the length that it is

    def pack(self, value: Any, writer: Writer) -> Any:
        if not math.isfinite(value):
            raise TypeError(f"Expected a finite number; got {value!r}.")
        return int(value) if self.is_whole else float(value)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(type(plain) is int or (type(plain) is float and not self.is_whole), "no number")
        ask(self.least <= plain <= self.most, f"{plain!r} is out of its range")
        if self.length is not None:
            reader.bind(self.length, plain)
        return plain if self.is_whole else float(plain)


@dataclass(frozen=True)
class Text:
    """A text, of some choices or any."""

    choices: tuple[str, ...] = ()

    def pack(self, value: Any, writer: Writer) -> Any:
        return str(value)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, str), "no text")
        ask(not self.choices or plain in self.choices, f"{plain!r} is none of {self.choices}")
        return plain


class Flag:
    """True or false."""

    def pack(self, value: Any, writer: Writer) -> Any:
        return bool(value)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, bool), "neither true nor false")
        return plain


@dataclass(frozen=True)
class Array:
    """An array of numbers: its type, its lengths by name or number, and its limits."""

    shape: tuple[str | int, ...]
    least: float = -LARGEST
    most: float = LARGEST
    dtype: Any = np.float64
    has_gaps: bool = False  # NaN for a missing value
    has_infinities: bool = False  # the scale of a constant feature

    def pack(self, value: Any, writer: Writer) -> Any:
        return writer.add(np.asarray(value, dtype=self.dtype))

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, str) and plain in reader.arrays, "no array of that name")
        array = reader.arrays[plain]
        ask(array.dtype == self.dtype and array.ndim == len(self.shape), "another type of array")
        for name, length in zip(self.shape, array.shape, strict=True):
            reader.bind(name, length)
        values = array[~np.isnan(array)] if self.has_gaps else array
        values = values[~np.isinf(values)] if self.has_infinities else values
        ask(bool(((values >= self.least) & (values <= self.most)).all()), "a number out of range")
        return array


@dataclass(frozen=True)
class Maybe:
    """What may be missing."""

    codec: Codec

    def pack(self, value: Any, writer: Writer) -> Any:
        return None if value is None else self.codec.pack(value, writer)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        return None if plain is None else self.codec.unpack(plain, reader)


@dataclass(frozen=True)
class Many:
    """A list of values of one kind."""

    codec: Codec
    length: str | int | None = None

    def pack(self, value: Any, writer: Writer) -> Any:
        return [self.codec.pack(each, writer) for each in value]

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, list), "no list")
        if self.length is not None:
            reader.bind(self.length, len(plain))
        return [self.codec.unpack(each, reader) for each in plain]


@dataclass(frozen=True)
class Record:
    """An object by its attributes; a name in a file is that of the attribute without a final _.

    Attributes
    ----------
    fields : mapping of str to codec
        By the attribute; read in their order.
    make : callable
        Takes the attributes by name, and gives the object, or refuses.
    later : tuple of str
        Attributes that older files lack: they are read as null.
    """

    fields: Mapping[str, Codec]
    make: Callable[..., Any]
    later: tuple[str, ...] = ()

    def pack(self, value: Any, writer: Writer) -> Any:
        return {
            name.strip("_"): codec.pack(getattr(value, name, None), writer)
            for name, codec in self.fields.items()
        }

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, dict), "no record")
        plain = dict.fromkeys(name.strip("_") for name in self.later) | plain
        missing = {name.strip("_") for name in self.fields} ^ set(plain)
        ask(not missing, f"names that are missing or unknown: {sorted(missing)}")
        fields = self.fields.items()
        return self.make(
            **{name: codec.unpack(plain[name.strip("_")], reader) for name, codec in fields}
        )


@dataclass(frozen=True)
class OneOf:
    """A record of one of several kinds, told by its type."""

    kinds: Mapping[str, tuple[type, Codec]]

    def pack(self, value: Any, writer: Writer) -> Any:
        for name, (kind, codec) in self.kinds.items():
            if type(value) is kind:
                return {"kind": name, "record": codec.pack(value, writer)}
        raise TypeError(f"{type(value).__name__} has no form in a file")

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, dict) and set(plain) == {"kind", "record"}, "no record with a kind")
        kind = Text(tuple(self.kinds)).unpack(plain["kind"], reader)
        return self.kinds[kind][1].unpack(plain["record"], reader)


@dataclass(frozen=True)
class Shared:
    """An object that several others may hold."""

    codec: Codec

    def pack(self, value: Any, writer: Writer) -> Any:
        return writer.share(value, self.codec)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        Number(0, len(reader.shared) - 1, is_whole=True).unpack(plain, reader)
        key = (id(self.codec), plain)
        if key not in reader.made:
            reader.made[key] = self.codec.unpack(reader.shared[plain], reader)
        return reader.made[key]


@dataclass(frozen=True)
class Either:
    """An array with one or another number of dimensions."""

    choices: tuple[Array, ...]

    def pack(self, value: Any, writer: Writer) -> Any:
        return self.choices[0].pack(value, writer)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, str) and plain in reader.arrays, "no array of that name")
        n_dims = reader.arrays[plain].ndim
        found = [choice for choice in self.choices if len(choice.shape) == n_dims]
        ask(len(found) == 1, f"an array of {n_dims} dimensions")
        return found[0].unpack(plain, reader)
