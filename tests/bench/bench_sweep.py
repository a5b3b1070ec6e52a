"""How fast a sweep removes what one DROP of a table with many partitions left, and with how many calls.

    python tests/bench/bench_sweep.py --partitions 100000 --runs 3

The ledger is a Delta one, the directories lie on this machine's disk, the catalog is in memory. The baseline of the
same run removes directories with the same files by `shutil.rmtree`, one after the other.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.files import FileStorage
from calque.core.records.claims import claim_file, written
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.sweep import sweep_target
from calque.model.ledger import Epoch, ObjectRow
from calque.model.policy import Policy
from calque.ports.forwarding import ForwardingStorage
from support.memory.journal import MemoryJournal
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore

P = ParamSpec("P")
R = TypeVar("R")


class Counted:
    """Counts calls."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        self.calls[method] += 1
        return call(*arguments, **named)


def rows(side: TargetSide, root: Path, partitions: int) -> Iterator[ObjectRow]:
    """Of the table and its partitions, whose directories are made."""
    for number in range(-1, partitions):
        name = f"p={number}" if number >= 0 else ""
        location = f"file:{root}/d.db/t" + (f"/{name}" if name else "")
        claim = side.claims.new_claim("d.t", name, "1")
        directory = Path(location.removeprefix("file:"))
        directory.mkdir(parents=True)
        if name:
            (directory / "f").write_bytes(b"x")
        Path(claim_file(str(directory), 1)).write_bytes(written(claim))
        change = "add_partition" if name else "create_table"
        yield ObjectRow("d", "t", name, "1", 1, change, location, claim=claim.number)


def measured(partitions: int) -> tuple[float, float, Counter[str]]:
    """Seconds of the sweep and of the baseline, and the storage's calls."""
    with tempfile.TemporaryDirectory() as folder:
        root, counted = Path(folder) / "target", Counted()
        policy = Policy("dr", "hq", warehouse=f"file:{root}", grace=0.0)
        catalog = MemoryCatalog(MemoryMetastore(HIVE_4, "file:/managed"))
        ledger = DeltaLedger(f"{folder}/ledger")
        side = TargetSide.of(policy, catalog, ledger, ForwardingStorage(FileStorage(), counted))
        ledger.publish(Epoch(1, 1, 0, "2026-01-01T00:00:00+00:00", "bootstrap"), list(rows(side, root, partitions)), [])
        dropped = ObjectRow("d", "t", "", "1", 2, "drop_table")
        ledger.publish(Epoch(2, 2, 1, "2026-01-01T00:00:01+00:00", "window"), [dropped], [])
        bare = Path(folder) / "bare"
        shutil.copytree(root, bare)
        began = time.monotonic()
        swept = sweep_target(side, MemoryJournal(), time.time_ns())
        seconds = time.monotonic() - began
        assert len(swept.removed) == partitions + 1, (len(swept.removed), swept.kept[:3])
        began = time.monotonic()
        for directory in (bare / "d.db" / "t").iterdir():
            if directory.is_dir():
                shutil.rmtree(directory)
        return seconds, time.monotonic() - began, counted.calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    results = [measured(options.partitions) for _ in range(options.runs)]
    seconds, bare = ([result[index] for result in results] for index in (0, 1))
    ratios = [one / other for one, other in zip(seconds, bare, strict=True)]
    median = statistics.median(seconds)
    print(f"{options.partitions} partitions: {median:.1f} s ({min(seconds):.1f}-{max(seconds):.1f}), ", end="")
    print(f"{options.partitions / median:.0f}/s, {statistics.median(ratios):.1f} of rmtree alone; calls of storage:")
    print(", ".join(f"{method} {count}" for method, count in sorted(results[0][2].items())))


if __name__ == "__main__":
    main()
