"""The form of a line of the log: text for people, or one JSON object for programs."""

from __future__ import annotations

import json
import logging
import time
import traceback
from datetime import UTC, datetime
from typing import Any

from calque.errors import printable
from calque.logs.fields import KEY, current_fields


class TextFormatter(logging.Formatter):
    """A formatter for people; times are UTC. Characters that would steer a terminal, or begin a line that calque did
    not write, are shown as escapes."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, text: str = "%(asctime)s %(levelname)s %(name)s: %(message)s") -> None:
        super().__init__(text)
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging calls it so
        return "\n".join(map(printable, super().formatException(ei).splitlines()))


class JsonFormatter(logging.Formatter):
    """A formatter for programs: one JSON object a line, in ASCII, with `timestamp` (UTC), `level`, `logger`, `message`,
    `fields`, and `error` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message_of(record),
            "fields": {**current_fields(), **getattr(record, KEY, {})},
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            document["error"] = {
                "type": type(error).__name__,
                "message": str(error),
                "traceback": "".join(traceback.format_exception(error)),
            }
        return json.dumps(document, default=str)


def message_of(record: logging.LogRecord) -> str:
    """Return the message of `record`. Where a call's arguments do not fit its text, of which logging would write
    several lines to stderr, return the text and the arguments side by side."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - arguments may raise anything when they become text
        return f"{record.msg} {record.args!r}"
