"""The settings of estimators in files: plain values, priors and engines by name, random streams.

`Settings` is the codec of one value, `Transformer` that of an estimator with few attributes.
"""

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from nearfield import inference
from nearfield._streams import stream_from_plain, stream_to_plain
from nearfield.persistence._schema import Codec, Reader, Record, UnfitValueError, Writer, ask

ENGINES = ("AuxiliaryVariable", "Exchange", "PathSampling", "Pseudolikelihood")

# fmt: off
DISTRIBUTIONS = (
    "beta", "betabinom", "betaprime", "binom", "boltzmann", "cauchy", "chi", "chi2", "dlaplace",
    "dweibull", "erlang", "expon", "exponnorm", "exponpow", "f", "fisk", "foldcauchy",
    "foldnorm", "gamma", "gengamma", "genpareto", "geom", "gumbel_l", "gumbel_r", "halfcauchy",
    "halfgennorm", "halflogistic", "halfnorm", "hypergeom", "invgamma", "invgauss",
    "invweibull", "laplace", "levy", "loggamma", "logistic", "loglaplace", "lognorm", "logser",
    "loguniform", "lomax", "maxwell", "nbinom", "norm", "pareto", "planck", "poisson",
    "powerlaw", "randint", "rayleigh", "reciprocal", "rice", "skewnorm", "t", "trapezoid",
    "triang", "truncexpon", "truncnorm", "truncpareto", "uniform", "vonmises", "wald",
    "weibull_max", "weibull_min", "zipf", "zipfian",
)
# fmt: on
"""The distributions of `scipy.stats` that a file may name."""

_MAX_DEPTH = 8


