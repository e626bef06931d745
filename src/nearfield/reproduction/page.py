"""The report as one web page that needs nothing else: figures inside, tables that sort."""

import base64
from html import escape
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

from nearfield._extras import import_extra


def render_page(markdown: str, title: str, folder: Path) -> str:
    """Turn Markdown into a page; pictures are read from the folder and put inside.

    Parameters
    ----------
    markdown : str
    title : str
    folder : path
        What the addresses of the pictures are relative to.
    """
    parser = import_extra("markdown_it").MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    _embed_pictures(tokens, folder)
    contents = _number_headings(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    body = body.replace("<table>", '<div class="scroll"><table>')
    body = body.replace("</table>", "</table></div>")
    links = " ".join(f'<a href="#{anchor}">{escape(name)}</a>' for anchor, name in contents)
    body = body.replace("</h1>", f"</h1>\n<nav>{links}</nav>", 1)
    template = files("nearfield.reproduction").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=escape(title), body=body)


def _embed_pictures(tokens: list[Any], folder: Path) -> None:
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                content = (folder / str(child.attrs["src"])).read_bytes()
                encoded = base64.b64encode(content).decode("ascii")
                child.attrs["src"] = f"data:image/png;base64,{encoded}"


def _number_headings(tokens: list[Any]) -> list[tuple[str, str]]:
    """Give every part an anchor; return anchors and titles."""
    contents: list[tuple[str, str]] = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag == "h2":
            anchor = f"part-{len(contents) + 1}"
            opening.attrs["id"] = anchor
            contents.append((anchor, inline.content))
    return contents
