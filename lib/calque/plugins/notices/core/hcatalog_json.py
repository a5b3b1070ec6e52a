"""The JSON form of notices that HCatalog's message classes read (org.apache.hive.hcatalog.messaging.json).

Timestamps are seconds. A rename is an ALTER_TABLE under the new name, because HCatalog's messages have no place for the
old one. `done` and gaps, of which HCatalog knows nothing, keep calque's own JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from calque.plugins.notices.core.calque_json import values_of
from calque.plugins.notices.core.notice import (
    HistoryGap,
    Notice,
    NoticeType,
    PartitionsAdded,
    PartitionsDropped,
    RowsInserted,
    SetDone,
    type_of,
)

EVENTS: Mapping[NoticeType, str] = {
    NoticeType.CREATE_TABLE: "CREATE_TABLE",
    NoticeType.ALTER_TABLE: "ALTER_TABLE",
    NoticeType.DROP_TABLE: "DROP_TABLE",
    NoticeType.ADD_PARTITION: "ADD_PARTITION",
    NoticeType.ALTER_PARTITION: "ALTER_PARTITION",
    NoticeType.DROP_PARTITION: "DROP_PARTITION",
    NoticeType.INSERT: "INSERT",
    NoticeType.DONE: "PARTITION_DONE",
    NoticeType.GAP: "GAP",
}
MESSAGE_VERSION, MESSAGE_FORMAT = "0.1", "json"


def headers_of(notice: Notice) -> dict[str, str]:
    return {
        "HCAT_EVENT": EVENTS[type_of(notice)],
        "HCAT_MESSAGE_VERSION": MESSAGE_VERSION,
        "HCAT_MESSAGE_FORMAT": MESSAGE_FORMAT,
        "CALQUE_ID": notice.occasion.id,
    }


def texts_of(notice: Notice, server: str) -> list[bytes] | None:
    """Return the JSON text of each message of the notice: ALTER_PARTITION and INSERT become one message for each
    partition. Return None where calque's own JSON is to be sent. `server` is what the message gives as the metastore's
    address."""
    if isinstance(notice, SetDone | HistoryGap):
        return None
    occasion = notice.occasion
    common: dict[str, Any] = {
        "eventType": EVENTS[type_of(notice)],
        "server": server,
        "servicePrincipal": "",
        "db": occasion.table.database,
        "table": occasion.table.table,
        "tableType": None,
        "timestamp": int(datetime.fromisoformat(occasion.published_at).timestamp()),
    }
    match notice:
        case PartitionsAdded(_, partitions) | PartitionsDropped(_, partitions):
            return [orjson.dumps({**common, "partitions": [values_of(name) for name in partitions]})]
        case RowsInserted(_, partitions):
            keys = [values_of(name) for name in partitions] or [{}]
            return [orjson.dumps({**common, "files": [], "partKeyVals": values}) for values in keys]
        case _:
            partitions = getattr(notice, "partitions", ())
            if partitions:
                return [orjson.dumps({**common, "keyValues": values_of(name)}) for name in partitions]
            return [orjson.dumps(common)]
