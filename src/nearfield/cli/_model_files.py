"""Model files of the command."""

import tempfile
from pathlib import Path
from typing import Any

from nearfield.cli._tables import STREAM, read_bytes


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


def is_model(path: str) -> bool:
    """Tell whether a file is a model."""
    from nearfield.persistence import load

    try:
        load(path)
    except ValueError:
        return False
    return True
