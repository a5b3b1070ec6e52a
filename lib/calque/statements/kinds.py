"""The kernel's parsed statements as values, and the columns of their rows."""

from __future__ import annotations

from dataclasses import dataclass

TARGET_COLUMNS = (
    "target",
    "state",
    "position",
    "lag_events",
    "lag_seconds",
    "epoch",
    "live",
    "unknown",
    "reading",
    "staging",
    "waiting",
    "quarantined",
    "bridges",
    "last_error",
)
TABLE_COLUMNS = ("table", "at_target", "state", "shows", "since_event", "reason")
HELP_COLUMNS = ("statement", "does")


@dataclass(frozen=True, slots=True)
class ShowTargets:
    pass


@dataclass(frozen=True, slots=True)
class ShowTables:
    target: str
    pattern: str | None


@dataclass(frozen=True, slots=True)
class ShowEpochs:
    target: str | None


@dataclass(frozen=True, slots=True)
class UseDatabase:
    database: str


@dataclass(frozen=True, slots=True)
class Help:
    """The statement `HELP`. `topic` is the beginning of the statements that are meant; None for all."""

    topic: str | None
