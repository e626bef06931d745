import doctest
import os
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Packages whose every public name is meant for users; of others the reference lists some.
WHOLE_PACKAGES = ("", ".dask", ".datasets", ".inference", ".plotting", ".sampling", ".spectra")
NO_EXAMPLES = {"__version__", "MEAT_TRAINING_COUNTS"}  # values


def reference_names():
    """Give (module, name) of every entry of the reference."""
    names = []
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        module = None
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif module and (found := re.fullmatch(r"   (\w+)", line)):
                names.append((module, found[1]))
    return names


NAMES = reference_names()


def defining_modules():
    """Give the modules that the names of the reference are defined in."""
    modules = {getattr(import_module(module), name).__module__ for module, name in NAMES}
    return sorted(modules)


def test_reference_lists_every_public_name():
    listed = {f"{module}.{name}" for module, name in NAMES}
    for suffix in WHOLE_PACKAGES:
        package = import_module(f"nearfield{suffix}")
        for name in set(package.__all__) - NO_EXAMPLES:
            homes = {f"{package.__name__}.{name}", f"{getattr(package, name).__module__}.{name}"}
            homes |= {full for full in listed if full.endswith(f".log_partition.{name}")}
            assert homes & listed, f"{package.__name__}.{name} is not in docs/reference"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_public_name_has_an_example(module, name):
    assert ">>> " in getattr(import_module(module), name).__doc__


@pytest.mark.parametrize("module", defining_modules())
def test_examples_in_the_reference_are_true(module, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    results = doctest.testmod(import_module(module))
    assert results.attempted > 0
    assert results.failed == 0
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("page", ["README.md", "docs/getting_started.md"])
def test_examples_in_the_pages_are_true(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8")
    assert results.attempted > 2
    assert results.failed == 0


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text()):
        assert os.path.exists(ROOT / target), f"{page.name} links to {target}"
