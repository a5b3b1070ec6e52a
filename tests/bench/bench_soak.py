"""What a process grows by that stays up: memory, threads, open files, and its state folder, under steady load.

One source, four targets, and a writer that makes so many changes a second over as many tables as it keeps: inserts,
overwrites, alterations, partitions added and dropped, tables made, renamed and dropped. What is kept, is kept for
`--kept` seconds, and `calque sweep` runs at intervals, as an operator has it run. Samples are told as they are taken;
in the end each figure's growth from the first third's median to the last third's.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import rig
from rig import Job, arguments, metastores, partition, plain_table, target, tell_machine

from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

DATABASE = "soaking"
TARGETS = 4
KEPT = 12
"""Tables that the writer keeps."""
SWEPT = 2
"""Samples between two sweeps."""
CONTENT = b"1,one,1.0\n" * 100


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, seconds=1800, every=60, changes=5, kept=300).parse_args(given)
    with metastores(2) as (root, (source, there)):
        tell_machine()
        kept = f'"{options.kept}s"'
        sections = {
            f"t{number}": (
                *target(there, root / "warehouse" / f"t{number}", DATABASE, f"soaked{number}"),
                f"grace = {kept}",
            )
            for number in range(TARGETS)
        }
        job = Job(root / "job", source, sections, "250ms", (f"retention = {kept}",))
        writer = Writer(HiveClient(source.uri), root / "source")
        with job.running() as process:
            for number in range(TARGETS):
                rig.wait_until(lambda at=f"soaked{number}": HiveClient(there.uri).catalog.database(at), 0.5)
            done = threading.Event()
            writing = threading.Thread(target=writer.write, args=(1 / options.changes, done), daemon=True)
            writing.start()
            found: list[Mapping[str, float]] = []
            begun = time.monotonic()
            while time.monotonic() - begun < options.seconds:
                time.sleep(options.every)
                if len(found) % SWEPT == SWEPT - 1:
                    job.command("sweep")
                found.append(sample(process.pid, job.root / "state", writer.steps))
                print("  ".join(f"{name} {rig.number(value)}" for name, value in found[-1].items()), flush=True)
            done.set()
            writing.join(60)
            code = process.poll()
            assert code is None, (code, job.log.read_text()[-4000:])
    third = max(len(found) // 3, 1)
    print(f"growth from the first third's median to the last third's, {len(found)} samples")
    for name in found[0]:
        first, last = (statistics.median(one[name] for one in part) for part in (found[:third], found[-third:]))
        print(f"  {name:<20}{rig.number(first):>12} -> {rig.number(last):>12}")


def sample(process: int, state: Path, steps: int) -> Mapping[str, float]:
    tree = rig.tree(process)
    rss, pss = rig.memory_mib(process)
    threads = files = 0
    for one in tree:
        with suppress(OSError):
            threads += len(list(Path(f"/proc/{one}/task").iterdir()))
            files += len(list(Path(f"/proc/{one}/fd").iterdir()))
    parts = {f"{part.name} KiB": size(part) / 1024 for part in sorted(state.iterdir())}
    fixed = {"changes": steps, "RSS MiB": rss, "PSS MiB": pss, "threads": threads, "open files": files}
    return {**fixed, "processes": len(tree), **parts}


def size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for one in path.rglob("*"):
        with suppress(OSError):
            total += one.stat().st_size if one.is_file() else 0
    return total


@dataclass
class Writer:
    """Goes round and round; the oldest table is dropped for each that is made."""

    client: HiveClient
    folder: Path
    steps: int = 0
    numbers: count[int] = field(default_factory=count)
    tables: deque[Table] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.client.create_database(Database(DATABASE, location=self.folder.as_uri()))
        for _ in range(KEPT):
            self.make()

    def write(self, pause: float, done: threading.Event) -> None:
        while not done.wait(pause):
            number = self.steps
            self.steps += 1
            table = self.tables[number % len(self.tables)]
            if number % 20 == 19:
                self.make()
            elif number % 20 == 9:
                self.rename()
            elif table.partition_keys:
                self.add_partition(table, number)
            else:
                self.insert(table, number)

    def make(self) -> None:
        number = next(self.numbers)
        name = f"t{number}"
        table = plain_table(DATABASE, name, self.folder / name, partitioned=number % 2 == 0)
        (self.folder / name).mkdir(parents=True)
        self.client.create_table(table)
        self.tables.append(table)
        if len(self.tables) > KEPT:
            gone = self.tables.popleft()
            self.client.drop_table(TableName(DATABASE, gone.name))
            assert gone.storage is not None
            shutil.rmtree(gone.storage.location.removeprefix("file://"), ignore_errors=True)

    def rename(self) -> None:
        table = self.tables[-1]
        name = f"r{next(self.numbers)}"
        self.client.alter_table(TableName(DATABASE, table.name), replace(self.now(table), name=name))
        self.tables[-1] = replace(table, name=name)

    def insert(self, table: Table, number: int) -> None:
        assert table.storage is not None
        path = Path(table.storage.location.removeprefix("file://")) / f"f{number}"
        rig.write_file(path, CONTENT)
        self.client.insert(TableName(DATABASE, table.name), [path.as_uri()])

    def add_partition(self, table: Table, number: int) -> None:
        assert table.storage is not None
        rig.write_file(Path(table.storage.location.removeprefix("file://")) / f"p={number}" / "f", CONTENT)
        self.client.add_partitions(TableName(DATABASE, table.name), [partition(table, str(number))])

    def now(self, table: Table) -> Table:
        found = self.client.catalog.table(TableName(DATABASE, table.name))
        assert found is not None
        return found


def test_growth_is_measured() -> None:
    main(["--seconds", "6", "--every", "2"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
