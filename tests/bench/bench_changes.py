"""Bytes that calque copies when 1 % of a warehouse changed, against the bytes that changed.

Of all partitions one in a hundred changes: in turn it gets a file more (an append; the old one is not copied again) or
other content (an overwrite). A table is renamed and one altered besides, which moves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rig import Job, arguments, metastores, partition, plain_table, target, tell_machine, tell_ratio, timed, write_file

from calque.adapters.delta.ledger import DeltaLedger
from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

DATABASE = "wide"
PARTITIONS = 100


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=20, kib=64).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source = HiveClient(source_server.uri)
        tell_machine()
        make(source, root / "source", options.tables, options.kib << 10)
        section = target(target_server, root / "warehouse", DATABASE, "copy")
        job = Job(root / "job", source_server, {"dr": section})
        whole = timed(job.until_head)
        first = sum(epoch.bytes for epoch in ledger(job).epochs())
        last = ledger(job).epochs()[-1].epoch
        changed = change(source, root / "source", options.tables, options.kib << 10)
        again = timed(job.until_head)
        after = [epoch for epoch in ledger(job).epochs() if epoch.epoch > last]
        moved = sum(epoch.bytes for epoch in after)
        print(f"{options.tables} tables × {PARTITIONS} partitions: {first:,} bytes, {whole:.1f} s with the start")
        print(f"{changed:,} bytes changed ({changed / first:.2%}): {moved:,} copied, {again:.1f} s with the start")
        tell_ratio("copied / changed", moved / changed)


def ledger(job: Job) -> DeltaLedger:
    return DeltaLedger(str(job.root / "state" / "ledgers" / "dr"))


def make(source: HiveClient, root: Path, tables: int, size: int) -> None:
    source.create_database(Database(DATABASE, location=root.as_uri()))
    for number in range(tables):
        table = plain_table(DATABASE, f"t{number:04}", root / f"t{number:04}", partitioned=True)
        for value in range(PARTITIONS):
            write_file(root / table.name / f"p={value}" / "data", os.urandom(size))
        source.create_table(table)
        source.add_partitions(TableName(DATABASE, table.name), [partition(table, str(at)) for at in range(PARTITIONS)])


def change(source: HiveClient, root: Path, tables: int, size: int) -> int:
    """How many bytes are new."""
    for number in range(tables):
        name = TableName(DATABASE, f"t{number:04}")
        folder = root / name.table / f"p={number % PARTITIONS}"
        write_file(folder / "more", os.urandom(size))
        if number % 2:
            (folder / "data").unlink()
        source.insert(name, [str(folder / "more")], values=(str(number % PARTITIONS),), replace=bool(number % 2))
    renamed, altered = (source.catalog.table(TableName(DATABASE, name)) for name in ("t0000", "t0001"))
    assert renamed is not None
    assert altered is not None
    source.alter_table(TableName(DATABASE, "t0000"), replace(renamed, name="other"))
    parameters = {**(altered.parameters or {}), "comment": "other"}
    source.alter_table(TableName(DATABASE, "t0001"), replace(altered, parameters=parameters))
    return tables * size


def test_bytes_of_a_change_are_measured() -> None:
    main(["--tables", "2", "--kib", "1"])


if __name__ == "__main__":
    main()
