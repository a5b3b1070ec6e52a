"""The parsed statement `SHOW VERSIONS OF` as a value, and the columns of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from calque.statements.statement import QualifiedTable

VERSION_COLUMNS = ("version", "from_event", "event_id", "published_at")


@dataclass(frozen=True, slots=True)
class ShowVersions:
    table: QualifiedTable
    target: str | None
