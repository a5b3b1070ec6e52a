"""The references to secret values that `*_env` and `*_file` keys give. Values themselves stand in no configuration.

In a table of options any key may end so; one whose name says that it is a secret must.

A section that takes a password has

    password_env: SecretVariable = None
    password_file: SecretFile = None

and gets its one reference, or none, from `one_secret("password", self.password_env, self.password_file)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationInfo

from calque.config.places import absolute, has_login
from calque.config.pydantic_errors import WrongError, base_folder, with_pydantic_errors
from calque.errors import Refused
from calque.model.secrets import FileSecret, Options, Secret, VariableSecret

S = TypeVar("S", VariableSecret, FileSecret)
SECRET = re.compile(
    r"(^|\.)((password|passwd|pwd|passphrase|secret|token|credentials?|signature)$"
    r"|(secret|account|private|shared|encryption|master)\.(access\.)?key(\.|$)|key\.pem$|connection\.string$)",
    re.IGNORECASE,
)
"""The names of options whose values are secrets, in the libraries of storages, in Hadoop and in librdkafka."""


def variable_secret(name: object) -> VariableSecret | None:
    """Return the reference to the secret in the environment variable; None for an empty name. Raises `Refused` where
    the variable is not set."""
    if not isinstance(name, str):
        raise Refused("it has the wrong type", "It is the name of an environment variable", 'Write e.g. "PASSWORD"')
    if not name:
        return None
    return _readable(VariableSecret(name))


def file_secret(path: object, base: Path) -> FileSecret | None:
    """Return the reference to the secret in the file; None for an empty path. A relative path is relative to `base`.
    Raises `Refused` where the file can't be read."""
    if not isinstance(path, str):
        raise Refused("it has the wrong type", "It is the path of a file", 'Write e.g. "/etc/calque/password"')
    if not path:
        return None
    return _readable(FileSecret(absolute(base / path)))


def secret_options(options: object, base: Path) -> Options:
    """Return the options by their names without `_env` and `_file` at the end, with references in place of secrets.
    Raises `WrongError`, which quotes no value."""
    if not isinstance(options, Mapping):
        raise WrongError(Refused("it must be a table", todo='Write { "key" = "value" }'))
    values: dict[str, str | Secret] = {}
    for key, value in options.items():
        name = re.sub("_(env|file)$", "", key)
        try:
            if not isinstance(value, str):
                raise Refused(f'"{key}" must be text', todo="Put the value in quotes")
            if name in values:
                raise Refused(f'"{name}" is given twice', "A value comes from one place", "Remove one")
            values[name] = _option(key, name, value, base)
        except Refused as refused:
            raise WrongError(refused, key) from None
    return values


def _option(key: str, name: str, value: str, base: Path) -> str | Secret:
    secret = variable_secret(value) if key == f"{name}_env" else file_secret(value, base) if key != name else None
    if secret is not None:
        return secret
    todo = f'Write "{name}_env" with the name of an environment variable, or "{name}_file" with the path of a file'
    if key != name:
        raise Refused(f'"{key}" is empty', "It names where the value is", todo)
    if value and SECRET.search(key.replace("_", ".")):
        raise Refused(f'the value of "{key}" is a secret', "This file is for everybody's eyes", todo)
    if has_login(value):
        raise Refused(f'"{key}" has a password in it', "Addresses are shown in errors", todo)
    return value


def one_secret(name: str, variable: VariableSecret | None, file: FileSecret | None) -> Secret | None:
    """Return the reference that is given: to a variable or to a file; None where neither is. Raises `WrongError` where
    both are."""
    if variable is not None and file is not None:
        problem = f"{name} is given twice"
        raise WrongError(Refused(problem, f"{name}_env and {name}_file both give it", "Remove one"), f"{name}_file")
    return variable or file


def secret_files(sections: Iterable[BaseModel]) -> Iterator[FileSecret]:
    """Yield the files of secrets that the sections name in keys and in tables of options, keytabs among them, each
    once."""
    keys = [(key, value) for section in sections for key, value in section]
    values = [FileSecret(value) if key == "keytab" and value else value for key, value in keys]
    options = [option for value in values if isinstance(value, Mapping) for option in value.values()]
    yield from dict.fromkeys(value for value in (*values, *options) if isinstance(value, FileSecret))


def _readable(secret: S) -> S:
    try:
        secret.read()
    except Refused as refused:
        # It stands behind the key's name.
        raise Refused(refused.what[0].lower() + refused.what[1:], refused.why, refused.todo) from None
    return secret


def _file_secret(path: object, info: ValidationInfo) -> FileSecret | None:
    return with_pydantic_errors(lambda value: file_secret(value, base_folder(info)))(path)


SecretVariable = Annotated[VariableSecret | None, BeforeValidator(with_pydantic_errors(variable_secret))]
SecretFile = Annotated[FileSecret | None, BeforeValidator(_file_secret)]
