"""Files that are whole whenever the machine stops."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def replace_file(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Write a file in one piece: at any moment it is the old one or the new one.

    Parameters
    ----------
    path : str or path
        In a folder that exists.
    content : bytes
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Expected a folder {str(target.parent)!r} to write {target.name!r} to; there is none. "
            "Create it, or choose another file."
        )
    partial = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
        _sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring a new name in a folder to the disk, where the system can."""
    with suppress(OSError):  # Windows opens no folders, and some file systems sync none
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
