"""References to secret values, as `*_env` and `*_file` keys give them. Values themselves stand in no configuration.

A section that takes a password has

    password_env: SecretVariable = None
    password_file: SecretFile = None

and gets its one reference, or none, from `one_secret("password", self.password_env, self.password_file)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, ValidationInfo

from calque.config.checks import WrongError, base_folder, with_pydantic_errors
from calque.config.places import absolute
from calque.errors import Refused
from calque.model.secrets import FileSecret, Secret, VariableSecret

S = TypeVar("S", VariableSecret, FileSecret)


def variable_secret(name: object) -> VariableSecret | None:
    """None for an empty text. Raises `Refused` where the variable is not set."""
    if not isinstance(name, str):
        raise Refused("it has the wrong type", "It is the name of an environment variable", 'Write e.g. "PASSWORD"')
    if not name:
        return None
    return _readable(VariableSecret(name))


def file_secret(path: object, base: Path) -> FileSecret | None:
    """None for an empty text; a relative path is relative to `base`. Raises `Refused` where nothing can be read."""
    if not isinstance(path, str):
        raise Refused("it has the wrong type", "It is the path of a file", 'Write e.g. "/etc/calque/password"')
    if not path:
        return None
    return _readable(FileSecret(absolute(base / path)))


def one_secret(name: str, variable: VariableSecret | None, file: FileSecret | None) -> Secret | None:
    """The one that is given, if any. Raises `WrongError` where both are."""
    if variable is not None and file is not None:
        problem = f"{name} is given twice"
        raise WrongError(Refused(problem, f"{name}_env and {name}_file both give it", "Remove one"), f"{name}_file")
    return variable or file


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
