"""Print the oldest supported version of each dependency, as constraints for pip."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
TOOLS = {"benchmark", "dev", "docs", "test"}  # extras for developers, who have the newest


def floors():
    """Give the oldest version of each dependency and of each one of the extras, by name."""
    extras = PROJECT["optional-dependencies"]
    texts = [text for name in extras.keys() - TOOLS for text in extras[name]]
    wanted = map(Requirement, [*PROJECT["dependencies"], *texts])
    return {
        requirement.name: specifier.version
        for requirement in wanted
        if requirement.name != PROJECT["name"]
        for specifier in requirement.specifier
        if specifier.operator == ">="
    }


if __name__ == "__main__":
    for name, version in sorted(floors().items()):
        print(f"{name}=={version}")
