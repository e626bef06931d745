"""All speed benchmarks in one run: `make benchmark`. Ratios count; times are this machine's.

`--document docs/speed.md` keeps what was printed, with its date, and `--large` adds the sizes that
take long: a million points, and large tables beside gradient boosting.
"""

import argparse
import contextlib
import datetime
import inspect
import io
import os
import sys
from importlib import metadata
from pathlib import Path

import boosting
import engines
import engines_mixing
import exchange
import gibbs
import prediction
import scaling
import scaling_others
import startup

PARTS = {
    "First use": startup,
    "Gibbs sweeps": gibbs,
    "Exchange": exchange,
    "Path sampling": engines,
    "Pseudolikelihood and the auxiliary variable": engines_mixing,
    "Prediction": prediction,
    "Many points": scaling,
    "Many points, the other estimators": scaling_others,
    "Gradient boosting": boosting,
}


class Tee(io.StringIO):
    """Keeps what is printed, and shows it."""

    def write(self, text):
        """Show a text, and keep it."""
        sys.__stdout__.write(text)
        sys.__stdout__.flush()
        return super().write(text)


def main(document=None, is_large=False):
    sections = []
    for title, part in PARTS.items():
        with contextlib.redirect_stdout(Tee()) as printed:
            part.main(*[part.LARGE] if is_large and hasattr(part, "LARGE") else [])
            print()
        about = inspect.getdoc(part).split("\n\n`python")[0]
        sections.append(f"## {title}\n\n{about}\n\n```text\n{printed.getvalue().rstrip()}\n```\n")
    if document is not None:
        document.write_text("\n".join([introduction(), *sections]))


def introduction():
    packages = ("nearfield", "numpy", "scipy", "scikit-learn", "numba", "lightgbm")
    installed = {package.name.lower(): package.version for package in metadata.distributions()}
    versions = ", ".join(f"{name} {installed[name]}" for name in packages if name in installed)
    return (
        "# Speed\n\n"
        f"What `python benchmarks/run.py` printed on {datetime.date.today()}, on a machine of "
        f"{os.cpu_count()} cores that others used too: compare what stands beside each other, "
        "not seconds with those of another machine. CPU seconds unless said. Peak memory is at "
        "least that of the process that starts all parts: see [many points](scaling.md) for more. "
        f"Versions: {versions}.\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--document", metavar="PATH", type=Path)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    main(arguments.document, arguments.large)
