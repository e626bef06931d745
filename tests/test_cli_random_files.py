"""Random files: whatever a file holds, a command ends in time, in one line, with nothing lost."""

import bz2
import gzip
import signal

import numpy as np
import pytest
from cli_files import iris_table, run

from nearfield.cli._writing import write_table

CELLS = [
    *("1.5", "-3", "0", "1e308", "-1e308", "1e999", "1e-320", "9" * 400, "inf", "nan", "NA", ""),
    *("1,5", "1.234,5", "1,234", "<0.05", "n.d.", "#DIV/0!", "=1+1", "@x", "-", "+", "?", "True"),
    *("2024-03-01", "01.03.2024", "3/1/24", "12:30", "1/2", "0x1F", "1_000", "١٢", "½", "²"),
    *("beef", "pork", "a b", "é", "漢字", "\u202e", "\U0001f969", "x" * 500, "None", "null"),
    *('"', '""', '"open', "it's", "a\nb", "a\rb", "\t", ";", ",", "|", "\\", "#", " "),
    *("\x00", "\x1a", "\x7f", "\ufeff", "\ud800"),
]
SEPARATORS = [",", ";", "\t", " ", "|", ", "]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-32"]
SECONDS = 60


def random_file(rng):
    """Make a table that a command may or may not be able to read, then damage it or not."""
    kind = rng.random()
    if kind < 0.05:
        content = rng.bytes(int(rng.integers(0, 3_000)))
    elif kind < 0.15:
        name = rng.choice(["t.xlsx", "t.ods", "t.parquet"])
        content = write_table(iris_table(12), str(name))
    else:
        content = random_text(rng)
    if rng.random() < 0.1:
        content = rng.choice([gzip.compress, bz2.compress])(content)
    return damaged(rng, content) if rng.random() < 0.3 else content


def random_text(rng):
    n_rows, n_columns = int(rng.integers(0, 25)), int(rng.integers(1, 7))
    rows = rng.normal(size=(n_rows, n_columns)).round(3).astype(object)
    rows = [[*row, rng.choice(["beef", "pork"])] for row in rows]
    header = [f"x{i}" for i in range(n_columns)] if rng.random() < 0.7 else range(n_columns)
    rows = [[*header, "class"], *rows]
    for _ in range(int(rng.poisson(1.0))):  # odd cells
        row = rows[rng.integers(len(rows))]
        row[rng.integers(len(row))] = rng.choice(CELLS)
    if rng.random() < 0.2:  # a ragged row
        row = rows[rng.integers(len(rows))]
        row[:] = row[: rng.integers(len(row))] if rng.random() < 0.5 else [*row, rng.choice(CELLS)]
    if rng.random() < 0.1:  # an odd column
        values = rng.choice(CELLS, size=3)
        rows = [[*row, rng.choice(values)] for row in rows]
    separator = rng.choice(SEPARATORS)
    end = rng.choice(["\n", "\n", "\r\n", "\r"])
    text = end.join(separator.join(str(cell) for cell in row) for row in rows)
    return text.encode(str(rng.choice(ENCODINGS)), errors="replace")


def damaged(rng, content):
    """Cut a file, or change some of its bytes."""
    if rng.random() < 0.3:
        return content[: rng.integers(len(content) + 1)]
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 8))):
        if changed:
            changed[rng.integers(len(changed))] = rng.integers(256)
    return bytes(changed)


def too_slow(*_):
    raise AssertionError(f"not done after {SECONDS} seconds")


def check(folder, model, seed):
    """Fit, evaluate or predict from a random file; everything must end well or in one line."""
    rng = np.random.default_rng(seed)
    data, out = folder / "data.csv", folder / "out.csv"
    content = random_file(rng)
    data.write_bytes(content)
    more = [option for option in ("--missing=keep", "--missing=drop") if rng.random() < 0.3]
    fit = ("fit", data, "-t", "class", "-o", out, "-m", "knn", *more)
    predict = ("predict", model, data, "-o", out, *more)
    signal.alarm(SECONDS)
    result = run(*(fit if rng.random() < 0.7 else predict))
    signal.alarm(0)
    lines = result.stderr.splitlines()
    is_done = result.exit_code == 0
    assert result.exception is None or isinstance(result.exception, SystemExit), seed
    assert result.exit_code in (0, 1), (seed, result.output)
    assert sum(line.startswith("Error: ") for line in lines) == (not is_done), (seed, lines)
    assert all(line.startswith(("Note: ", "Warning: ", "Error: ")) for line in lines), (seed, lines)
    assert "defect of nearfield" not in result.stderr, (seed, lines)
    assert {path.name for path in folder.iterdir()} == {"data.csv", *["out.csv"] * is_done}, seed
    assert data.read_bytes() == content
    out.unlink(missing_ok=True)
    return is_done


@pytest.fixture
def model(tmp_path):
    table = iris_table(30).set_axis(["x0", "x1", "x2", "x3", "class"], axis=1)
    table.to_csv(tmp_path / "train.csv", index=False)
    run("fit", tmp_path / "train.csv", "-t", "class", "-o", tmp_path / "model", "-m", "knn")
    before = signal.signal(signal.SIGALRM, too_slow)
    yield tmp_path / "model"
    signal.signal(signal.SIGALRM, before)


def check_many(tmp_path, model, n_files):
    folder = tmp_path / "files"
    folder.mkdir()
    n_done = sum(check(folder, model, seed) for seed in range(n_files))
    assert 0.1 * n_files < n_done < 0.9 * n_files  # both ends are tried


def test_random_files_end_well_or_in_one_line(tmp_path, model):
    check_many(tmp_path, model, 300)


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_many_random_files_end_well_or_in_one_line(tmp_path, model):
    check_many(tmp_path, model, 10_000)
