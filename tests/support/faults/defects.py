"""Ports that raise what no port says that it raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Defect:
    """Raises the error in place of each call of the method whose arguments `about` chooses, as long as it is on."""

    method: str
    error: Exception
    on: bool = False
    about: Callable[[tuple[Any, ...]], bool] = lambda _: True
    met: int = 0
    """How often it was raised."""

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if self.on and method == self.method and self.about(arguments):
            self.met += 1
            raise self.error
        return call(*arguments, **named)
