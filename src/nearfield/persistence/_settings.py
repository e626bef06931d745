"""The settings of estimators in files: plain values, priors and engines by name, random streams."""

import dataclasses
import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from nearfield import inference
from nearfield._streams import stream_from_plain, stream_to_plain
from nearfield.persistence._schema import Reader, UnfitValueError, Writer, ask

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
        """Say it in JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.pack(item, writer) for item in value]
        for kind, (is_kind, pack, _) in _KINDS.items():
            if is_kind(value):
                return {kind: pack(self, value, writer)}
        raise TypeError(
            "Expected settings that a file can hold: plain values, arrays, priors of scipy.stats, "
            f"engines of nearfield.inference; got {value!r}. Give metrics and kernels by name."
        )

    def unpack(self, plain: Any, reader: Reader, depth: int = 0) -> Any:
        """Check it and make it again."""
        ask(depth < _MAX_DEPTH, "settings within settings without end")
        if isinstance(plain, list):
            return [self.unpack(item, reader, depth + 1) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ask(len(plain) == 1 and set(plain) <= set(_KINDS), "a value of an unknown kind")
        ((kind, content),) = plain.items()
        return _KINDS[kind][2](self, content, reader, depth + 1)


def check_arguments(make: Any, names: Any) -> None:
    """Refuse arguments that a class does not have."""
    unknown = set(names) - set(inspect.signature(make).parameters)
    ask(not unknown, f"{make.__name__} has no {sorted(unknown)}")


def _is_prior(value: Any) -> bool:
    name = getattr(getattr(value, "dist", None), "name", None)
    return name in DISTRIBUTIONS and type(getattr(stats, name)) is type(value.dist)


def _pack_prior(settings: Settings, value: Any, writer: Writer) -> Any:
    arguments = [settings.pack(argument, writer) for argument in value.args]
    return [value.dist.name, arguments, settings.pack(dict(value.kwds), writer)["dict"]]


def _unpack_prior(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
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


def _is_engine(value: Any) -> bool:
    return type(value) in [getattr(inference, name) for name in ENGINES]


def _pack_engine(settings: Settings, value: Any, writer: Writer) -> Any:
    names = [field.name for field in dataclasses.fields(value) if field.init]
    state = {name: settings.pack(getattr(value, name), writer) for name in names}
    return [type(value).__name__, state]


def _unpack_engine(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
    ask(isinstance(plain, list) and len(plain) == 2 and plain[0] in ENGINES, "no engine")
    engine = getattr(inference, plain[0])
    state = _unpack_dict(settings, plain[1], reader, depth)
    check_arguments(engine, state)
    return engine(**state)


def _unpack_dict(settings: Settings, plain: Any, reader: Reader, depth: int) -> dict[str, Any]:
    ask(isinstance(plain, dict), "no names with values")
    return {name: settings.unpack(value, reader, depth) for name, value in plain.items()}


def _pack_dict(settings: Settings, value: Any, writer: Writer) -> Any:
    if not all(isinstance(name, str) for name in value):
        raise TypeError(f"Expected text as the keys of {value!r}.")
    return {name: settings.pack(item, writer) for name, item in value.items()}


def _has_other_keys(value: Any) -> bool:
    """Tell whether a dict has numbers or truth values as keys, as weights of classes do."""
    is_plain = isinstance(value, dict) and all(
        isinstance(key, bool | int | float | str | np.generic) for key in value
    )
    return is_plain and not all(isinstance(key, str) for key in value)


def _unpack_pairs(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
    is_pairs = isinstance(plain, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], bool | int | float | str)
        for pair in plain
    )
    ask(is_pairs, "no pairs")
    return {key: settings.unpack(value, reader, depth) for key, value in plain}


def _unpack_tuple(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
    ask(isinstance(plain, list), "no list")
    return tuple(settings.unpack(item, reader, depth) for item in plain)


def _unpack_float(settings: Settings, plain: Any, reader: Reader, depth: int) -> float:
    ask(plain in ("nan", "inf", "-inf"), "no number")
    return float(plain)


def _unpack_array(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
    ask(isinstance(plain, str) and plain in reader.arrays, "no array of that name")
    return reader.arrays[plain]


def _unpack_path(settings: Settings, plain: Any, reader: Reader, depth: int) -> Path:
    ask(isinstance(plain, str), "no path")
    return Path(plain)


def _unpack_stream(settings: Settings, plain: Any, reader: Reader, depth: int) -> Any:
    return stream_from_plain(plain)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "bifuU" and value.size > 0


# Of each kind: whether a value is of it, how it is written, and how it is read.
_KINDS: dict[str, tuple[Any, Any, Any]] = {
    "float": (lambda v: False, None, _unpack_float),
    "tuple": (
        lambda v: isinstance(v, tuple),
        lambda s, v, w: [s.pack(item, w) for item in v],
        _unpack_tuple,
    ),
    "pairs": (
        _has_other_keys,
        lambda s, v, w: [[s.pack(key, w), s.pack(item, w)] for key, item in v.items()],
        _unpack_pairs,
    ),
    "dict": (lambda v: isinstance(v, dict), _pack_dict, _unpack_dict),
    "array": (_is_array, lambda s, v, w: w.add(v), _unpack_array),
    "prior": (_is_prior, _pack_prior, _unpack_prior),
    "engine": (_is_engine, _pack_engine, _unpack_engine),
    "stream": (
        lambda v: isinstance(v, np.random.Generator | np.random.RandomState),
        lambda s, v, w: stream_to_plain(v),
        _unpack_stream,
    ),
    "path": (
        lambda v: isinstance(v, os.PathLike),
        lambda s, v, w: os.fspath(v),
        _unpack_path,
    ),
}
