"""The keys that environment variables set in place of the file: `CALQUE__TARGETS__DR__WAREHOUSE` sets `warehouse` of
`[targets.dr]`."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from typing import Any

from calque.errors import Refused

PREFIX, BETWEEN = "CALQUE__", "__"
Path = tuple[str | int, ...]


def overridden(data: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, Any], Mapping[Path, str]]:
    """Return the file's keys with those of the environment in their place, and the variable of each of these.

    A variable's text is read as a TOML value, and taken as text where it is none. Raises `Refused` for a variable that
    can't be a key.
    """
    keys = copy.deepcopy(dict(data))
    variables: dict[Path, str] = {}
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        path = tuple(variable.removeprefix(PREFIX).lower().split(BETWEEN))
        if "" in path:
            raise Refused(f"{variable} is no key", f"Words stand between {BETWEEN}", "Write CALQUE__SECTION__KEY")
        table: Any = keys
        for word in path[:-1]:
            table = table.setdefault(word, {})
            if not isinstance(table, dict):
                what = f"{variable} is no key: {word} is none that has others below it"
                raise Refused(what, "The file gives it a value", "Write CALQUE__SECTION__KEY")
        table[path[-1]] = value_of(environment[variable])
        variables[path] = variable
    return keys, variables


def value_of(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if found.keys() == {"value"} else text


def variable_of(path: Path, variables: Mapping[Path, str]) -> str:
    """Return the variable that sets the key at `path`, or a key above it; empty where the file does."""
    above = (path[:length] for length in range(len(path), 0, -1))
    return next((variables[one] for one in above if one in variables), "")
