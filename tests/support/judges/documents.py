"""What commands print with `--json` is what `schemas/` says of it, no more and no less."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from calque.resources import schemas_folder

SAME = {"run": "status"}
"""Commands that print what others print."""


def read_document(command: str, text: str) -> Any:
    """The document that `calque COMMAND --json` printed, its own or that of an error."""
    found = json.loads(text)
    if isinstance(found, dict) and list(found) == ["error"]:
        command = "error"
    wrong = [f"{error.json_path}: {error.message}" for error in validator(command).iter_errors(found)]
    if wrong:
        raise AssertionError(f"calque {command}: {'; '.join(wrong)} in {text}")
    return found


def require_document(arguments: Sequence[str], text: str) -> None:
    """Nothing where the command was not asked for a document, or had none to print."""
    if "--json" in arguments and text:
        read_document(command_of(arguments), text)


def command_of(arguments: Sequence[str]) -> str:
    """`epochs list` of `epochs list --target dr`."""
    pair = " ".join(arguments[:2])
    return pair if schema_name(pair) else arguments[0]


def schema_name(command: str) -> str:
    """Of its newest schema; empty where there is none."""
    name = SAME.get(command, command).replace(" ", "-")
    versions = sorted(schemas_folder().glob(f"{name}-[0-9]*.json"), key=lambda path: int(path.stem.rpartition("-")[2]))
    return versions[-1].name if versions else ""


@cache
def validator(command: str) -> Draft202012Validator:
    schema = json.loads((schemas_folder() / schema_name(command)).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(closed(schema))


def closed(schema: Any) -> Any:
    """Schemas are open, so that a document may get more fields; here one that its schema does not know is an error."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    known = {"additionalProperties": False} if isinstance(schema.get("properties"), Mapping) else {}
    return {**known, **{key: closed(value) for key, value in schema.items()}}
