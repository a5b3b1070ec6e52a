"""Live readers of rows at targets, while the source never stands still: law 1 and 2 of the design, on files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calque.sandbox import Metastore, MetastoreSettings
from deployments import Deployment
from rowers import RowReader, RowWriter

READS = int(os.environ.get("CALQUE_READS", "1000"))
SEED = int(os.environ.get("CALQUE_SEED", str(time.time_ns() % 100_000)))
SLOWEST = 0.15
"""Reads that each target gets a second, at the very least, times the machine's load."""
MODES = {"place": "", "whole": 'appends = "new_directory"\natomicity = "rows"'}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, Metastore]]:
    names = ["source", *MODES]
    with ThreadPoolExecutor(len(names)) as pool:
        started = pool.map(lambda name: Metastore.start(MetastoreSettings(version="3.1.3"), tmp_path / name), names)
        found = dict(zip(names, started, strict=True))
    yield found
    for server in found.values():
        server.stop()


class Live(Deployment):
    """A deployment whose targets differ in how content changes."""

    def text(self, source: Metastore) -> str:
        lines = super().text(source).splitlines()
        for mode, more in MODES.items():
            at = lines.index(f"[targets.{mode}]")
            lines[at + 1 : at + 1] = more.splitlines()
        return "\n".join(lines)


def test_readers_of_rows_see_only_what_the_source_had_and_in_its_order(
    servers: dict[str, Metastore], tmp_path: Path
) -> None:
    print(f"CALQUE_SEED={SEED}")
    deployment = Live(tmp_path, 1, servers["source"], {mode: servers[mode] for mode in MODES}, SEED)
    database = deployment.databases[0]
    readers = {mode: RowReader(servers[mode].uri, database) for mode in MODES}

    def note(event_id: int, rows: object) -> None:
        for reader in readers.values():
            reader.history.note(event_id, rows)  # type: ignore[arg-type]

    writer = RowWriter(servers["source"].uri, database, tmp_path / "data", SEED, note)
    for _ in range(40):
        writer.step()
    deployment.start()
    threads = [threading.Thread(target=reader.run, daemon=True) for reader in readers.values()]
    try:
        deployment.settle()
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60 + READS * SLOWEST
        while min(reader.counted for reader in readers.values()) < READS and time.monotonic() < until:
            writer.step()
            time.sleep(writer.rng.random() * 0.1)
        deployment.settle()
        for reader in readers.values():
            reader.stop.set()
        for thread in threads:
            thread.join()
        for mode, reader in readers.items():
            print(f"{mode}: {reader.counted} reads, {reader.changes} changes, of {len(writer.done)} at the source")
            said = [f"{mode} {problem}" for problem in reader.problems[:3]]
            assert not said, "\n".join([f"seed {SEED}", *said, *writer.done[-40:], deployment.tail()])
            assert reader.counted >= READS
            assert reader.changes > READS / 50
            for name in reader.history.states:
                assert reader.rows(name) == reader.history.states[name][-1][1], f"{mode} {name}"
        verified = deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        deployment.close()
