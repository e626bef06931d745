import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import environments
import floors
import installed
import pytest
from packaging.requirements import Requirement

from nearfield import _progress
from nearfield._extras import EXTRAS, import_extra
from nearfield.datasets import load_iris

ROOT = Path(__file__).parents[1]
EXTRA_REQUIREMENTS = {
    name: [Requirement(text) for text in texts]
    for name, texts in floors.PROJECT["optional-dependencies"].items()
}
FOR_USERS = EXTRA_REQUIREMENTS.keys() - floors.TOOLS - {"all"}
DISTRIBUTIONS = {"faiss": "faiss-cpu", "markdown_it": "markdown-it-py", "odf": "odfpy"}


def run(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, **options)


def test_the_core_works_without_any_optional_package():
    done = run("tests/installed.py", "blocked", cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_command_without_its_extra_fails_in_one_line():
    script = (
        "import sys; sys.path.insert(0, 'tests'); import installed;"
        "sys.meta_path.insert(0, installed.Blocker());"
        "from nearfield.__main__ import main; main()"
    )
    done = run("-c", script, cwd=ROOT)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert 'pip install "nearfield[cli]"' in done.stderr


def test_the_command_needs_no_other_extra_than_its_own(tmp_path):
    script = (
        "import sys; sys.path.insert(0, 'tests'); import installed;"
        "installed.OPTIONAL -= {'typer', 'click', 'rich', 'markdown_it'};"  # rich needs the last
        "sys.meta_path.insert(0, installed.Blocker());"
        "from nearfield.__main__ import main; main()"
    )
    table, model = tmp_path / "iris.csv", tmp_path / "iris.model"
    load_iris(as_frame=True).frame[::5].to_csv(table, index=False)
    fitted = run("-c", script, "fit", table, "--target", "target", "--out", model, cwd=ROOT)
    assert fitted.returncode == 0, fitted.stderr
    predicted = run("-c", script, "predict", model, table, cwd=ROOT)
    assert predicted.stdout.count("\n") == 31, predicted.stderr


@pytest.mark.parametrize("module", sorted(EXTRAS))
def test_a_missing_package_is_answered_by_the_extra_that_brings_it(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'Run: pip install "nearfield\[(\w+)\]"$') as raised:
        import_extra(module)
    assert "\n" not in str(raised.value)
    (extra,) = re.findall(r"\[(\w+)\]", str(raised.value))
    brought = {requirement.name for requirement in EXTRA_REQUIREMENTS[extra]}
    assert DISTRIBUTIONS.get(module, module) in brought


def test_every_module_of_an_extra_is_blocked_in_the_test_of_the_core():
    assert EXTRAS.keys() <= installed.OPTIONAL


def test_all_brings_every_extra_for_users():
    (everything,) = EXTRA_REQUIREMENTS["all"]
    assert everything.extras == FOR_USERS


@pytest.mark.parametrize("page", ["README.md", "docs/getting_started.md"])
def test_the_pages_name_every_extra_for_users(page):
    text = (ROOT / page).read_text()
    assert {extra for extra in FOR_USERS if f"`{extra}`" in text} == FOR_USERS
    assert "nearfield[all]" in text


def test_every_dependency_has_a_floor_and_no_ceiling():
    texts = map(Requirement, floors.PROJECT["dependencies"])
    wanted = [*texts, *(r for each in EXTRA_REQUIREMENTS.values() for r in each)]
    for requirement in wanted:
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators == (set() if requirement.name == "nearfield" else {">="}), requirement


def test_the_oldest_python_named_is_the_oldest_allowed():
    assert floors.PROJECT["requires-python"] == f">={environments.supported()[0]}"


def test_without_rich_work_goes_on_and_says_how_to_see_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with (
        pytest.warns(UserWarning, match=r'No progress is shown.*"nearfield\[cli\]"'),
        _progress.progress(3, "work", verbose=1) as advance,
    ):
        advance()


def test_two_builds_give_one_wheel(tmp_path):
    copy = tmp_path / "copy"  # another folder, other times and modes of files
    shutil.copytree(ROOT / "src", copy / "src", copy_function=shutil.copyfile)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, copy / name)
    for path in copy.rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (1e9, 1e9))
    clean = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    digests = set()
    for tree, name in ((ROOT, "first"), (copy, "second")):
        command = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / name)]
        run(*command, cwd=tree, env=clean, check=True)
        (wheel,) = (tmp_path / name).glob("*.whl")
        digests.add(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert len(digests) == 1
