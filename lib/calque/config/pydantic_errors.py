"""The passage between checks and pydantic: a `Refused` on its way out, and the folder of the file on its way in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationInfo

from calque.errors import Refused

T = TypeVar("T")


class WrongError(ValueError):
    """A `Refused` on its way through pydantic, which collects ValueErrors. `key` is the key inside a table that is
    wrong."""

    def __init__(self, refused: Refused, key: str = "") -> None:
        super().__init__(str(refused))
        self.refused, self.key = refused, key


def with_pydantic_errors(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return `function`, with its `Refused` as the error that pydantic collects."""

    def call(value: Any) -> T:
        try:
            return function(value)
        except Refused as refused:
            raise WrongError(refused) from None

    return call


def base_folder(info: ValidationInfo) -> Path:
    """Return the folder to which relative paths of the configuration are relative."""
    return Path(info.context["base"]) if info.context else Path.cwd()
