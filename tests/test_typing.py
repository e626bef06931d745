"""Type hints as a user meets them."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_a_users_script_is_checked_strictly_and_its_typos_are_found():
    # The typos are marked as errors to ignore: a mark that is not needed is an error itself.
    # From the root of the project, where `make lint` has left what it knows of the package.
    command = [sys.executable, "-m", "mypy", "--strict", str(TESTS / "typed_user_script.py")]
    checked = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
