"""The parts of the pages that are made from the code: tables of keys and statements, help of commands."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

import click
from lifecycle import picture
from pydantic.fields import FieldInfo

from calque.app import APP
from calque.cli import commands
from calque.commands.init import template
from calque.config.keys import Target
from calque.config.reader import SECTIONS

MARKED = re.compile(r"<!-- begin (.+?) -->\n.*?<!-- end -->", re.DOTALL)
SECTION = re.compile(r"(# )?\[([a-z]+)[^]]*\]")
KEY = re.compile(r"(# ?)?([a-z_]+) = (.+?)(?:\s{2,}# (.*))?")
"""A line of the configuration that `calque init` writes: a default that is a comment begins with a hash sign. An
example begins with a hash sign and a blank, and so do all lines of a section that is one."""
WIDTH = 100
PACKAGE = Path(__file__).parents[1] / "lib" / "calque"


def filled(page: str) -> str:
    """The page with what stands between its marks made from the code. Raises `KeyError` for a mark that has no part."""
    return MARKED.sub(lambda mark: PARTS[mark[1]](), page)


def keys(section: str) -> str:
    """A table of the section's keys. Raises `KeyError` for a key of which `calque init` says nothing."""
    written = dict(template_rows(section))
    rows = []
    for key, field in MODELS[section].model_fields.items():
        value, meaning = written[key]
        rows.append(f"| `{key}` | {default(field, value)} | {escaped(meaning)} |")
    return "\n".join(["| key | default | means |", "|---|---|---|", *rows])


def template_rows(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each key with its default as TOML writes it, empty for an example, and what the comments say of it."""
    current, above, is_example = "", "", False
    for line in template(APP.file_kinds().sections).splitlines():
        header, key = SECTION.match(line), KEY.fullmatch(line)
        if header:
            current, above, is_example = header[2], "", bool(header[1])
        elif key and current == section:
            has_default = is_example or key[1] != "# "
            example = "" if has_default else f"e.g. `{key[3]}`"
            yield key[2], (key[3] if has_default else "", "; ".join(filter(None, (above or key[4], example))))
            above = ""
        elif line.startswith("# "):
            above = line.removeprefix("# ").rstrip(".")


def default(field: FieldInfo, value: str) -> str:
    if field.is_required():
        return "required"
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return f"`{value}`" if value or choices else "none"


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def all_help() -> str:
    return "\n\n".join(f"### {path}\n\n```text\n{text}\n```" for path, text in help_of(commands, "calque"))


def help_of(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """What `--help` prints, of the command and of those below it."""
    yield path, command.get_help(click.Context(command, info_name=path, max_content_width=WIDTH, terminal_width=WIDTH))
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from help_of(each, f"{path} {name}")


def rooms(folder: str) -> str:
    """A table of the packages in a folder of `lib/calque`, each with the first paragraph of its docstring."""
    rows = ["| room | is |", "|---|---|"]
    for package in sorted((PACKAGE / folder).glob("*/__init__.py")):
        docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        paragraph = " ".join(docstring.partition("\n\n")[0].split())
        rows.append(f"| `{package.parent.name}` | {escaped(paragraph)} |")
    return "\n".join(rows)


def statements() -> str:
    """A table of all kinds of statements."""
    rows = ["| statement | does | columns |", "|---|---|---|"]
    for form in APP.language().forms:
        columns = ", ".join(f"`{name}`" for name in form.columns) or "none"
        rows.append(f"| `{escaped(form.syntax)}` | {form.does} | {columns} |")
    return "\n".join(rows)


MODELS = {
    **SECTIONS,
    "targets": Target,
    **{
        kind.name: kind.models.get(kind.name) or kind.models[f"{kind.name}.NAME"]
        for kind in APP.file_kinds().sections
        if not kind.brings_sources
    },
}
"""Sections by their names; links have a page of their own."""
PARTS: Mapping[str, Callable[[], str]] = {
    "help of all commands": all_help,
    "rooms of the package": lambda: rooms(""),
    "rooms of the engine": lambda: rooms("engine"),
    "plugins": lambda: rooms("plugins"),
    "life of a table": picture,
    "statements": statements,
    **{f"keys of {section}": lambda section=section: keys(section) for section in MODELS},
}
