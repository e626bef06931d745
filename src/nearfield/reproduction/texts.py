"""The fixed words of the report, from ``texts.toml``."""

import tomllib
from importlib.resources import files
from typing import Any, Final


def _unwrapped(texts: Any) -> Any:
    """Undo the line breaks inside each text."""
    if isinstance(texts, str):
        return " ".join(texts.split())
    return {key: _unwrapped(value) for key, value in texts.items()}


_FILE = files("nearfield.reproduction").joinpath("texts.toml")
TEXTS: Final[dict[str, Any]] = _unwrapped(tomllib.loads(_FILE.read_text(encoding="utf-8")))
"""Titles, captions, columns, quotations and reasons, by section and name."""
