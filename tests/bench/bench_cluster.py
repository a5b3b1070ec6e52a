"""What one and two workers of a standalone cluster of Spark's do for calque's jobs, all on this machine.

Files of an INSERT are copied with the target's `bandwidth`, and without; then a window is prepared whose events are two
real changes of 24 tables, written into the log again and again. Seconds are those of Spark's jobs, by their event log.
Without `--kilobytes` nothing is copied. In the end a driver is killed, and the time is taken until the next one has
shown a change of the source, beside the time that one needs which follows a graceful end.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from rig import arguments, metastores, tell, tell_machine, tell_ratio, wait_until

from support.services.cluster_worlds import (
    BUSY,
    CAPTURE,
    FILES,
    THROTTLE,
    ClusterWorld,
    busy,
    cluster_world,
    log_of,
    newest_captured,
)
from support.services.spark_jobs import ClusterJob

SECONDS = 3600.0
WORKERS = 1, 2


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, kilobytes=256, megabytes_a_second=8, events=1_000_000, runs=3).parse_args(given)
    with metastores(1) as (root, (target,)), cluster_world(lambda *_: {"target-3": target}, root) as world:
        tell_machine()
        world.submit(CAPTURE)
        world.create()
        replicate(world, 2)
        plain = world.config.read_text()
        for throttle in (f'bandwidth = "{options.megabytes_a_second}MB"', ""):
            world.config.write_text(plain.replace(THROTTLE, throttle))
            if options.kilobytes:
                copies(world, options.kilobytes << 10, options.runs, throttle or "no bandwidth")
        windows(world, options.events)
        starts(world, options.runs)


def copies(world: ClusterWorld, file_bytes: int, runs: int, label: str) -> None:
    seconds: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for _ in range(runs):
        for workers in WORKERS:
            world.insert_files(file_bytes, overwrite=True)
            seconds[workers].append(replicate(world, workers).history().seconds("copy"))
    size = FILES * file_bytes / 1e6
    print(f"{FILES} files, {size:.0f} MB, {label}")
    one, two = (tell(f"  {workers} workers", seconds[workers], "s") for workers in WORKERS)
    tell_ratio("  two / one", two / one)


def windows(world: ClusterWorld, events: int) -> None:
    for workers in WORKERS:
        world.change_many_times(events // (2 * BUSY))
        newest = world.source.current()
        wait_until(lambda newest=newest: newest_captured(world) == newest, 2.0, SECONDS)
        began = time.perf_counter()
        job = replicate(world, workers)
        whole, prepared = time.perf_counter() - began, job.history().seconds("prepare")
        tell(f"a window of {events} events, {workers} workers", [prepared], "s")
        print(f"  {whole:.1f} s from the driver's start to its end")


def starts(world: ClusterWorld, runs: int) -> None:
    after: dict[str, list[float]] = {"a graceful end": [], "a kill": []}
    for number in range(runs):
        for label, taken in after.items():
            driver = world.replicate()
            shown_by(world, f"{label} {number} before")
            if label == "a kill":
                driver.kill()
            else:
                driver.process.send_signal(signal.SIGTERM)
                driver.process.wait(SECONDS)
            note = f"{label} {number}"
            change(world, note)
            began = time.perf_counter()
            driver = world.replicate()
            taken.append(until_shown(world, note) - began)
            driver.process.send_signal(signal.SIGTERM)
            driver.process.wait(SECONDS)
    for label, seconds in after.items():
        tell(f"first hop after {label} of the driver", seconds, "s")


def shown_by(world: ClusterWorld, note: str) -> None:
    change(world, note)
    until_shown(world, note)


def change(world: ClusterWorld, note: str) -> None:
    table = world.source.catalog.table(busy(0))
    assert table is not None
    world.source.alter_table(busy(0), replace(table, parameters={**(table.parameters or {}), "note": note}))


def until_shown(world: ClusterWorld, note: str) -> float:
    def shows() -> bool:
        table = world.target.catalog.table(busy(0))
        return table is not None and (table.parameters or {}).get("note") == note

    return wait_until(shows, 0.02, SECONDS)


def replicate(world: ClusterWorld, workers: int) -> ClusterJob:
    """`--until head` with an executor of one core on each of so many workers; the job, when it has ended."""
    job = world.replicate("--until", "head", settings={"spark.cores.max": str(workers)})
    assert job.process.wait(SECONDS) == 0, log_of(job)
    return job


def test_a_cluster_is_measured() -> None:
    main(["--kilobytes", "16", "--events", "50000", "--runs", "1"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
