"""How large history is, how long it takes to keep it, and how long three audit queries take over it.

One target with 2,000 tables follows a source with 5 million events a day, most of them of few tables; each second it
publishes an epoch with a hop for every table that had events. All of it is in history but the last half hour.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from rig import arguments, tell, tell_machine, timed

from calque.adapters.delta.columns import EPOCHS, OBJECTS
from calque.adapters.delta.snapshot import SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.app import APP
from calque.core.events.rows import SCHEMA
from calque.plugins.audit.wiring import history_of_source, history_of_target, keep_epochs, keep_events
from calque.statements.session import Session
from calque.wiring.wiring import Wiring

BEGIN, PER_SECOND, TABLES, SEED = 1_700_000_000, 58, 2_000, 7
KINDS = ("add_partitions", "insert", "alter_partitions", "facet", "alter_table", "drop_partitions")
QUERIES = {
    "what a table showed at a time": (
        "SELECT event_id, changes, published_at FROM calque.hops WHERE target = 'dr' AND database_name = 'db3' "
        "AND table_name = 't3' AND published_at <= TIMESTAMP '2023-11-15 03:12' ORDER BY published_at DESC LIMIT 1"
    ),
    "events passed over for a table, and why": (
        "SELECT why, count(*) FROM calque.events WHERE target = 'dr' AND database_name = 'db3' AND table_name = 't3' "
        "AND fate = 'passed_over' GROUP BY why ORDER BY 2 DESC LIMIT 10"
    ),
    "lag p95 for each table and hour": (
        "SELECT database_name, table_name, date_trunc('hour', published_at) AS hour, "
        "quantile_cont(lag_seconds, 0.95) AS p95 FROM calque.lag GROUP BY ALL ORDER BY p95 DESC LIMIT 20"
    ),
}


def record(folder: Path, events: int) -> None:
    """The journal and the ledger, in pieces of a file each, as if nothing had been forgotten."""
    numbers = np.random.default_rng(SEED)
    journal = RangedTable(str(folder / "state/journal"), SCHEMA, ("journal",))
    ledger = folder / "state/ledgers/dr"
    objects = RangedTable(str(ledger / "objects"), OBJECTS)
    epochs = RangedTable(str(ledger / "epochs"), EPOCHS, ("epoch",))
    step = PER_SECOND * 10_000
    for first in range(1, events + 1, step):
        ids = np.arange(first, min(first + step, events + 1))
        rank = numbers.zipf(1.3, len(ids)) % TABLES
        epoch = (ids - 1) // PER_SECOND + 1
        rows = {
            "event_id": ids,
            "event_time": BEGIN + epoch,
            "event_type": np.array([kind.upper() for kind in KINDS])[rank % len(KINDS)],
            "kind": np.array(KINDS)[numbers.integers(0, len(KINDS), len(ids))],
            "key_database": np.char.add("db", (rank % 50).astype(str)),
            "key_table": np.char.add("t", rank.astype(str)),
        }
        add(journal, filled(rows, SCHEMA), {"journal": int(ids[-1])})
        backwards = np.stack([epoch, rank])[:, ::-1]
        last = len(ids) - 1 - np.unique(backwards, axis=1, return_index=True)[1]
        hops = {
            "epoch": epoch[last],
            "database": rows["key_database"][last],
            "table": rows["key_table"][last],
            "partition": np.full(len(last), "ds=2023-11-15"),
            "incarnation": np.full(len(last), "17"),
            "event_id": ids[last],
            "change": np.full(len(last), "add_partitions"),
        }
        table = filled(hops, OBJECTS)
        sizes = numbers.integers(1 << 20, 1 << 28, len(last))
        files = pa.array([[{"path": f"part-{size}", "size": int(size)}] for size in sizes], OBJECTS.field("files").type)
        add(objects, table.set_column(OBJECTS.names.index("files"), "files", files), {})
        each = np.unique(epoch)
        times = [datetime.fromtimestamp(BEGIN + int(one) + 1.234, UTC) for one in each]
        published = [one.isoformat(timespec="milliseconds") for one in times]
        digests = [numbers.bytes(32).hex() for _ in each]
        add(
            epochs,
            filled(
                {"epoch": each, "event_id": each * PER_SECOND, "published_at": published, "digest": digests}, EPOCHS
            ),
            {"epoch": int(each[-1])},
        )


def filled(columns: dict[str, object], schema: pa.Schema) -> pa.Table:
    """The columns, and others that are empty."""
    length = len(next(iter(columns.values())))
    arrays = []
    for field in schema:
        nothing = pa.array([[]] * length, field.type) if pa.types.is_list(field.type) else pa.nulls(length, field.type)
        arrays.append(pa.array(columns[field.name], field.type) if field.name in columns else nothing)
    return pa.table(arrays, schema=schema)


def add(table: RangedTable, rows: pa.Table, marks: dict[str, int]) -> None:
    files = table.write([rows])
    table.commit(lambda _: SnapshotChange(add=files, marks=marks))


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, events=10_000_000, turns=3).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        record(folder, options.events)
        file = folder / "calque.toml"
        file.write_text(
            '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[state]\nhistory = "36500d"\n'
            '[targets.dr]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
        )
        wiring = APP.wiring(APP.load(file))
        ledger = wiring.ledger("dr")
        before = options.events // PER_SECOND - 1800
        source, target = wiring.only_source(), wiring.target("dr")
        tell("keeping the events", [timed(lambda: keep_events(source, source.side(), 0))], "s")
        tell("keeping hops and epochs", [timed(lambda: keep_epochs(target, before, time.time_ns()))], "s")
        ledger.forget(before)
        source.journal().forget((before - 1) * PER_SECOND)
        millions = options.events / 1e6
        for what, table in (
            ("events", history_of_source(source).table),
            ("hops", history_of_target(target).hops),
            ("epochs", history_of_target(target).epochs),
        ):
            files = table.snapshot().files
            tell(f"history of {what}, for a million events", [sum(one.size for one in files) / 1e6 / millions], "MB")
            tell(f"rows of {what}, for a million events", [sum(one.rows for one in files) / millions], "rows")
        for what, text in QUERIES.items():
            tell(what, [timed(partial(ask, text, wiring)) for _ in range(options.turns)], "s")


def ask(text: str, wiring: Wiring) -> None:
    """All rows of the statement, which has some."""
    for _, result in APP.language().run(text, Session(wiring)):
        assert list(result.rows), text


def test_the_audit_is_measured() -> None:
    main(["--events", "200000", "--turns", "1"])


if __name__ == "__main__":
    main()
