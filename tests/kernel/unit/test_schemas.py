"""The schemas of what commands print with `--json`: one for each command, and each says all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest

from calque.cli import commands
from calque.resources import schemas_folder
from support.judges.documents import command_of, read_document, schema_name, validator

OTHERS = ("ledger-", "notice-1", "calque-toml")
SCHEMAS = sorted(path for path in schemas_folder().glob("*.json") if not path.name.startswith(OTHERS))
"""Of what commands print; `test_ledger_schemas`, `test_notices` and `test_docs` hold the rest to the others."""


def printing(command: click.Command = commands, name: str = "") -> Iterator[str]:
    """The commands that take `--json`."""
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            yield from printing(inner, f"{name} {word}".strip())
    elif any("--json" in option.opts for option in command.params):
        yield name


@pytest.mark.parametrize("command", sorted(set(printing())))
def test_every_command_that_prints_a_document_has_a_schema(command: str) -> None:
    assert validator(command)
    assert command_of([*command.split(), "--json"]) == command


def test_every_schema_is_that_of_a_command_or_of_its_error_and_says_its_name() -> None:
    of_commands = {schema_name(command) for command in printing()} - {""}
    assert of_commands | {"error-1.json"} == {path.name for path in SCHEMAS}
    for path in SCHEMAS:
        assert json.loads(path.read_text(encoding="utf-8"))["$id"] == f"urn:calque:schema:{path.stem}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"written": "a", "more": 1}', "'more' was unexpected"),
        ("{}", "'written' is a required property"),
        ('{"written": 1}', "1 is not of type 'string'"),
    ],
)
def test_a_document_with_more_or_less_than_its_schema_says_is_found_out(text: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        read_document("init", text)


def test_the_readme_names_every_schema() -> None:
    named = (schemas_folder() / "README.md").read_text(encoding="utf-8")
    stems = {path.stem.rpartition("-")[0] for path in SCHEMAS}
    assert {stem for stem in stems if f"`{stem}`" not in named} == set()
