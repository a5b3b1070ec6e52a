"""The reader of a configuration, which words all that is wrong with it in one line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from calque.config.conflicts import conflicts
from calque.config.environment import overridden, variable_of
from calque.config.file import alone_in, form_of, whole_form, without_source
from calque.config.keys import Journal, Log, Source, State, Target, TlsSection, Window
from calque.config.lines import FileLines
from calque.config.lines import Path as KeyPath
from calque.config.places import without_login
from calque.config.plugs import Config, config_of
from calque.config.pydantic_errors import WrongError
from calque.config.sections import KERNEL_ALONE, FileKinds
from calque.config.serve_keys import Serve, ServeTls
from calque.errors import Refused, Where, nearest, sentence

SECTIONS: Mapping[str, type[BaseModel]] = {
    "source": Source,
    "state": State,
    "journal": Journal,
    "window": Window,
    "serve": Serve,
    "log": Log,
}
KINDS = {
    "string": 'text in quotes, e.g. "hq"',
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "tuple": 'a list, e.g. ["sales.*"]',
    "mapping": "a table",
    "dict": "a table",
    "model": "a table",
    "model_attributes": "a table",
}
SHOWN = 5


TWICE = "Cannot overwrite a value"
"""The beginning of tomllib's text for a key that stands twice."""
KEY_OF_LINE = re.compile(r"\s*([\w.\"'-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file. `key` is the path of the key that it is about, empty for the file as a whole."""

    line: int | None
    what: str
    why: str = ""
    todo: str = ""
    key: KeyPath = ()


def load(path: str | Path, kinds: FileKinds = KERNEL_ALONE, environment: Mapping[str, str] | None = None) -> Config:
    """Return the configuration in the file at `path`, checked whole, with the further configurations that it names.
    Nothing is connected to.

    Keys that `environment` sets take the place of the file's; None stands for the process's own environment. `kinds`
    are the sections besides the kernel's. Raises `Refused` with the line of each problem.
    """
    path = Path(path)
    config, lines = _loaded(path, kinds, os.environ if environment is None else environment)
    others = tuple(
        _other(path, lines, key, Path(one), kinds) for key, one in config.files() if Path(one) != config.path
    )
    return replace(config, others=others)


def parse(path: Path, text: str, kinds: FileKinds = KERNEL_ALONE) -> Config:
    """Return the configuration that the file `path` would have with this text, checked whole. The file need not exist,
    and no variable of the environment counts. Raises `Refused` with the line of each problem."""
    return _parsed(path, text, kinds, {})[0]


def _other(path: Path, lines: FileLines, key: KeyPath, other: Path, kinds: FileKinds) -> Config:
    """Return the configuration at `other`, which the key of the file at `path` names. Raises `Refused` at that key."""
    try:
        config, _ = _loaded(other, kinds, {})
        config.require_source()
    except Refused as refused:
        where = f"{path}:{lines.find(key, other.name) or 1}"
        named = _key(tuple(part for part in key if isinstance(part, str)))
        raise Refused(f"{where}: {named}: {refused.what}", refused.why, refused.todo, refused.where) from None
    return config


def _loaded(path: Path, kinds: FileKinds, environment: Mapping[str, str]) -> tuple[Config, FileLines]:
    return _parsed(path, _text(path), kinds, environment)


def _parsed(path: Path, text: str, kinds: FileKinds, environment: Mapping[str, str]) -> tuple[Config, FileLines]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, [_syntax(error, text)]) from None
    data, variables = overridden(data, environment)
    lines = FileLines(text)
    context = {"base": path.absolute().parent, "broker_options": kinds.broker_options}
    alone = alone_in(data, kinds)
    try:
        file = form_of(data, kinds).model_validate(data, context=context)
    except ValidationError as error:
        raise _refused(path, [_problem(details, lines, variables, kinds) for details in error.errors()]) from None
    missing = without_source(data, kinds) if alone is None and "source" not in data else None
    if missing is not None:
        raise _refused(path, [Problem(lines.find(()), missing.what, missing.why, missing.todo)])
    config = config_of(path.absolute(), file, kinds, alone.name if alone is not None else "")
    problems = [
        _said_by(variables, key, Problem(lines.find(key), refused.what, refused.why, refused.todo, key))
        for key, refused in conflicts(config)
    ]
    if problems:
        raise _refused(path, problems)
    return config, lines


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        what = f"There is no file {path}"
        raise Refused(what, "The configuration stands there", _init(path), Where(str(path))) from None
    except UnicodeDecodeError as error:
        why = f"Byte {error.start} is not"
        raise Refused(f"{path} is not UTF-8", why, "Save it as UTF-8", Where(str(path))) from None
    except OSError as error:
        why = str(error.strerror or error)
        raise Refused(f"{path} can't be read", why, "Name a readable file with -c", Where(str(path))) from None


def _init(path: Path) -> str:
    return f"Write one with 'calque init {path}', or name another with -c"


def _syntax(error: tomllib.TOMLDecodeError, text: str) -> Problem:
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
    if not match:
        return Problem(None, "this is no TOML", str(error), "Mend the end of the file")
    if match[1] == TWICE and (twice := _twice(text.splitlines(), int(match[2]))) is not None:
        return twice
    return Problem(int(match[2]), "this is no TOML", match[1], f"Mend it near column {match[3]}")


