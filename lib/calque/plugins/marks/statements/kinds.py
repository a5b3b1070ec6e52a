"""The parsed statements over done sets as values, and the columns of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.statements.statement import QualifiedTable

MARK_COLUMNS = ("event_id",)


@dataclass(frozen=True, slots=True)
class MarkSetDone:
    table: QualifiedTable
    partition: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShowSetsDone:
    table: QualifiedTable | None
    target: str | None
