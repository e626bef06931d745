"""What the tests of the command line share: small tables, and a way to run a command."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from nearfield.cli import app
from nearfield.datasets import load_iris

QUICK = ("--model", "dnn1", "--inference", "pseudolikelihood")
FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


def run(*arguments, stdin=None):
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)


def iris_table(n_rows=45):
    """Make a table of iris: the same number of rows of each species, one after the other."""
    bunch = load_iris()
    rows = np.arange(n_rows) % 3 * 50 + np.arange(n_rows) // 3
    frame = pd.DataFrame(bunch.data[rows], columns=FEATURES)
    frame["species"] = np.asarray(bunch.target_names)[bunch.target[rows]]
    return frame


def error_of(result):
    """Give the one line of error that a failed run wrote, without the word in front of it."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    *notes, line = result.stderr.splitlines()
    assert all(note.startswith("Note: ") for note in notes)
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")
