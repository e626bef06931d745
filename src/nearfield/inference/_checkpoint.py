"""Checkpoints: a run that was killed goes on, bit for bit, as if nothing had happened.

One file holds all chains: plain arrays (NumPy's .npz, never pickle) and the random streams as
JSON. It is replaced in one piece, so that it is whole whenever the machine stops. A fingerprint
of everything that the draws depend on keeps it from being taken for another run's.
"""

import dataclasses
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nearfield._files import replace_file
from nearfield.inference._chain import Chain, Sampler
from nearfield.inference._target import Target
from nearfield.inference._walk import Walk

_FORMAT = "nearfield checkpoint 2"
_NAMES = {
    "format",
    "fingerprint",
    "streams",
    "states",
    "walk_means",
    "walk_covariances",
    "walk_log_sizes",
    "counts",
    "draws",
}
_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


class Checkpoint(NamedTuple):
    """A file that holds the chains of one run."""

    path: Path
    fingerprint: str

    @classmethod
    def open(cls, path: str | os.PathLike[str], fingerprint: str) -> Self:
        """Name the file of a run, in a folder that exists."""
        checked = Path(path)
        if checked.is_dir() or not checked.parent.is_dir():
            raise ValueError(
                f"Expected checkpoint to name a file in a folder that exists; got "
                f"{os.fspath(path)!r}. Create the folder, or choose another file."
            )
        return cls(checked, fingerprint)

    def save(self, chains: list[Chain], sampler: Sampler) -> None:
        """Replace the file, in one piece."""
        content = io.BytesIO()
        arrays: Any = _pack(chains, sampler)
        np.savez(content, format=_FORMAT, fingerprint=self.fingerprint, **arrays)
        replace_file(self.path, content.getbuffer())

    def load(self, sampler: Sampler) -> list[Chain] | None:
        """Read the chains; None if there is no file yet, an error if it is not this run's."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            arrays = _read(content)
        except Exception as error:  # a damaged archive can fail in any way
            raise ValueError(
                f"Expected a whole checkpoint in {str(self.path)!r}; got a file that is damaged or "
                "no checkpoint. It is left as it is: move it away, or choose another file."
            ) from error
        if arrays["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"Expected the checkpoint of this run in {str(self.path)!r}; got that of a run "
                "with other labels, model, priors, settings or seed. It is left as it is: run "
                "with what it was made with, or choose another file."
            )
        return _unpack(arrays, sampler)


def fingerprint(settings: Any, target: Target, streams: list[np.random.Generator]) -> str:
    """Hash everything that the draws depend on."""
    digest = hashlib.sha256(_FORMAT.encode())
    _add(digest, dataclasses.replace(settings, checkpoint=None))
    _add(digest, target.labels)
    family: Any = target.family
    _add(digest, type(family).__qualname__)
    is_record = dataclasses.is_dataclass(family)
    names = [f.name for f in dataclasses.fields(family)] if is_record else sorted(vars(family))
    for name in names:
        _add(digest, name)
        _add(digest, getattr(family, name))
    for prior in (target.priors.beta, target.priors.scale):
        # The name of a distribution does not say which it is: an own one may have any name.
        _add(digest, (prior.dist.name, prior.args, sorted(prior.kwds.items())))
        _add(digest, np.asarray(prior.ppf(_QUANTILES)))
    for stream in streams:
        _add(digest, _stream_to_json(stream))
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(repr(value).encode())
    digest.update(b"\0")


def _pack(chains: list[Chain], sampler: Sampler) -> dict[str, NDArray[Any]]:
    return {
        "streams": np.array([_stream_to_json(chain.rng) for chain in chains]),
        "states": np.stack([sampler.pack(chain.state) for chain in chains]),
        "walk_means": np.stack([chain.walk.mean for chain in chains]),
        "walk_covariances": np.stack([chain.walk.covariance for chain in chains]),
        "walk_log_sizes": np.array([chain.walk.log_size for chain in chains]),
        "counts": np.array([(c.walk.n_learned, c.n_done, c.n_accepted) for c in chains]),
        "draws": np.stack([chain.draws for chain in chains]),
    }


def _unpack(arrays: dict[str, NDArray[Any]], sampler: Sampler) -> list[Chain]:
    chains = []
    for c, (n_learned, n_done, n_accepted) in enumerate(arrays["counts"].tolist()):
        walk = Walk(
            arrays["walk_means"][c],
            arrays["walk_covariances"][c],
            float(arrays["walk_log_sizes"][c]),
            n_learned,
        )
        rng = _stream_from_json(str(arrays["streams"][c]))
        state = sampler.unpack(arrays["states"][c])
        chains.append(Chain(rng, state, walk, n_done, n_accepted, arrays["draws"][c]))
    return chains


def _read(content: bytes) -> dict[str, NDArray[Any]]:
    """Read every array; the archive's checksums are compared while reading."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if set(arrays) != _NAMES or arrays["format"] != _FORMAT:
        raise ValueError(f"no {_FORMAT}: {sorted(arrays)}")
    return arrays


def _stream_to_json(rng: np.random.Generator) -> str:
    return json.dumps(rng.bit_generator.state, default=_to_plain)


def _to_plain(value: Any) -> Any:
    return value.tolist()  # of an array or a NumPy number


def _stream_from_json(text: str) -> np.random.Generator:
    state = json.loads(text)
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = state
    return np.random.Generator(bit_generator)
