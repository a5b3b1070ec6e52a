"""A long backlog drained: millions of events that nobody replicated, applied to a real metastore (`data = "none"`).

The journal is written first, by `backlog.Backlog`, and its cost not counted. One process then takes the target through
it as `calque run` does, window by window, Spark's tasks included. The baseline are the calls alone that make the same
objects, in a bare loop by as many threads, at another database of the same metastore.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from backlog import DATABASE, Backlog
from rig import SOURCE, arguments, memory_mib, metastores, number, tell_machine

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.app import APP
from calque.core.events.decode import partitions_after, table_after
from calque.core.events.keys import keys_of
from calque.engine.failpoints import EFFECTS
from calque.engine.replica.replica import APPLIERS, Replica
from calque.engine.sides import told_states
from calque.engine.sides.sides import TargetSide
from calque.model.hive import Database, Table, is_partitioned
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.model.policy import TargetCapabilities
from calque.streams.spark_session import own_session
from calque.wiring.runtime import Runtime
from calque.wiring.wiring import Wiring

T = TypeVar("T")
LISTS = 5000
"""Partitions that the bare loop adds with one call."""
SAYS = 120
"""After so many looks at the memory it says how far it is."""
SAMPLE = 500
"""Objects whose numbers are compared."""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, events=100_000, objects=10_000, tables=100, window=0)
    parser.add_argument("--atomicity", choices=("listing", "rows"), default="listing", help=" ")
    parser.add_argument("--keep", metavar="DIR", help="keep the journal there, and use the one that is there")
    parser.add_argument("--measure", metavar="CONFIG", help="measure with this configuration, in this process")
    options = parser.parse_args(given)
    if options.measure:
        measure(Path(options.measure), options.window or options.events)
        return
    with metastores(2) as (root, (source, target)):
        tell_machine()
        folder = Path(options.keep).resolve() if options.keep else root
        shape = f"{options.events}-{options.objects}-{options.tables}"
        state = folder / f"state-{shape}"
        if not (state / "made").exists():
            backlog = Backlog(options.events, options.objects, options.tables, folder / f"warehouse-{shape}")
            backlog.fill(DeltaJournal(str(state / "journal")))
            (state / "made").touch()
        ours = root / "state"
        ours.mkdir()
        shutil.copytree(state / "journal", ours / "journal")
        config = root / "calque.toml"
        config.write_text(
            f'[source]\nname = "{SOURCE}"\nmetastore = "{source.uri}"\n[state]\npath = "{ours}"\n'
            f'[window]\nmax_events = {options.window or options.events}\n[targets.dr]\nmetastore = "{target.uri}"\n'
            f'warehouse = "{(root / "target").as_uri()}"\ndata = "none"\nstart = 0\n'
            f'atomicity = "{options.atomicity}"\n'
        )
        again = ["--measure", str(config), "--events", str(options.events), "--window", str(options.window)]
        subprocess.run([sys.executable, __file__, *again], check=True)
        verify(DeltaJournal(str(ours / "journal")), HiveCatalog(Client(target.uri), TargetCapabilities()))
        bare(target.uri)


# The replica


@dataclass
class Spent:
    """Seconds and calls by what they were for; several threads' seconds add up."""

    seconds: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def on(self, what: str, action: Callable[[], T]) -> T:
        begin = time.perf_counter()
        try:
            return action()
        finally:
            with self.lock:
                self.seconds[what] += time.perf_counter() - begin
                self.calls[what] += 1

    def timed(self, thing: T, name: Callable[[str], str]) -> T:
        """The thing, whose calls are timed under the names that their methods go by."""
        return cast(T, Timed(thing, self, name))


class Timed:
    def __init__(self, thing: object, spent: Spent, name: Callable[[str], str]) -> None:
        self._thing, self._spent, self._name = thing, spent, name

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._thing, method)
        return lambda *values, **named: self._spent.on(self._name(method), lambda: found(*values, **named))

    def __call__(self, *values: Any) -> Any:
        return self.__getattr__("__call__")(*values)


def measure(config: Path, window: int) -> None:
    """Take the target to the journal's end, and print how that went."""
    spent = Spent()
    state = Path(APP.load(config).state.path)
    wiring = Wiring(APP.load(config), Runtime(lambda: own_session(state)))
    own_session(state).sparkContext.parallelize(range(2), 2).count()
    source, side = wiring.only_source().side(), wiring.target("dr").side()
    lease = wiring.target("dr").lease()
    lease.attempt(wiring.target("dr").writer(""))
    lease.keep(lambda error: print(error, file=sys.stderr))
    upto = source.journal.last() or 0
    source = replace(source, journal=spent.timed(source.journal, lambda method: f"journal.{method}"))
    spread = spent.timed(wiring.target("dr").spread(), lambda _: "prepared by tasks")
    replica = Replica(source, timed_side(side, spent), lambda: 0, lambda: None, spread=spread)
    with peaks(spent) as peak:
        begin = time.perf_counter()
        spent.on("open", replica.open)
        hops, windows = 0, 0
        while replica.cursor < upto:
            done = replica.window(min(upto, replica.cursor + window))
            hops += sum(len(plan.hops) for plan in done.plans) if done else 0
            windows += 1
        seconds = time.perf_counter() - begin
    counts = told_states.counts(replica.tables)
    aside = sum(counts.values()) - counts["live"]
    replica.close()
    lease.release()
    print(f"{upto:,} events in {windows} windows: {seconds:.1f} s, {number(upto / seconds)} events/s; {hops:,} hops")
    print(f"{replica.epoch.epoch if replica.epoch else 0} epochs, {aside} tables not live")
    print(f"peak RSS, MiB: driver {peak[0]:,.0f}; with Spark's JVM and workers {peak[1]:,.0f} (PSS)")
    for what, total in sorted(spent.seconds.items(), key=lambda item: -item[1]):
        print(f"  {what:<28}{number(total):>9} s {spent.calls[what]:>9,} ×")


