"""Sphinx directive ``command-reference``: the options of every command, from the program itself."""

from typing import Any, ClassVar

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from nearfield.cli import app as command_app


class CommandReference(SphinxDirective):
    """One section for each command: usage, text, arguments and options."""

    has_content = False
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        group = typer.main.get_command(command_app)
        commands = getattr(group, "commands", {})
        return [_section(name, command) for name, command in commands.items()]


def _section(name: str, command: Any) -> nodes.section:
    title = f"nearfield {name}"
    section = nodes.section(ids=[nodes.make_id(title)], names=[title])
    section += nodes.title(text=title)
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph.strip():
            section += _paragraph(paragraph)
    section += _parameters(command.params)
    return section


def _paragraph(text: str) -> nodes.Node:
    """Make a block of an example, and a paragraph of other text, with code in backticks."""
    text = " ".join(text.split())
    if text.startswith("Example:"):
        code = "$ " + text.removeprefix("Example:").strip(" `")
        return nodes.literal_block(code, code, language="console")
    paragraph = nodes.paragraph()
    for i, part in enumerate(text.split("`")):
        paragraph += nodes.literal(text=part) if i % 2 else nodes.Text(part)
    return paragraph


def _parameters(parameters: list[Any]) -> nodes.definition_list:
    entries = nodes.definition_list()
    for parameter in parameters:
        if getattr(parameter, "hidden", False):
            continue
        names = parameter.metavar or parameter.name.upper()
        if parameter.param_type_name == "option":
            names = ", ".join([*parameter.opts, *parameter.secondary_opts])
            if parameter.metavar and not parameter.is_flag:
                names += f" {parameter.metavar}"
        term = nodes.term()
        term += nodes.literal(text=names)
        if parameter.required:
            term += nodes.Text(" (required)")
        definition = nodes.definition()
        definition += _paragraph(_help(parameter))
        entries += nodes.definition_list_item("", term, definition)
    return entries


def _help(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split())
    default = getattr(parameter, "show_default", None)
    if not isinstance(default, str):
        default = parameter.default
    is_worth_saying = default not in (None, False, "", ()) and not callable(default)
    if is_worth_saying and not parameter.required:
        text += f" Default: {default}."
    return text


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
