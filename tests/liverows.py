"""Readers of rows at two targets, one in each mode of changing content, while a source never stands still."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from deployments import Deployment
from rowers import RowReader, Rows, RowWriter

MODES = {"place": "", "whole": 'appends = "new_directory"\natomicity = "rows"'}
PATIENCE = 0.4
"""Seconds for a read, at most: a machine with much else to do is slow, and no reason to fail."""


@contextmanager
def servers(root: Path) -> Iterator[Mapping[str, Metastore]]:
    names = ["source", *MODES]
    with ThreadPoolExecutor(len(names)) as pool:
        started = pool.map(lambda name: Metastore.start(MetastoreSettings(version="3.1.3"), root / name), names)
        found = dict(zip(names, started, strict=True))
    try:
        yield found
    finally:
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


def live(root: Path, reads: int, seed: int) -> None:
    """Until each target was read that often, with the same id before and after."""
    print(f"CALQUE_SEED={seed}")
    with servers(root) as found:
        deployment = Live(root, 1, found["source"], {mode: found[mode] for mode in MODES}, seed)
        try:
            watch(deployment, found, reads, seed)
        finally:
            deployment.close()


def watch(deployment: Deployment, found: Mapping[str, Metastore], reads: int, seed: int) -> None:
    database = deployment.databases[0]
    readers = {mode: RowReader(found[mode].uri, database) for mode in MODES}

    def note(event_id: int, rows: Mapping[TableName, Rows]) -> None:
        for reader in readers.values():
            reader.history.note(event_id, rows)

    writer = RowWriter(found["source"].uri, database, deployment.root / "data", seed, note)
    for _ in range(4):
        writer.create()
    for _ in range(40):
        writer.step()
    deployment.start()
    deployment.settle(timeout=300)
    threads = [threading.Thread(target=reader.run, daemon=True) for reader in readers.values()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 60 + reads * PATIENCE
    while min(reader.counted for reader in readers.values()) < reads and time.monotonic() < until:
        writer.step()
        time.sleep(writer.rng.random() * 0.1)
    deployment.settle(timeout=300)
    for reader in readers.values():
        reader.stop.set()
    for thread in threads:
        thread.join()
    for mode, reader in readers.items():
        print(f"{mode}: {reader.counted} reads, {reader.changes} changes, of {len(writer.done)} at the source")
        said = [f"{mode} {problem}" for problem in reader.problems[:3]]
        assert not said, "\n".join([f"CALQUE_SEED={seed}", *said, *writer.done[-40:], deployment.tail()])
        assert reader.counted >= reads
        assert reader.changes > 20
        for name in reader.history.states:
            assert reader.rows(name) == reader.history.states[name][-1][1], f"{mode} {name}"
    verified = deployment.calque("verify", "--data", "checksum")
    assert verified.returncode == 0, verified.stdout + verified.stderr
