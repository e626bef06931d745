"""Checkpoints: a run that was killed goes on, bit for bit, as if nothing had happened.

One file holds all chains: plain arrays, and the random streams in its header (`nearfield._archive`,
``docs/file_format.md``). It is replaced in one piece, so that it is whole whenever the machine
stops. A fingerprint of everything that the draws depend on keeps it from being taken for another
run's, and every value is checked before a chain goes on from it.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nearfield._archive import Archive, pack, unpack
from nearfield._files import replace_file
from nearfield._streams import stream_from_plain, stream_to_plain
from nearfield.inference._chain import Chain, RunLength, Sampler
from nearfield.inference._target import Target
from nearfield.inference._walk import Walk

_FORMAT, _VERSION = "nearfield checkpoint", 3
_LARGEST, _LARGEST_LOG = 1e100, 200.0  # of what chains reach
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
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": self.fingerprint,
            "streams": [stream_to_plain(chain.rng) for chain in chains],
        }
        replace_file(self.path, pack(header, _to_arrays(chains, sampler)))

    def load(self, sampler: Sampler, length: RunLength, n_chains: int) -> list[Chain] | None:
        """Read the chains; None if there is no file yet, an error if it is not this run's."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            archive = unpack(content)
            is_ours = archive.header["format"] == _FORMAT and archive.header["version"] == _VERSION
            found = archive.header["fingerprint"] if is_ours else None
        except Exception as error:  # a damaged archive can fail in any way
            raise self._refusal() from error
        if not is_ours:
            raise self._refusal()
        if found != self.fingerprint:
            raise ValueError(
                f"Expected the checkpoint of this run in {str(self.path)!r}; got that of a run "
                "with other labels, model, priors, settings or seed. It is left as it is: run "
                "with what it was made with, or choose another file."
            )
        try:
            _check_arrays(archive, length, n_chains)
            return _to_chains(archive, sampler)
        except Exception as error:  # whatever a value that was never written leads to
            raise self._refusal() from error

    def _refusal(self) -> ValueError:
        return ValueError(
            f"Expected a whole checkpoint in {str(self.path)!r}; got a file that is damaged or "
            "no checkpoint. It is left as it is: move it away, or choose another file."
        )


def fingerprint(settings: Any, target: Target, streams: list[np.random.Generator]) -> str:
    """Hash everything that the draws depend on."""
    digest = hashlib.sha256(f"{_FORMAT} {_VERSION}".encode())
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
        _add(digest, json.dumps(stream_to_plain(stream)))
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(repr(value).encode())
    digest.update(b"\0")


def _to_arrays(chains: list[Chain], sampler: Sampler) -> dict[str, NDArray[Any]]:
    return {
        "states": np.stack([sampler.pack(chain.state) for chain in chains]),
        "walk_means": np.stack([chain.walk.mean for chain in chains]),
        "walk_covariances": np.stack([chain.walk.covariance for chain in chains]),
        "walk_log_sizes": np.array([chain.walk.log_size for chain in chains]),
        "counts": np.array([(c.walk.n_learned, c.n_done, c.n_accepted) for c in chains]),
        "draws": np.stack([chain.draws for chain in chains]),
    }


def _check_arrays(archive: Archive, length: RunLength, n_chains: int) -> None:
    """Refuse arrays that no run of this length writes."""
    n, arrays = n_chains, archive.arrays
    shapes = {
        "walk_means": (n, 2),
        "walk_covariances": (n, 2, 2),
        "walk_log_sizes": (n,),
        "counts": (n, 3),
        "draws": (n, length.n_draws, 2),
    }
    is_shaped = len(archive.header["streams"]) == n and set(arrays) == {"states", *shapes}
    if not is_shaped or any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("arrays of another shape")
    if any(arrays[name].dtype != np.float64 for name in set(arrays) - {"counts"}):
        raise ValueError("arrays of another type")
    (n_learned, n_done, n_accepted), counts = arrays["counts"].T, arrays["counts"]
    n_drawn = np.maximum(n_done - length.n_burn, 0)
    is_possible = (counts >= 0).all() and (n_done <= length.total).all()
    if not is_possible or (n_learned > n_done).any() or (n_accepted > n_drawn).any():
        raise ValueError("counts that no run has")
    is_drawn = np.arange(length.n_draws) < n_drawn[:, None]
    drawn = arrays["draws"][is_drawn]
    finite = [drawn, *(arrays[f"walk_{name}"] for name in ("means", "covariances", "log_sizes"))]
    if (
        not all((np.abs(values) < _LARGEST).all() for values in finite)
        or (drawn[:, 1] <= 0.0).any()
    ):
        raise ValueError("a number out of its range")
    variances = np.diagonal(arrays["walk_covariances"], axis1=1, axis2=2)
    if (variances < 0.0).any() or (np.abs(arrays["walk_log_sizes"]) > _LARGEST_LOG).any():
        raise ValueError("a walk that no run has")


def _to_chains(archive: Archive, sampler: Sampler) -> list[Chain]:
    arrays, chains = archive.arrays, []
    for c, (n_learned, n_done, n_accepted) in enumerate(arrays["counts"].tolist()):
        walk = Walk(
            arrays["walk_means"][c],
            arrays["walk_covariances"][c],
            float(arrays["walk_log_sizes"][c]),
            n_learned,
        )
        rng = stream_from_plain(archive.header["streams"][c])
        state = sampler.unpack(arrays["states"][c])
        chains.append(Chain(rng, state, walk, n_done, n_accepted, arrays["draws"][c]))
    return chains