def _twice(lines: Sequence[str], line: int) -> Problem | None:
    """Return the problem of a key that stands on `line` and on a line of the same section before; None where the lines
    do not show it."""
    key = KEY_OF_LINE.match(lines[line - 1])
    for number in range(line - 1, 0, -1):
        before = lines[number - 1]
        if before.lstrip().startswith("["):
            return None
        if key is not None and (other := KEY_OF_LINE.match(before)) is not None and other[1] == key[1]:
            return Problem(line, f"{key[1]} stands twice", f"Line {number} has it, too", "Take one of them out")
    return None


def _refused(path: Path, problems: list[Problem]) -> Refused:
    problems.sort(key=lambda problem: problem.line or 0)
    first = problems[0]
    where = Where(str(path), first.line, _key(first.key) if first.key else None)
    if len(problems) == 1:
        return Refused(f"{path}{_at(first)}: {without_login(first.what)}", without_login(first.why), first.todo, where)
    shown = [f"{path}{_at(one)}: {' '.join(map(sentence, _parts(one)))}" for one in problems[:SHOWN]]
    more = [f"And {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return Refused(without_login(" ".join([*shown, *more])), where=where)


def _parts(problem: Problem) -> list[str]:
    return [part for part in (problem.what, problem.why, problem.todo) if part]


def _at(problem: Problem) -> str:
    return f":{problem.line}" if problem.line else ""


def _said_by(variables: Mapping[KeyPath, str], path: KeyPath, problem: Problem) -> Problem:
    """Return the problem with the variable that sets its key in place of the line, where the environment sets it."""
    variable = variable_of(path, variables)
    return replace(problem, line=None, what=f"{problem.what} ({variable} says so)") if variable else problem


def _problem(details: ErrorDetails, lines: FileLines, variables: Mapping[KeyPath, str], kinds: FileKinds) -> Problem:
    path: KeyPath = tuple(part for part in details["loc"] if part != "[key]")
    problem = _problem_of(details, path, lines, kinds)
    return _said_by(variables, path, problem if problem.key else replace(problem, key=path))


def _problem_of(details: ErrorDetails, path: KeyPath, lines: FileLines, kinds: FileKinds) -> Problem:
    wrong = details.get("ctx", {}).get("error")
    value = details["input"]
    if isinstance(wrong, WrongError):
        inner = (*path, wrong.key) if wrong.key else path
        refused = wrong.refused
        what = f"{_key(path)}: {refused.what}" if path else refused.what
        return Problem(lines.find(inner, value), what, refused.why, refused.todo, inner)
    line = lines.find(path, value)
    match details["type"]:
        case "extra_forbidden":
            return Problem(line, f"{_key(path)} is no key", *_unknown(path, kinds))
        case "missing":
            return Problem(line, f"{_key(path)} is missing", "It has no default", _add(path, kinds))
        case "literal_error":
            choices = re.findall(r"'([^']*)'", str(details["ctx"]["expected"]))
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            todo = f"Write one of {', '.join(choices)}"
            return Problem(line, f"{_key(path)}: {shown} is no choice", _nearest_text(value, choices), todo)
        case kind:
            expected_type = KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"))
            if expected_type:
                return Problem(line, f"{_key(path)} has the wrong type", f"It is {expected_type}", "Write it so")
            return Problem(line, f"{_key(path)} is not allowed", details["msg"], "Change the value")


def _nearest_text(value: Any, choices: list[str]) -> str:
    return nearest(value, choices) if isinstance(value, str) else ""


def _unknown(path: KeyPath, kinds: FileKinds) -> tuple[str, str]:
    """Return why the key is unknown, and what to do. A key of that name in another section wins over a similar one in
    this section."""
    name = str(path[-1])
    elsewhere = [section for section, model in _models(kinds).items() if name in model.model_fields]
    if elsewhere:
        return f"It belongs to [{elsewhere[0]}]", "Move it there"
    model = _model(path[:-1], kinds)
    if f"{name}_env" in model.model_fields:
        return "A secret does not stand in this file", f"Write {name}_env or {name}_file, which name where it is"
    return nearest(name, model.model_fields), "Write a key that there is, or remove it"


def _models(kinds: FileKinds) -> Mapping[str, type[BaseModel]]:
    added = {name: model for kind in kinds.sections for name, model in kind.models.items()}
    return {**SECTIONS, "targets.NAME": Target, **added}


def _model(path: KeyPath, kinds: FileKinds) -> type[BaseModel]:
    if not path:
        return whole_form(kinds)
    if path[-1] == "tls":
        return ServeTls if path[0] == "serve" else TlsSection
    added = next((kind for kind in kinds.sections if kind.name == path[0]), None)
    return added.model_at(path) if added is not None else SECTIONS.get(str(path[0]), Target)


def _add(path: KeyPath, kinds: FileKinds) -> str:
    if len(path) == 1:
        is_named = f"{path[0]}.NAME" in _models(kinds) and path[0] not in _models(kinds)
        return f"Add the section [{path[0]}.NAME]" if is_named else f"Add the section [{path[0]}]"
    examples = {
        "name": '"hq"',
        "metastore": '"thrift://host:9083"',
        "warehouse": '"file:///data/dr"',
        "url": '"kafka://host:9092"',
    }
    return f"Add {path[-1]} = {examples.get(str(path[-1]), '…')} below [{_key(path[:-1])}]"


def _key(path: KeyPath) -> str:
    """Return the key as TOML writes it, a place in a list in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[\w-]+", part, re.ASCII)
            text += ("." if text else "") + (part if bare else f'"{part}"')
    return text
