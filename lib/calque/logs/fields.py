"""The fields of a line of the log, which say what it concerns. A piece of work sets its fields once, and all lines from
within it have them.

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
    """Return the name of a window, such as `dr-3-811`: its target, the epoch that it leads to, and the event `after`
    which it begins. `epoch` is the number of the epoch before, None where there is none. A window that is played again
    after a crash has the same name."""
    return f"{target}-{(epoch or 0) + 1}-{after}"


def current_fields() -> Mapping[str, Value]:
    return CURRENT.get(NOTHING)


@contextmanager
def log_fields(**fields: Value) -> Iterator[None]:
    """Add the fields to all lines that this thread logs within the context, beside those that are set already."""
    token = CURRENT.set({**current_fields(), **fields})
    try:
        yield
    finally:
        CURRENT.reset(token)


def with_fields(work: Callable[P, R], **fields: Value) -> Callable[P, R]:
    """Return `work` as a function that logs with these fields, on the thread on which it is called."""

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        with log_fields(**fields):
            return work(*arguments, **named)

    return call


def inherited(work: Callable[P, R]) -> Callable[P, R]:
    """Return `work` as a function that logs, on another thread, with the fields of this moment."""
    return with_fields(work, **current_fields())


def beside_windows(work: Callable[P, R]) -> Callable[P, R]:
    """Return `work` as a function that logs, on another thread, with the fields of this moment but that of the window
    in hand, because the window may be over before the work is."""
    return with_fields(work, **{name: value for name, value in current_fields().items() if name not in OF_WINDOWS})


def about(**fields: Value) -> dict[str, Any]:
    """Return the argument `extra` of a logging call whose line has these fields in addition, and no other line has
    them."""
    return {KEY: fields}
