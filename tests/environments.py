"""Build the wheel and test it in environments of its own, below ``build/environments``.

``python tests/environments.py wheel`` installs it without the tools of developers and runs the
README and all examples. ``... matrix [arguments of pytest]`` runs tests with the oldest
dependencies, and with the newest on every supported Python that this machine has.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import floors

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "environments"
# What depends most on other packages, and takes minutes; others are the same code everywhere.
TESTS = [
    "posterior",
    "predictive",
    "plotting",
    "persistence",
    "tables",
    "datasets",
    "cli_tables",
    "packaging",
]


class Environment(NamedTuple):
    """An interpreter, and what is installed for it."""

    name: str
    python: str
    extras: str = ""
    is_oldest: bool = False

    def run(self, wheel, *command):
        """Make the environment anew and run a command of Python in it; tell whether it worked."""
        folder = FOLDER / self.name
        run(self.python, "-m", "venv", "--clear", folder)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        constraints = []
        if self.is_oldest:
            lines = [f"{name}=={version}" for name, version in floors.floors().items()]
            (folder / "oldest.txt").write_text("\n".join(lines))
            constraints = ["--constraint", folder / "oldest.txt"]
        run(python, "-m", "pip", "install", "--quiet", *constraints, f"{wheel}{self.extras}")
        print(f"== {self.name}: {' '.join(map(str, command))}", flush=True)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        return subprocess.run([python, *command], cwd=ROOT, env=clean, check=False).returncode == 0


def run(*command):
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def build():
    """Build the wheel; return its path."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", FOLDER)
    (wheel,) = FOLDER.glob("*.whl")
    return wheel


def supported():
    """Give the versions of Python that the package names, such as 3.12."""
    words = [text.rpartition(" ")[2] for text in floors.PROJECT["classifiers"]]
    return [word for word in words if word.startswith("3.")]


def interpreter(version):
    """Find a Python of a version that runs: on the path, or of pyenv or uv; else None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", version]
        found.append(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    probe = "import ensurepip, sys, venv; print('{}.{}'.format(*sys.version_info))"
    for python in filter(None, found):
        result = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
        if result.stdout.strip() == version:
            return str(python)
    return None


def wheel_environments():
    """Name the environments of the wheel alone, with the command of Python for each."""
    return [
        (Environment("core", sys.executable), ["tests/installed.py", "core"]),
        (Environment("all", sys.executable, "[all]"), ["tests/installed.py", "all"]),
    ]


def matrix_environments(arguments):
    """Name those of the oldest and the newest dependencies, with the tests to run."""
    pythons = {version: interpreter(version) for version in supported()}
    oldest = next(iter(pythons))
    environments = [
        Environment(f"{oldest}-oldest", pythons[oldest], "[test]", is_oldest=True),
        *(Environment(f"{v}-newest", python, "[test]") for v, python in pythons.items()),
    ]
    tests = arguments or [f"tests/test_{name}.py" for name in TESTS]
    # Old packages use what newer ones below them call deprecated.
    calm = {True: ["-W", "ignore::DeprecationWarning"], False: []}
    return [(env, ["-m", "pytest", "-q", *calm[env.is_oldest], *tests]) for env in environments]


def outcome(environment, wheel, command):
    """Test the wheel in an environment; say in a word or a line what happened."""
    if environment.python is None:
        return "left out: no such Python on this machine"
    try:
        return "passed" if environment.run(wheel, *command) else "FAILED"
    except subprocess.CalledProcessError as error:
        return f"FAILED: {error}"


def main(what, *arguments):
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    environments = wheel_environments() if what == "wheel" else matrix_environments(arguments)
    wheel = build()
    outcomes = {env.name: outcome(env, wheel, command) for env, command in environments}
    for name, words in outcomes.items():
        print(f"{name}: {words}")
    sys.exit(any(words.startswith("FAILED") for words in outcomes.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
