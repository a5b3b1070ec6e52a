"""The table of statements: how each kind is written, what it does, which columns its rows have, and which executor
carries it out.

    Form(
        rule="show_targets",            # the grammar's; its parts are the fields of `kind`, in their order
        kind=ShowTargets,
        syntax="SHOW TARGETS",
        does="each target with its position",
        columns=("target", "position"),
        example="SHOW TARGETS",
    )

Help needs the table alone. Executors are imported when the first statement is carried out.
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
    """A row of the table of statements: one kind of statement. `example` is a whole statement."""

    rule: str
    kind: type
    syntax: str
    does: str
    columns: Sequence[str]
    example: str


@dataclass(frozen=True, slots=True)
class Executors:
    """The functions that carry statements out. `by_kind` has one for each class of statements. `foreign` are tried in
    turn for a statement that is for an engine; one that does not want the statement returns None. All raise `Refused`,
    `Unavailable` and `Broken` as the commands do."""

    by_kind: Mapping[type, Callable[[Any, Session], AnyResult]]
    foreign: tuple[Callable[[EngineStatement, Session], AnyResult | None], ...] = ()


NO_EXECUTORS = Executors({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Statements:
    """The part of the language that the kernel or a plugin gives. `grammar` has lark's rules of `forms`, over the names
    and terminals of the kernel's grammar. `executors` imports and returns what carries the statements out."""

    grammar: str = ""
    forms: tuple[Form, ...] = ()
    executors: Callable[[], Executors] = lambda: NO_EXECUTORS


NO_STATEMENTS = Statements()