class Settings:
    """A plain value: null, truth values, numbers, text, lists, arrays, and what is named here.

    What JSON has no word for is an object with one name that says what it is.
    """

    def pack(self, value: Any, writer: Writer) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.pack(item, writer) for item in value]
        kind, content = self._pack_kind(value, writer)
        return {kind: content}

    def _pack_kind(self, value: Any, writer: Writer) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return "tuple", [self.pack(item, writer) for item in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return "dict", {name: self.pack(item, writer) for name, item in value.items()}
        if isinstance(value, dict):  # weights of classes may have numbers as keys
            if not all(isinstance(key, bool | int | float | str | np.generic) for key in value):
                raise TypeError(f"Expected text as the keys of {value!r}.")
            pairs = value.items()
            return "pairs", [
                [self.pack(key, writer), self.pack(item, writer)] for key, item in pairs
            ]
        if isinstance(value, np.ndarray) and value.dtype.kind in "bifuU" and value.size > 0:
            return "array", writer.add(value)
        if _is_prior(value):
            arguments = [self.pack(argument, writer) for argument in value.args]
            named = {name: self.pack(item, writer) for name, item in value.kwds.items()}
            return "prior", [value.dist.name, arguments, named]
        if type(value) in [getattr(inference, name) for name in ENGINES]:
            names = [field.name for field in dataclasses.fields(value) if field.init]
            state = {name: self.pack(getattr(value, name), writer) for name in names}
            return "engine", [type(value).__name__, state]
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return "stream", stream_to_plain(value)
        if isinstance(value, os.PathLike):
            return "path", os.fspath(value)
        raise TypeError(
            "Expected settings that a file can hold: plain values, arrays, priors of scipy.stats, "
            f"engines of nearfield.inference; got {value!r}. Give metrics and kernels by name."
        )

    def unpack(self, plain: Any, reader: Reader, depth: int = 0) -> Any:
        ask(depth < _MAX_DEPTH, "settings within settings without end")
        if isinstance(plain, list):
            return [self.unpack(item, reader, depth + 1) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ask(len(plain) == 1, "a value of an unknown kind")
        ((kind, content),) = plain.items()
        return self._unpack_kind(kind, content, reader, depth + 1)

    def _unpack_kind(self, kind: str, plain: Any, reader: Reader, depth: int) -> Any:
        match kind:
            case "float":
                ask(plain in ("nan", "inf", "-inf"), "no number")
                return float(plain)
            case "tuple":
                ask(isinstance(plain, list), "no list")
                return tuple(self.unpack(item, reader, depth) for item in plain)
            case "dict":
                return self._unpack_dict(plain, reader, depth)
            case "pairs":
                ask(isinstance(plain, list) and all(map(_is_pair, plain)), "no pairs")
                return {key: self.unpack(value, reader, depth) for key, value in plain}
            case "array":
                ask(isinstance(plain, str) and plain in reader.arrays, "no array of that name")
                return reader.arrays[plain]
            case "prior":
                return _unpack_prior(plain)
            case "engine":
                ask(isinstance(plain, list) and len(plain) == 2, "no engine")
                ask(plain[0] in ENGINES, "no engine")
                engine = getattr(inference, plain[0])
                state = self._unpack_dict(plain[1], reader, depth)
                check_arguments(engine, state)
                return engine(**state)
            case "stream":
                return stream_from_plain(plain)
            case "path":
                ask(isinstance(plain, str), "no path")
                return Path(plain)
        raise UnfitValueError("a value of an unknown kind")

    def _unpack_dict(self, plain: Any, reader: Reader, depth: int) -> dict[str, Any]:
        ask(isinstance(plain, dict), "no names with values")
        return {name: self.unpack(value, reader, depth) for name, value in plain.items()}


def check_arguments(make: Any, names: Any) -> None:
    """Refuse arguments that a class does not have."""
    unknown = set(names) - set(inspect.signature(make).parameters)
    ask(not unknown, f"{make.__name__} has no {sorted(unknown)}")


def _is_prior(value: Any) -> bool:
    name = getattr(getattr(value, "dist", None), "name", None)
    return name in DISTRIBUTIONS and type(getattr(stats, name)) is type(value.dist)


def _unpack_prior(plain: Any) -> Any:
    ask(isinstance(plain, list) and len(plain) == 3, "no distribution")
    name, args, kwds = plain
    ask(name in DISTRIBUTIONS, f"no distribution {name!r}")
    ask(isinstance(args, list) and isinstance(kwds, dict), "no arguments of a distribution")
    values = [*args, *kwds.values()]
    ask(all(type(value) in (int, float) and abs(value) < 1e300 for value in values), "no numbers")
    try:
        return getattr(stats, name)(*args, **kwds)
    except TypeError as error:
        raise UnfitValueError(f"arguments that {name} does not have") from error


def _is_pair(plain: Any) -> bool:
    is_two = isinstance(plain, list) and len(plain) == 2
    return is_two and isinstance(plain[0], bool | int | float | str)


class Transformer:
    """An estimator by its settings and its fitted attributes; those that are null are not set.

    Some of these may be null only by the settings: `needs` names those that an estimator with its
    settings cannot do without.
    """

    def __init__(
        self,
        kind: type,
        fitted: Mapping[str, Codec],
        needs: Callable[[Any], Iterable[str]] = lambda estimator: (),
    ) -> None:
        self.kind, self.fitted, self.needs = kind, Record(fitted, dict), needs

    def pack(self, value: Any, writer: Writer) -> Any:
        return pack_settings(value, writer) | {"fitted": self.fitted.pack(value, writer)}

    def unpack(self, plain: Any, reader: Reader) -> Any:
        estimator = unpack_settings(self.kind, plain, reader)
        for name, value in self.fitted.unpack(plain["fitted"], reader).items():
            if value is not None:
                setattr(estimator, name, value)
        ask(all(hasattr(estimator, name) for name in self.needs(estimator)), "a step half fitted")
        return estimator


def pack_settings(value: Any, writer: Writer) -> dict[str, Any]:
    """Say the arguments that an estimator was made with."""
    settings = value.get_params(deep=False)
    return {"settings": {name: Settings().pack(item, writer) for name, item in settings.items()}}


def unpack_settings(kind: type, plain: Any, reader: Reader) -> Any:
    """Make an estimator, not yet fitted, of a record of its settings and of what was fitted."""
    ask(isinstance(plain, dict) and set(plain) == {"settings", "fitted"}, "no estimator")
    ask(isinstance(plain["settings"], dict), "no settings")
    check_arguments(kind, plain["settings"])
    settings = plain["settings"].items()
    return kind(**{name: Settings().unpack(value, reader) for name, value in settings})
