"""Random streams as plain numbers, for files: those of NumPy, each number checked."""

from typing import Any

import numpy as np

# Of each bit generator: the number of values of a part of its state, and what they are below.
# A position out of its range would make NumPy read beyond its buffers.
_LAYOUTS: dict[str, dict[str, tuple[int | None, int]]] = {
    "PCG64": {"state": (None, 2**128), "inc": (None, 2**128)},
    "PCG64DXSM": {"state": (None, 2**128), "inc": (None, 2**128)},
    "MT19937": {"key": (624, 2**32), "pos": (None, 625)},
    "Philox": {"counter": (4, 2**64), "key": (2, 2**64)},
    "SFC64": {"state": (4, 2**64)},
}
_BESIDE = {
    "has_uint32": (None, 2),
    "uinteger": (None, 2**32),
    "buffer": (4, 2**64),
    "buffer_pos": (None, 5),
    "has_gauss": (None, 2),
}
_DTYPES = {"MT19937": np.uint32}


def stream_to_plain(stream: Any) -> dict[str, Any]:
    """Describe a `Generator` or a `RandomState` by names, numbers and lists of numbers."""
    if isinstance(stream, np.random.RandomState):
        state = {"kind": "RandomState", **stream.get_state(legacy=False)}
    else:
        state = {"kind": "Generator", **stream.bit_generator.state}
    if state["bit_generator"] not in _LAYOUTS:
        raise TypeError(
            f"Expected a bit generator among {sorted(_LAYOUTS)}; got {state['bit_generator']}. "
            "Use numpy.random.default_rng."
        )
    return _plain(state)


def stream_from_plain(plain: Any) -> Any:
    """Make the stream that `stream_to_plain` described; raises ValueError for any other."""
    if not isinstance(plain, dict) or plain.get("bit_generator") not in _LAYOUTS:
        raise ValueError("no stream of a known kind")
    name, rest = plain["bit_generator"], dict(plain)
    kind, parts = rest.pop("kind", None), rest.pop("state", None)
    if not isinstance(parts, dict) or set(parts) != set(_LAYOUTS[name]):
        raise ValueError(f"no state of {name}")
    state = {part: _checked(parts[part], *_LAYOUTS[name][part], name) for part in parts}
    beside = {
        part: _checked(value, *_BESIDE[part], name)
        for part, value in rest.items()
        if part in _BESIDE
    }
    whole = {"bit_generator": name, "state": state, **beside}
    generator = getattr(np.random, name)(0)
    if kind == "RandomState" and name == "MT19937":
        gauss = rest.get("gauss", 0.0)
        if not isinstance(gauss, float) or not abs(gauss) < 40.0:
            raise ValueError("no normal number")
        stream = np.random.RandomState(generator)
        stream.set_state({**whole, "has_gauss": beside.get("has_gauss", 0), "gauss": gauss})
        return stream
    if kind != "Generator":
        raise ValueError("no stream of a known kind")
    generator.state = {**generator.state, **whole}
    return np.random.Generator(generator)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _checked(value: Any, length: int | None, limit: int, name: str) -> Any:
    values = [value] if length is None else value
    is_valid = isinstance(values, list) and len(values) == (length or 1)
    if not is_valid or not all(type(v) is int and 0 <= v < limit for v in values):
        raise ValueError(f"a number of the state of {name} is out of its range")
    return value if length is None else np.array(value, dtype=_DTYPES.get(name, np.uint64))
