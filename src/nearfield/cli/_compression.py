"""Compressed bytes: told by their first bytes when read, by the name of the file when written."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from nearfield._extras import import_extra
from nearfield.cli._words import gigabytes

_PART = 2**20


class _Codec(NamedTuple):
    suffix: str
    magic: bytes
    compress: Callable[[bytes], bytes]
    open: Callable[[BinaryIO], Any]


def _zstandard() -> Any:
    return import_extra("zstandard", ", or use gzip.")


_CODECS = (
    # No time of writing inside: the same content gives the same file.
    _Codec(
        ".gz",
        b"\x1f\x8b",
        lambda content: gzip.compress(content, mtime=0),
        lambda file: gzip.GzipFile(fileobj=file),
    ),
    _Codec(".bz2", b"BZh", bz2.compress, bz2.BZ2File),
    _Codec(".xz", b"\xfd7zXZ\x00", lzma.compress, lzma.LZMAFile),
    _Codec(
        ".zst",
        b"\x28\xb5\x2f\xfd",
        lambda content: _zstandard().ZstdCompressor().compress(content),
        lambda file: _zstandard().ZstdDecompressor().stream_reader(file, read_across_frames=True),
    ),
)


def decompress(content: bytes, source: str, max_bytes: int) -> bytes:
    """Decompress what begins like a compressed file; leave anything else as it is.

    Stops at `max_bytes`: a file of a few kilobytes can hold more than the memory does.
    """
    for codec in _CODECS:
        if content.startswith(codec.magic):
            try:
                unpacked = read_at_most(codec.open(io.BytesIO(content)), max_bytes)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(
                    f"Expected a whole {codec.suffix} file in {source}; got one that is damaged "
                    f"({error}). Make it anew."
                ) from error
            check_size(len(unpacked), source, max_bytes)
            return unpacked
    return content


def read_at_most(file: Any, max_bytes: int) -> bytes:
    """Read a file to its end, or little more than `max_bytes` of it."""
    content = bytearray()
    while len(content) <= max_bytes:
        # One call of the system at a time: a signal in between is heard.
        part = file.read1(_PART)
        if not part:
            break
        content += part
    return bytes(content)


def check_size(n_bytes: int, source: str, max_bytes: int) -> None:
    """Refuse a table that would need more memory than is allowed."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"Expected a table of at most {gigabytes(max_bytes)} in {source}; it is larger when "
            "unpacked. If it is yours, raise the limit with --max-size."
        )


def compress(content: bytes, name: str) -> bytes:
    """Compress as the name of the file asks for, if it does."""
    for codec in _CODECS:
        if name.lower().endswith(codec.suffix):
            return codec.compress(content)
    return content


def without_compression_suffix(name: str) -> str:
    """Give the name that says what is inside: ``data.csv`` of ``data.csv.gz``."""
    for codec in _CODECS:
        if name.lower().endswith(codec.suffix):
            return name[: -len(codec.suffix)]
    return name
