"""Ports that raise what no port says that it raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Defect:
    """Raises the error in place of each call of the method, as long as it is on."""

    method: str
    error: Exception
    on: bool = False

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        if self.on and method == self.method:
            raise self.error
        return call(*arguments, **named)
