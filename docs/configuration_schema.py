"""The JSON schema of `calque.toml`, made from the configuration's models: an editor completes and checks keys by it.

`make tables` writes it to `schemas/calque-toml.json`. Types come from the models; a value that the file has in another
form than the model (`"10s"` for 10.0) has its form here. Descriptions and defaults come from the text that
`calque init` writes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from inspect import ismethod
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from calque.app import APP
from calque.config import checks, secret_keys
from calque.config.file import TARGET, whole_form
from calque.config.keys import MetastoreSection
from calque.plugins.clusters.config.sections import HIVE_NAMES
from calque.plugins.notices.config import BrokerAddress

FILE = Path(__file__).parents[1] / "schemas" / "calque-toml.json"
ID = "urn:calque:schema:calque-toml"
DURATION = {"type": ["string", "number"]}
SIZE = {"type": ["string", "integer"]}
TEXT = {"type": "string"}


def by_table(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "additionalProperties": value}


def for_all_or_by_table(*words: str) -> Mapping[str, Any]:
    return {"anyOf": [{"enum": words}, by_table({"enum": words})]}


def before(annotation: Any) -> Any:
    """Return the function that turns what the file has into the value of the annotated type."""
    return next(part.func for part in get_args(annotation)[1:] if isinstance(part, BeforeValidator))


IN_THE_FILE: Mapping[Any, Mapping[str, Any]] = {
    before(annotation): form
    for annotation, form in (
        (checks.Duration, DURATION),
        (checks.Scan, DURATION),
        (checks.Scans, by_table(DURATION)),
        (checks.Retentions, by_table(DURATION)),
        (checks.Data, for_all_or_by_table("copy", "none")),
        (checks.Acid, for_all_or_by_table("skip", "external", "native")),
        (checks.TableFormat, for_all_or_by_table("plain", *APP.file_kinds().formats)),
        (checks.Start, {"anyOf": [{"const": "bootstrap"}, {"type": "integer", "minimum": 0}]}),
        (checks.Size, SIZE),
        (checks.CompactSize, SIZE),
        (checks.Bandwidth, SIZE),
        (checks.Share, {"type": ["string", "number"]}),
        (checks.Metastores, TEXT),
        (checks.OptionalEndpoint, TEXT),
        (checks.OptionTable, by_table(TEXT)),
        (secret_keys.SecretVariable, TEXT),
        (secret_keys.SecretFile, TEXT),
        (BrokerAddress, TEXT),
    )
}
"""The forms of values in the file, by the function that reads them."""


class InTheFile(GenerateJsonSchema):
    """The generator of pydantic, for values as the file has them. Raises `KeyError` for a value whose form is not in
    `IN_THE_FILE`."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> dict[str, Any]:
        function = schema["function"]["function"]
        return self.generate_inner(schema["schema"]) if ismethod(function) else dict(IN_THE_FILE[function])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        """Leave the default out: the model's is no value of a file."""
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """Leave null out, which TOML does not have."""
        return self.generate_inner(schema["schema"])


def schema(models: Mapping[str, type[BaseModel]], said: Mapping[str, Mapping[str, tuple[str, str]]]) -> dict[str, Any]:
    """Return the schema. `models` are the models of sections by the sections' names; `said` has the default of each of
    their keys, as TOML writes it, and what the key means. Logins at other metastores have what `targets` says of
    them."""
    whole = whole_form(APP.file_kinds()).model_json_schema(schema_generator=InTheFile)
    definitions = whole["$defs"]
    of_models = {model.__name__: said[section] for section, model in models.items()}
    of_logins = {key: ("", said["targets"][key][1]) for key in MetastoreSection.model_fields}
    for name, definition in definitions.items():
        definition.pop("description", None)
        of_keys = of_models.get(name, of_logins)
        for key, value in definition["properties"].items():
            default, meaning = of_keys.get(key, ("", ""))
            has_default = default and key not in definition.get("required", ())
            value |= ({"description": meaning} if meaning else {}) | (parsed(default) if has_default else {})
    with_hive_names(definitions["Clusters"])
    whole["properties"]["targets"]["propertyNames"] = {"pattern": f"^{TARGET.pattern}$"}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": ID, "title": "calque.toml"}
    return described | {
        key: without_titles(value) for key, value in whole.items() if key not in ("title", "description")
    }


def parsed(default: str) -> Mapping[str, Any]:
    return tomllib.loads(f"default = {default}")


def with_hive_names(clusters: dict[str, Any]) -> None:
    """Let the section have Hive's names for its keys, in quotes or nested by their dots; one of them is required."""
    clusters["properties"] |= {name: {} for name in ("hive", *HIVE_NAMES)}
    del clusters["required"]


def without_titles(part: Any, is_table_of_keys: bool = False) -> Any:
    """Return a part of the schema without the titles that pydantic makes of the names of keys."""
    if isinstance(part, dict):
        return {
            key: without_titles(value, key in ("properties", "$defs"))
            for key, value in part.items()
            if is_table_of_keys or key != "title"
        }
    return [without_titles(value) for value in part] if isinstance(part, list) else part


def lines(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
