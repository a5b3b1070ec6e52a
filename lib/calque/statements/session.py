"""What statements are carried out with: the configured world, and what earlier statements said."""

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
    """What a plugin keeps for a session; made without arguments, ended with the session."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Kept)


def say_nothing(_text: str) -> None:
    pass


def log_note(text: str) -> None:
    LOG.warning("%s", text)


@dataclass(slots=True)
class Session:
    """One person's, or one connection's. `target` is what statements mean that name none; `database` is the one of
    names without one, from `USE`."""

    wiring: Wiring
    target: str | None = None
    database: str | None = None
    report: Callable[[str], None] = field(default=say_nothing)
    """Shows how far a long statement is, in place of what it showed before."""
    note: Callable[[str], None] = field(default=log_note)
    """Takes what a person should know of a statement that was carried out, such as a key that changed nothing."""
    _kept: dict[type[Kept], Kept] = field(default_factory=dict)

    def kept(self, kind: type[T]) -> T:
        """The session's only value of the class, the same for all statements."""
        value = self._kept.get(kind)
        if not isinstance(value, kind):
            value = self._kept[kind] = kind()
        return value

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()

    def only_target(self, name: str | None) -> str:
        """The named target, else the session's, else the only one. Raises `Refused`."""
        config = self.wiring.config
        config.require_source()
        chosen = name or self.target
        targets = config.select([chosen]) if chosen else config.own_targets()
        if len(targets) == 1:
            return targets[0]
        why = f"There are {', '.join(targets)}" if targets else "The configuration has none"
        raise Refused("No target is named", why, "Write AT and one of them")


def named(table: QualifiedTable, session: Session) -> TableName:
    """Without a database it is in the session's, else in `default`, as for Hive."""
    return table_name(table.database or session.database or "default", table.table)
