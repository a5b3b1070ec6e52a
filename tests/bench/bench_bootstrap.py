"""Seconds of `calque run --until head` on an empty target, against a bare loop of the same reads and writes.

The baseline reads each table with its partitions, copies the files with `cp -r`, and creates the same at a database of
its own on the same target, one call after the other.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rig import Job, arguments, metastores, partition, plain_table, target, tell, tell_machine, tell_ratio, timed

from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

DATABASE = "wide"
CONTENT = b"x" * 1024
OPENS = re.compile(r"^(\S+ \S+) INFO .* opens at event", re.MULTILINE)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=200, partitions=50, runs=3).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source, there = HiveClient(source_server.uri), HiveClient(target_server.uri)
        tell_machine()
        made = timed(lambda: make(source, root / "source", options.tables, options.partitions))
        print(f"{options.tables} tables × {options.partitions} partitions × 1 file of 1 KB, made in {made:.0f} s")
        bare, files, whole, opened = [], [], [], []
        for number in range(options.runs):
            place = root / f"bare{number}"
            files.append(timed(lambda at=place: subprocess.run(["cp", "-r", root / "source", at], check=True)))
            bare.append(files[-1] + timed(lambda at=place: copy_objects(source, there, at)))
            section = target(target_server, root / f"warehouse{number}", DATABASE, f"copy{number}")
            job = Job(root / f"job{number}", source_server, {"dr": section})
            whole.append(timed(job.until_head))
            opened.append(time.time() - opened_at(job))
            require_same(source, there, f"copy{number}", options.partitions)
        baseline = tell("bare loop and cp -r", bare, "s")
        tell("  of it cp -r", files, "s")
        figure = tell("calque run --until head", whole, "s")
        since = tell('calque, from "opens at" to exit', opened, "s")
        tell_ratio("calque / bare", figure / baseline)
        tell_ratio('calque from "opens at" / bare', since / baseline)


def make(source: HiveClient, root: Path, tables: int, partitions: int) -> None:
    source.create_database(Database(DATABASE, location=root.as_uri()))
    for number in range(tables):
        name = f"t{number:04}"
        table = plain_table(DATABASE, name, root / name, partitioned=True)
        for value in range(partitions):
            folder = root / name / f"p={value}"
            folder.mkdir(parents=True)
            (folder / "data").write_bytes(CONTENT)
        source.create_table(table)
        source.add_partitions(TableName(DATABASE, name), [partition(table, str(value)) for value in range(partitions)])


def copy_objects(source: HiveClient, there: HiveClient, root: Path) -> None:
    """Every table and partition of the source, at the files in `root`."""
    there.create_database(Database(root.name, location=root.as_uri()))
    for name in source.catalog.tables(DATABASE):
        at = TableName(DATABASE, name)
        table = source.catalog.table(at)
        names = source.catalog.partition_names(at)
        parts = source.catalog.partitions(at, names)
        assert table is not None
        assert table.storage is not None
        moved = replace(table.storage, location=(root / name).as_uri())
        there.create_table(replace(table, database=root.name, storage=moved))
        rows = []
        for path, part in parts.items():
            assert part.storage is not None
            storage = replace(part.storage, location=(root / name / path).as_uri())
            rows.append(replace(part, database=root.name, storage=storage))
        there.add_partitions(TableName(root.name, name), rows)


def opened_at(job: Job) -> float:
    """When the target's replica was open, as the log says."""
    found = OPENS.search(job.log.read_text())
    assert found, job.log.read_text()
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()


def require_same(source: HiveClient, there: HiveClient, database: str, partitions: int) -> None:
    tables = there.catalog.tables(database)
    assert sorted(tables) == sorted(source.catalog.tables(DATABASE))
    assert all(len(there.catalog.partition_names(TableName(database, name))) == partitions for name in tables)


def test_a_bootstrap_is_measured() -> None:
    main(["--tables", "4", "--partitions", "5", "--runs", "1"])


if __name__ == "__main__":
    main()
