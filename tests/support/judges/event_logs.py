"""What Spark's own event logs say of a query: which offsets its batches had, and how many rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calque.model.names import EventId

PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """The batch of that number, with the events after `after` up to `upto`."""

    number: int
    after: EventId
    upto: EventId
    rows: int


def configure(folder: Path) -> Path:
    """A folder for `SPARK_CONF_DIR` by which Spark writes its event logs below `folder`."""
    settings, logs = folder / "spark-conf", folder / "spark-events"
    settings.mkdir()
    logs.mkdir()
    (settings / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file://{logs}\nspark.eventLog.rolling.enabled false\n"
        "spark.eventLog.compress false\n"
    )
    return settings


def batches(folder: Path, query: str, starting: EventId) -> Sequence[Batch]:
    """Those of a query of that name in all runs of which logs lie below `folder`, ascending. The first batch of all
    began after event `starting`."""
    return sorted({batch for log in (folder / "spark-events").iterdir() for batch in of_log(log, query, starting)})


def of_log(log: Path, query: str, starting: EventId) -> Iterator[Batch]:
    for line in log.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of a process that was killed
        if event["Event"] == PROGRESS and (progress := event["progress"])["name"] == query:
            [source] = progress["sources"]
            begin = offset(source["startOffset"])
            after = starting if begin is None else begin
            yield Batch(progress["batchId"], after, offset(source["endOffset"]) or after, source["numInputRows"])


def offset(told: object) -> EventId | None:
    found = json.loads(told) if isinstance(told, str) else told
    return None if found is None else int(found["event_id"])
