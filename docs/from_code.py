"""The parts of the pages that are made from the code: tables of keys, statements, rooms and modules, help of commands,
and signatures.

`make tables` runs this module: it writes these parts into the pages, between their marks, draws the picture of a
table's life, and writes the schema of `calque.toml`. All of it is committed, because a code host shows it without a
build; `tests/kernel/unit/test_docs.py` fails while some of it differs from the code.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin

import click
import configuration_schema
import signatures
from lifecycle import picture
from pydantic.fields import FieldInfo

from calque.app import APP
from calque.cli import commands
from calque.commands.init import template
from calque.config.keys import Target
from calque.config.reader import SECTIONS

MARKED = re.compile(r"<!-- made from the code: (.+?) -->\n.*?<!-- end -->", re.DOTALL)
SECTION = re.compile(r"(# )?\[([a-z]+)[^]]*\]")
KEY = re.compile(r"(# ?)?([a-z_]+) = (.+?)(?:\s{2,}# (.*))?")
"""A line of the configuration that `calque init` writes: a default that is a comment begins with a hash sign. An
example begins with a hash sign and a blank, and so do all lines of a section that is one."""
WIDTH = 100
DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "lib" / "calque"
PICTURE = DOCS / "pictures" / "life-of-a-table.svg"


def write() -> None:
    """Write the parts of all pages anew, the picture, and the schema."""
    for page in sorted(DOCS.glob("*.md")):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
    configuration_schema.FILE.write_text(schema(), encoding="utf-8")


def filled(page: str) -> str:
    """Return the page with each part made from the code. Raises `KeyError` for a mark that has no part."""
    return MARKED.sub(
        lambda mark: f"<!-- made from the code: {mark[1]} -->\n\n{PARTS[mark[1]]()}\n\n<!-- end -->", page
    )


def keys(section: str) -> str:
    """Return a table of the section's keys. Raises `KeyError` for a key of which `calque init` says nothing."""
    written = dict(template_rows(section))
    rows = []
    for key, field in MODELS[section].model_fields.items():
        value, meaning = written[key]
        rows.append(f"| `{key}` | {default(field, value)} | {escaped(meaning)} |")
    return "\n".join(["| key | default | means |", "|---|---|---|", *rows])


def template_rows(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each key with its default as TOML writes it, empty for an example, and what the comments say of it."""
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


def schema() -> str:
    """Return the schema of the configuration's file."""
    said = {section: dict(template_rows(section)) for section in MODELS}
    return configuration_schema.lines(configuration_schema.schema(MODELS, said))


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def all_help() -> str:
    return "\n\n".join(f"### {path}\n\n```text\n{text}\n```" for path, text in help_of(commands, "calque"))


def help_of(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path of the command and of each command below it, with what `--help` prints."""
    settings = {**commands.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    yield path, command.get_help(click.Context(command, info_name=path, **settings))
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from help_of(each, f"{path} {name}")


def rooms(container: str) -> str:
    """Return a table of the rooms below `calque` or one of its folders, the lowest floor first."""
    folder = PACKAGE.joinpath(*container.split(".")[1:])
    rows = ["| floor | room | is |", "|---|---|---|"]
    for floor, names in enumerate(reversed(floors(container)), 1):
        rows += [f"| {floor} | `{name}` | {summary(folder / name)} |" for name in names]
    return "\n".join(rows)


def floors(container: str) -> list[list[str]]:
    """Return the rooms of each floor, the highest first, as the contract of import-linter has them."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == [container]]
    return [re.findall(r"\w+", layer) for layer in layers]


def modules(plugin: str) -> str:
    """Return a table of a plugin's folders and modules."""
    folder = PACKAGE / "plugins" / plugin
    places = sorted(
        {file.parent if file.name == "__init__.py" else file.with_suffix("") for file in folder.rglob("*.py")}
    )
    rows = [f"| `{place.relative_to(folder)}` | {summary(place)} |" for place in places if place != folder]
    return "\n".join(["| module | is |", "|---|---|", *rows])


def plugins() -> str:
    """Return a table of the plugins."""
    folder = PACKAGE / "plugins"
    rows = [f"| `{name}` | {summary(folder / name)} |" for name in PLUGINS]
    return "\n".join(["| plugin | is |", "|---|---|", *rows])


def summary(place: Path) -> str:
    """Return the first paragraph of the docstring of a module or a package. Raises `ValueError` where it has none."""
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    paragraph = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
    if not paragraph.endswith((".", "?")):
        raise ValueError(f"The first paragraph of {file.relative_to(PACKAGE)} is no sentence: {paragraph!r}")
    return escaped(" ".join(paragraph.split()))


def statements() -> str:
    """Return a table of all kinds of statements."""
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
PLUGINS = sorted(file.parent.name for file in (PACKAGE / "plugins").glob("*/__init__.py"))
PARTS: Mapping[str, Callable[[], str]] = {
    "help of all commands": all_help,
    "rooms of the package": lambda: rooms("calque"),
    "rooms of the core": lambda: rooms("calque.core"),
    "rooms of the engine": lambda: rooms("calque.engine"),
    "plugins": plugins,
    "statements": statements,
    **{part: lambda part=part: signatures.functions(part) for part in signatures.FUNCTIONS},
    **{part: lambda part=part: signatures.methods(part) for part in signatures.METHODS},
    **{f"keys of {section}": lambda section=section: keys(section) for section in MODELS},
    **{f"modules of {plugin}": lambda plugin=plugin: modules(plugin) for plugin in PLUGINS},
}


if __name__ == "__main__":
    write()
