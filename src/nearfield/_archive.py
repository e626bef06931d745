"""Plain arrays and one JSON header in a zip archive: the container of models and checkpoints.

An archive holds ``header.json`` and one ``.npy`` file (format 1.0, little-endian, C order) for each
array; its comment is the SHA-256 digest of all bytes before it, which tells damage, not tampering.
Nothing in it is ever run. Whatever a reader allocates is bounded by the length of the file, and
every size is compared with every other before an array is made.
"""

import hashlib
import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER = "header.json"
_NAME = re.compile(r"[a-z0-9_]{1,64}\.npy")
_DTYPES = re.compile(r"<f[48]|[<|]i[1248]|[<|]u[1248]|\|b1|<U[1-9][0-9]{0,4}")
_DATE = (1980, 1, 1, 0, 0, 0)  # the same model makes the same file
_MAX_MEMBERS = 4_096
_MAX_EXPANSION, _ALWAYS_FINE = 100, 2**20  # bytes unpacked of one in the file; of any member
_MAX_NPY_HEADER = 1_024
_N_DIGEST = 64


class Archive(NamedTuple):
    """What a file holds."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Give the content of a file.

    Parameters
    ----------
    header : mapping
        What JSON can say; numbers are finite.
    arrays : mapping of str to ndarray
        Numbers, truth values and text, by names of letters, digits and underscores.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        text = json.dumps(header, allow_nan=False, separators=(",", ":"))
        _write(archive, _HEADER, text.encode())
        for name, array in arrays.items():
            member = io.BytesIO()
            little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
            np.lib.format.write_array(member, little, version=(1, 0), allow_pickle=False)
            _write(archive, f"{name}.npy", member.getvalue())
        archive.comment = bytes(_N_DIGEST)
    return sealed(content.getvalue()[:-_N_DIGEST])


def sealed(content: bytes) -> bytes:
    """Add the digest of all bytes as the comment at the end of an archive."""
    return content + hashlib.sha256(content).hexdigest().encode()


def unpack(content: bytes) -> Archive:
    """Read the content of a file; raises some exception unless all of it is in order."""
    if sealed(content[:-_N_DIGEST]) != content:
        raise ValueError("a byte differs from what was written")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        _check_members(members, len(content))
        header = json.loads(
            _read(archive, members[0]),
            object_pairs_hook=_once,
            parse_constant=_refuse_constant,
            parse_int=partial(_to_number, int),
            parse_float=partial(_to_number, float),
        )
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
        arrays = {m.filename[:-4]: _to_array(_read(archive, m)) for m in members[1:]}
    return Archive(header, arrays)


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.external_attr = 0o600 << 16
    n_packed = len(zlib.compress(data, 1)) if len(data) > _ALWAYS_FINE else len(data)
    is_bounded = len(data) <= _ALWAYS_FINE + _MAX_EXPANSION * n_packed
    # What expands too much, readers take for an attack: it is stored as it is.
    info.compress_type = zipfile.ZIP_DEFLATED if is_bounded else zipfile.ZIP_STORED
    archive.writestr(info, data, compresslevel=1)


def _is_bounded(member: zipfile.ZipInfo) -> bool:
    return member.file_size <= _ALWAYS_FINE + _MAX_EXPANSION * member.compress_size


def _check_members(members: list[zipfile.ZipInfo], n_bytes: int) -> None:
    """Refuse an archive that is not as `pack` makes it, before anything of it is unpacked."""
    names = [member.filename for member in members]
    if not 1 <= len(members) <= _MAX_MEMBERS or names[0] != _HEADER:
        raise ValueError("no header comes first, or there are too many members")
    if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names[1:])):
        raise ValueError("a member has a name that is not allowed, or two have the same")
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(m.compress_type not in methods or m.flag_bits & 0x1 for m in members):
        raise ValueError("a member is encrypted, or compressed in another way")
    if sum(member.compress_size for member in members) > n_bytes:
        raise ValueError("members overlap")
    if not all(map(_is_bounded, members)):
        raise ValueError(f"a member expands by more than {_MAX_EXPANSION} times")


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack a member: no more than it says, and with its checksum."""
    with archive.open(member) as file:
        data = file.read(member.file_size)
        if len(data) != member.file_size or file.read(1):
            raise ValueError(f"{member.filename} has another size than it says")
    return data


def _to_array(data: bytes) -> NDArray[Any]:
    member = io.BytesIO(data)
    if np.lib.format.read_magic(member) != (1, 0):
        raise ValueError("an array is not in format 1.0")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(
        member, max_header_size=_MAX_NPY_HEADER
    )
    if is_fortran or not _DTYPES.fullmatch(dtype.str):
        raise ValueError(f"an array has the type {dtype}, or another order")
    n_bytes = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or n_bytes != len(data) - member.tell():
        raise ValueError(f"an array of shape {shape} has another number of bytes")
    array = np.frombuffer(data, dtype, offset=member.tell()).reshape(shape)
    return array.astype(dtype.newbyteorder("="))  # a copy, which can be written


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _to_number(kind: type, text: str) -> Any:
    """Read a number that a float64 can hold: 1e999 is no better than Infinity."""
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} is too large")
    return kind(text)
