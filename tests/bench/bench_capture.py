"""Events per second from a metastore's log into the journal, against a bare Thrift loop that reads the same events.

The events are one recorded message of 5 KB, put into the log by SQL. Capture alone runs (`jobs/capture.py`); it is
measured from its first append, so without the start of the process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from rig import SOURCE, Job, arguments, metastores, target, tell, tell_machine, tell_ratio, timed

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.app import APP
from calque.sandbox import Metastore

RECORDING = Path(__file__).parents[1] / "golden" / "events" / "hive-3.1-json.jsonl"
CAPTURE = Path(__file__).parents[2] / "jobs" / "capture.py"
PAGE = 1000
SECONDS = 300.0


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, events=100_000, runs=3).parse_args(given)
    with metastores(1) as (root, (source,)):
        log = HiveLog(Client(source.uri))
        after = log.current()
        size = fill(source, after, options.events)
        tell_machine()
        print(f"{options.events:,} events of {size:,} bytes")
        bare, captured, whole = [], [], []
        for number in range(options.runs):
            bare.append(options.events / timed(lambda: read_all(log, after, after + options.events)))
            rate, seconds = capture(root / f"run{number}", source, after, after + options.events)
            captured.append(rate)
            whole.append(seconds)
        baseline = tell("bare Thrift loop", bare, "events/s")
        figure = tell("capture, from its first append", captured, "events/s")
        tell("capture, process start to the last append", whole, "s")
        tell_ratio("capture / bare", figure / baseline)


def fill(source: Metastore, after: int, count: int) -> int:
    """Put `count` events into the log behind `after`; the bytes of each one's message."""
    row = next(row for row in map(json.loads, RECORDING.read_text().splitlines()) if 5000 <= len(row["message"]) < 6000)
    source.sql(
        'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME",'
        ' "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT") SELECT 1000000 + id, id, %s::int, %s::text, %s::text, %s::text,'
        " %s::text, %s::text, %s::text FROM generate_series(%s::int, %s::int) AS id",
        (
            int(time.time()),
            row["event_type"],
            row["cat_name"] or "hive",
            row["db_name"],
            row["table_name"],
            row["message"],
            row["message_format"],
            after + 1,
            after + count,
        ),
    )
    source.sql('UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = %s', (after + count + 1,))
    source.sql('ANALYZE "NOTIFICATION_LOG"')
    return len(row["message"])


def read_all(log: HiveLog, after: int, upto: int) -> None:
    while after < upto:
        after = log.read(after, PAGE)[-1].event_id


def capture(root: Path, source: Metastore, after: int, upto: int) -> tuple[float, float]:
    """Events per second between the first and the last append, and seconds from the start of the process."""
    job = Job(root, source, {"dr": target(source, root / "warehouse", "sales", "sales_dr")})
    wiring = APP.wiring(APP.load(str(job.config)))
    wiring.control.put("journal", {"source": SOURCE, "after": after})
    journal = DeltaJournal(str(wiring.state / "journal"))
    begin = time.perf_counter()
    with job.running(str(CAPTURE)):
        first: tuple[int, float] | None = None
        while True:
            last, now = journal.last(), time.perf_counter()
            if last is not None and first is None:
                first = last, now
            if last == upto:
                break
            if now > begin + SECONDS:
                raise TimeoutError(f"the journal ends at {last}\n{job.log.read_text()[-4000:]}")
            time.sleep(0.02)
        seen, moment = first or (after, begin)
        if seen == upto:
            raise ValueError("one append took all events: give more than one batch, 20,000")
        return (upto - seen) / (now - moment), now - begin


def test_capture_copies_the_log() -> None:
    main(["--events", "30000", "--runs", "1"])


if __name__ == "__main__":
    main()
