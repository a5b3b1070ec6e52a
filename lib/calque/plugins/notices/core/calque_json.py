"""The JSON form of notices that is calque's own (`schemas/notice-1.json`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from calque.model.names import TableName, unescape_path
from calque.plugins.notices.core.notice import (
    HistoryGap,
    Notice,
    PartitionsAdded,
    PartitionsAltered,
    PartitionsDropped,
    RowsInserted,
    SetDone,
    TableAltered,
    type_text,
)

VERSION = 1


def text_of(notice: Notice, source: str, at: str, at_target: Callable[[TableName], TableName]) -> bytes:
    """Return the notice as JSON in UTF-8. `at` is `source` or the target's name; `at_target` returns the name that a
    table has at the target."""
    return orjson.dumps(record_of(notice, source, at, at_target))


def record_of(notice: Notice, source: str, at: str, at_target: Callable[[TableName], TableName]) -> dict[str, Any]:
    occasion = notice.occasion
    table = occasion.table
    record: dict[str, Any] = {
        "notice": VERSION,
        "id": occasion.id,
        "type": type_text(notice),
        "source": source,
        "at": at,
        "database": table.database or None,
        "table": table.table or None,
        "was": None,
        "partitions": [],
        "event_id": occasion.event_id,
        "position": occasion.position,
        "published_at": occasion.published_at,
    }
    if table.table and (target_name := at_target(table)) != table:
        record["at_target"] = str(target_name)
    if occasion.found:
        record["found"] = True
    match notice:
        case PartitionsAdded() | PartitionsAltered() | PartitionsDropped() | RowsInserted():
            record["partitions"] = [values_of(name) for name in notice.partitions]
        case TableAltered(_, was):
            record["was"] = None if was is None else str(was)
        case SetDone(_, mark):
            record |= {"partition": dict(sorted(mark.partition.items())), "condition": mark.condition}
        case HistoryGap(_, first, last, cause):
            record["gap"] = {"from": first, "to": last, "cause": cause}
    return record


def values_of(partition: str) -> dict[str, str]:
    """Return the values of a partition's name by key, as the catalog has them, not escaped. Keys stand in lexical
    order."""
    pairs = [part.split("=", 1) for part in partition.split("/")]
    if len(pairs) > 1:
        pairs.sort()
    return {key: unescape_path(value) for key, value in pairs}