def timed_side(side: TargetSide, spent: Spent) -> TargetSide:
    def call(method: str) -> str:
        return f"call {method}" if method in EFFECTS["catalog"] else f"read {method}"

    catalog = spent.timed(side.catalog, call)
    return replace(side, catalog=catalog, ledger=spent.timed(side.ledger, lambda method: f"ledger.{method}"))


@contextmanager
def peaks(spent: Spent) -> Iterator[list[float]]:
    """Of this process, and of it with all its descendants, while the block runs. Says now and then how far it is."""
    found, over, begin = [0.0, 0.0], threading.Event(), time.perf_counter()

    def look() -> None:
        for tick in itertools.count():
            if over.wait(0.5):
                return
            status = Path("/proc/self/status").read_text()
            own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            found[0], found[1] = max(found[0], own / 1024), max(found[1], memory_mib(os.getpid())[1])
            if tick % SAYS == SAYS - 1:
                calls = sum(count for what, count in list(spent.calls.items()) if what.startswith("call "))
                print(
                    f"... {time.perf_counter() - begin:,.0f} s, {calls:,} calls, {own / 1024:,.0f} MiB",
                    file=sys.stderr,
                    flush=True,
                )

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(60)


# What must be there


def verify(journal: DeltaJournal, catalog: HiveCatalog) -> None:
    """The target has what the events leave, told one by one: all names, and the numbers of a sample."""
    left: dict[TableName, dict[str, EventId]] = {}
    last = journal.last() or 0
    for after in range(0, last, 200_000):
        for entry in journal.entries(Span(after, min(after + 200_000, last))):
            tell(entry, left)
    left.pop(TableName(DATABASE), None)
    assert {name.table for name in left} == set(catalog.tables(DATABASE))
    for name, objects in left.items():
        assert {*objects} - {""} == {*catalog.partition_names(name)}, name
    objects = [(name, partition) for name, objects in left.items() for partition in objects]
    sample = random.Random(1).sample(objects, min(SAMPLE, len(objects)))
    events = journal.events(left[name][partition] for name, partition in sample)
    for name, partition in sample:
        event = events[left[name][partition]]
        if partition:
            place = keys_of(event).partitions.index(partition)
            wanted, found = partitions_after(event)[place], catalog.partitions(name, [partition])[partition]
            same(wanted.parameters, found.parameters, f"{name} {partition}")
        else:
            there = catalog.table(name)
            same(table_after(event).parameters, there.parameters if there else None, str(name))
    print(f"verified: {len(objects):,} objects by name, {len(sample)} by their numbers", flush=True)


def tell(entry: Entry, left: dict[TableName, dict[str, EventId]]) -> None:
    keys, name = entry.keys, entry.keys.table
    assert name is not None
    match keys.kind:
        case EventKind.CREATE_TABLE:
            left[name] = {"": entry.event_id}
        case EventKind.DROP_TABLE:
            del left[name]
        case EventKind.RENAME_TABLE:
            assert keys.other is not None
            left[name] = left.pop(keys.other) | {"": entry.event_id}
        case EventKind.ALTER_TABLE:
            left[name][""] = entry.event_id
        case EventKind.ADD_PARTITIONS | EventKind.ALTER_PARTITIONS:
            left[name] |= dict.fromkeys(keys.partitions, entry.event_id)
        case EventKind.DROP_PARTITIONS:
            for partition in keys.partitions:
                del left[name][partition]
        case _:
            pass


def same(wanted: Mapping[str, str] | None, found: Mapping[str, str] | None, what: str) -> None:
    for key in ("numRows", "note"):
        assert (wanted or {})[key] == (found or {}).get(key), (what, key, wanted, found)


# The baseline


def bare(uri: str) -> None:
    """Make the objects that are there now at another database, with nothing but the calls."""
    client = Client(uri)
    catalog = HiveCatalog(client, TargetCapabilities())
    found = dict(catalog.headers(DATABASE, catalog.tables(DATABASE)))
    parts = {
        name: catalog.partitions(TableName(DATABASE, name), catalog.partition_names(TableName(DATABASE, name)))
        for name, table in found.items()
        if is_partitioned(table)
    }
    catalog.create_database(Database("bare"))

    def make(table: Table) -> int:
        catalog.create_table(replace(table, database="bare"))
        values = list(parts.get(table.name, {}).values())
        for start in range(0, len(values), LISTS):
            some = [replace(part, database="bare") for part in values[start : start + LISTS]]
            catalog.add_partitions(TableName("bare", table.name), some)
        return 1 + len(range(0, len(values), LISTS))

    begin = time.perf_counter()
    with ThreadPoolExecutor(APPLIERS) as pool:
        calls = sum(pool.map(make, found.values()))
    seconds = time.perf_counter() - begin
    objects = len(found) + sum(map(len, parts.values()))
    print(f"bare loop: {objects:,} objects, {calls:,} calls: {seconds:.1f} s", flush=True)


def test_a_backlog_is_drained() -> None:
    main(["--events", "60000", "--objects", "300", "--tables", "5"])


if __name__ == "__main__":
    main()
