"""The table of statements: how each kind is written, what it does, which columns its rows have, and who carries it out.

    Form(
        rule="show_targets",            # the grammar's; its parts are the fields of `kind`, in their order
        kind=ShowTargets,
        syntax="SHOW TARGETS",
        does="each target with its position",
        columns=("target", "position"),
        example="SHOW TARGETS",
    )

Help needs the table alone. What carries statements out is loaded when the first one is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calque.statements.result import AnyResult
    from calque.statements.session import Session
    from calque.statements.statement import EngineStatement


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One kind of statement. `example` is a whole one."""

    rule: str
    kind: type
    syntax: str
    does: str
    columns: Sequence[str]
    example: str


@dataclass(frozen=True, slots=True)
class Executors:
    """What carries statements out: those of a class, and those that are nobody's own (`foreign`), which gives None for
    one that is for somebody else. All raise `Refused`, `Unavailable` and `Broken` as the commands do."""

    by_kind: Mapping[type, Callable[[Any, Session], AnyResult]]
    foreign: tuple[Callable[[EngineStatement, Session], AnyResult | None], ...] = ()


NO_EXECUTORS = Executors({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Statements:
    """What the kernel, or a plugin, says of the language. The rules of `grammar` are lark's: those of `forms`, over the
    names and terminals of the kernel's grammar."""

    grammar: str = ""
    forms: tuple[Form, ...] = ()
    executors: Callable[[], Executors] = lambda: NO_EXECUTORS


NO_STATEMENTS = Statements()
