"""The session in which statements are carried out: the configured world, and what earlier statements said."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from calque.errors import Refused
from calque.model.names import TableName, table_name
from calque.statements.statement import QualifiedTable
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)


class Kept(Protocol):
    """A value that a plugin keeps for a session. It is made without arguments when it is first asked for, and closed
    with the session."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Kept)


def say_nothing(_text: str) -> None:
    pass


def log_note(text: str) -> None:
    LOG.warning("%s", text)


@dataclass(slots=True)
class Session:
    """The session of one person or one connection. `target` is the target of statements that name none; `database` is
    that of names without one, from `USE`."""

    wiring: Wiring
    target: str | None = None
    database: str | None = None
    report: Callable[[str], None] = field(default=say_nothing)
    """Show how far a long statement is, in place of what was shown before."""
    note: Callable[[str], None] = field(default=log_note)
    """Take what a person should know of a statement that was carried out, such as a key that changed nothing."""
    _kept: dict[type[Kept], Kept] = field(default_factory=dict)

    def kept(self, kind: type[T]) -> T:
        """Return the session's only value of the class `kind`, made when it is first asked for."""
        value = self._kept.get(kind)
        if not isinstance(value, kind):
            value = self._kept[kind] = kind()
        return value

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()

    def only_target(self, name: str | None) -> str:
        """Return the named target, else the session's, else the configuration's only one. Raises `Refused` for an
        unknown target, and where none is named and there are several or none."""
        config = self.wiring.config
        config.require_source()
        chosen = name or self.target
        targets = config.select([chosen]) if chosen else config.own_targets()
        if len(targets) == 1:
            return targets[0]
        why = f"There are {', '.join(targets)}" if targets else "The configuration has none"
        raise Refused("No target is named", why, "Write AT and one of them")


def named(table: QualifiedTable, session: Session) -> TableName:
    """Return the table's full name. A name without a database is in the session's, else in `default`, as for Hive."""
    return table_name(table.database or session.database or "default", table.table)
