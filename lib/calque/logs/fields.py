"""What a line of the log concerns: fields that whoever begins a piece of work sets once, for all lines from within it.

| field | is |
|---|---|
| `source`, `target` | whose part of the process it is |
| `window` | the window in hand, as `window_id` names it |
| `table`, `event`, `epoch` | what this line is about |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Value = str | int
KEY = "calque_fields"
"""The attribute of a record that has the fields of its line alone."""
CURRENT: ContextVar[Mapping[str, Value]] = ContextVar("calque log fields")
NOTHING: Mapping[str, Value] = {}
OF_WINDOWS = ("window",)


def window_id(target: str, epoch: int | None, after: int) -> str:
    """Names a window by its target, the epoch that it leads to (`epoch` is the one before, None where there is none),
    and the event behind which it begins: `dr-3-811`. One that is played again after a crash has the same name."""
    return f"{target}-{(epoch or 0) + 1}-{after}"


def current_fields() -> Mapping[str, Value]:
    return CURRENT.get(NOTHING)


@contextmanager
def log_fields(**fields: Value) -> Iterator[None]:
    """What is logged within has these fields too, on this thread."""
    token = CURRENT.set({**current_fields(), **fields})
    try:
        yield
    finally:
        CURRENT.reset(token)


def with_fields(work: Callable[P, R], **fields: Value) -> Callable[P, R]:
    """`work` that logs with these fields, on whatever thread it is called."""

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        with log_fields(**fields):
            return work(*arguments, **named)

    return call


def inherited(work: Callable[P, R]) -> Callable[P, R]:
    """`work` that logs, on another thread, with the fields of this moment."""
    return with_fields(work, **current_fields())


def beside_windows(work: Callable[P, R]) -> Callable[P, R]:
    """`work` that logs, on another thread, with the fields of this moment but those of the window in hand, which may be
    over before it is."""
    return with_fields(work, **{name: value for name, value in current_fields().items() if name not in OF_WINDOWS})


def about(**fields: Value) -> dict[str, Any]:
    """For `extra` of one line: what this line alone is about."""
    return {KEY: fields}
