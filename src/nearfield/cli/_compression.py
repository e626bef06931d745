"""Compressed bytes: told by their first bytes when read, by the name of the file when written."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class _Codec(NamedTuple):
    suffix: str
    magic: bytes
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


def _zstandard() -> Any:
    try:
        return import_module("zstandard")
    except ImportError:
        raise ImportError(
            "Expected the package zstandard for a .zst file; it is not installed. "
            "Install it (pip install zstandard), or use gzip."
        ) from None


_CODECS = (
    # No time of writing inside: the same content gives the same file.
    _Codec(".gz", b"\x1f\x8b", lambda content: gzip.compress(content, mtime=0), gzip.decompress),
    _Codec(".bz2", b"BZh", bz2.compress, bz2.decompress),
    _Codec(".xz", b"\xfd7zXZ\x00", lzma.compress, lzma.decompress),
    _Codec(
        ".zst",
        b"\x28\xb5\x2f\xfd",
        lambda content: _zstandard().ZstdCompressor().compress(content),
        # Through a stream: a file made by one need not state its size.
        lambda content: _zstandard().ZstdDecompressor().decompressobj().decompress(content),
    ),
)


def decompress(content: bytes, source: str) -> bytes:
    """Decompress what begins like a compressed file; leave anything else as it is."""
    for codec in _CODECS:
        if content.startswith(codec.magic):
            try:
                return codec.decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(
                    f"Expected a whole {codec.suffix} file in {source}; got one that is damaged "
                    f"({error}). Make it anew."
                ) from error
    return content


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
