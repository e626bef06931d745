"""Files that are written whole or not at all, and model files."""

import tempfile
from pathlib import Path
from typing import Any

from nearfield.cli._tables import STREAM, read_bytes


def write_file(path: str, content: bytes) -> None:
    """Write a file in one piece: at any moment it is the old one or the new one, never half of it.

    A place that is not a plain file, such as ``/dev/null``, is written to directly.
    """
    from nearfield._files import replace_file

    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            replace_file(place, content)
    except OSError as error:
        if error.errno is None:
            raise
        # Name the file that was asked for, not the one on the way to it.
        raise OSError(error.errno, error.strerror, path) from error


def model_bytes(model: Any) -> bytes:
    """Give the content of a model file."""
    from nearfield.persistence import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        return path.read_bytes()


def load_model(path: str) -> Any:
    """Read a model file; ``-`` is standard input."""
    from nearfield.persistence import load

    if path != STREAM:
        return load(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"
        copy.write_bytes(read_bytes(path))
        return load(copy)
