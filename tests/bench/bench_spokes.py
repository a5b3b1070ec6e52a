"""Whether a target that does not answer holds up the others, and what four targets cost more than one.

Four targets take one table. Three are in one metastore, the fourth in another, which is silent (nothing is answered),
slow (each answer takes a fifth of a second) or killed (connections are refused) while the table changes, and let go on
afterwards. Lag is from the return of
the source's call to the moment at which a reader, who looks every 5 ms, sees the change at a target; that of the three
others is compared with the same run's while all are healthy. Rounds of both take turns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import rig
from rig import Job, arguments, metastores, percentile, plain_table, tell, tell_machine, tell_ratio, wait_until

from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.services.thriftproxy import Asked, asked

DATABASE = "spoken"
NAME = TableName(DATABASE, "events")
EVERY_SECONDS = 0.5
SETTLE_SECONDS = 5.0
WARM = 5
"""Changes that are not counted, while the process is new."""
OTHERS = ("one", "two", "three")
FOURTH = "four"
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, changes=40, runs=3, idle=20).parse_args(given)
    with metastores(3) as (root, servers), asked(servers[2].uri) as proxy:
        hub = Hub(root, *servers, proxy)
        tell_machine()
        hub.isolation(options.changes, options.runs)
        hub.cost(options.changes, options.idle)


@dataclass
class Hub:
    """A source with one table, three targets in one metastore, and a fourth in another."""

    root: Path
    source_server: Metastore
    server: Metastore
    fourth_server: Metastore
    proxy: Asked
    """Between calque and the fourth metastore."""
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.source, self.target = HiveClient(self.source_server.uri), HiveClient(self.server.uri)
        self.fourth = HiveClient(self.fourth_server.uri)
        folder = self.root / "source" / NAME.table
        rig.write_file(folder / "first", b"1,one,1.0\n")
        self.source.create_database(Database(DATABASE, location=folder.parent.as_uri()))
        self.source.create_table(plain_table(DATABASE, NAME.table, folder))

    def job(self, *names: str) -> tuple[Job, int]:
        """A process, and the number that its databases end with."""
        number = next(self.numbers)
        sections = {name: self.section(name, number) for name in names}
        return Job(self.root / f"job{number}", self.source_server, sections), number

    def section(self, name: str, number: int) -> Sequence[str]:
        return (
            f'metastore = "{self.proxy.uri if name == FOURTH else self.server.uri}"',
            f'warehouse = "{(self.root / f"wh{number}" / name).as_uri()}"',
            f'include = ["{DATABASE}.*"]',
            f'rename = {{ {DATABASE} = "{name}{number}" }}',
        )

    def isolation(self, changes: int, runs: int) -> None:
        job, number = self.job(*OTHERS, FOURTH)
        healthy: list[float] = []
        with job.running():
            self.settle(number, *OTHERS, FOURTH)
            self.lags(number, WARM)
            for what, (stop, go_on) in self.faults().items():
                before: list[float] = []
                during: list[float] = []
                for _ in range(runs):
                    before += self.lags(number, changes)
                    stop()
                    try:
                        during += self.lags(number, changes)
                    finally:
                        go_on()
                    mark = self.mark()
                    began = time.perf_counter()
                    caught_up = wait_until(lambda at=mark: self.mark_at(FOURTH, number) == at) - began
                    print(f"{FOURTH} {what}: caught up alone {caught_up:.1f} s after it was let go on")
                print(f"lag of the three others, {changes * runs * len(OTHERS)} changes in each state")
                for label, share in SHARES.items():
                    well = tell(f"  all healthy, {label}", [percentile(before, share)], "ms")
                    ill = tell(f"  {FOURTH} {what}, {label}", [percentile(during, share)], "ms")
                    tell_ratio(f"  {what} / healthy, {label}", ill / well)
                healthy += before
        for label, share in SHARES.items():
            tell(f"lag of healthy targets of four, {label}", [percentile(healthy, share)], "ms")

    def faults(self) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
        answering, ended = self.proxy.answering, threading.Event()

        def trickle() -> None:
            while not ended.wait(0.2):
                answering.set()
                time.sleep(0.002)
                answering.clear()
            answering.set()

        def slow() -> None:
            ended.clear()
            answering.clear()
            threading.Thread(target=trickle, daemon=True).start()

        return {
            "silent": (answering.clear, answering.set),
            "slow": (slow, ended.set),
            "killed": (self.fourth_server.kill, self.fourth_server.restart),
        }

    def cost(self, changes: int, idle: int) -> None:
        """Processor time for the same events, and of nothing."""
        spent = {}
        for names in ((OTHERS[0],), (*OTHERS, FOURTH)):
            job, number = self.job(*names)
            with job.running() as process:
                self.settle(number, *names)
                began = rig.processor_seconds(process.pid)
                time.sleep(idle)
                quiet = (rig.processor_seconds(process.pid) - began) / idle
                before, begin = rig.processor_seconds(process.pid), time.perf_counter()
                for _ in range(changes):
                    self.change()
                    time.sleep(EVERY_SECONDS)
                self.wait_for(number, self.mark(), *names)
                taken = time.perf_counter() - begin
                spent[len(names)] = (rig.processor_seconds(process.pid) - before - quiet * taken) / changes
                tell(f"idle processor, {len(names)} targets", [quiet * 100], "% of one")
                tell(f"processor for an event, {len(names)} targets", [spent[len(names)] * 1000], "ms")
        few, many = min(spent), max(spent)
        tell_ratio("processor for an event, four targets / one", spent[many] / spent[few])

    def settle(self, number: int, *names: str) -> None:
        self.wait_for(number, self.mark(), *names)
        time.sleep(SETTLE_SECONDS)

    def wait_for(self, number: int, mark: str, *names: str) -> None:
        for name in names:
            wait_until(lambda at=name: self.mark_at(at, number) == mark, 0.05)

    def lags(self, number: int, changes: int) -> list[float]:
        """Milliseconds of each change at each of the three."""
        found = []
        with ThreadPoolExecutor(len(OTHERS)) as pool:
            for _ in range(changes):
                tick = time.perf_counter()
                mark, returned = self.change()

                def visible(name: str, mark: str = mark) -> float:
                    return wait_until(lambda: self.mark_at(name, number) == mark)

                found += [(seen - returned) * 1000 for seen in pool.map(visible, OTHERS)]
                time.sleep(max(0.0, tick + EVERY_SECONDS - time.perf_counter()))
        return found

    def change(self) -> tuple[str, float]:
        mark, table = f"n{next(self.numbers)}", the_table(self.source, NAME)
        self.source.alter_table(NAME, replace(table, parameters={**(table.parameters or {}), "mark": mark}))
        return mark, time.perf_counter()

    def mark(self) -> str:
        return (the_table(self.source, NAME).parameters or {}).get("mark", "")

    def mark_at(self, name: str, number: int) -> str:
        client = self.fourth if name == FOURTH else self.target
        table = client.catalog.table(TableName(f"{name}{number}", NAME.table))
        return (table.parameters or {}).get("mark", "") if table is not None else "none"


def the_table(client: HiveClient, name: TableName) -> Table:
    found = client.catalog.table(name)
    assert found is not None
    return found


def test_isolation_is_measured() -> None:
    main(["--changes", "3", "--runs", "1", "--idle", "2"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
