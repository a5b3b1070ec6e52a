"""A world on real directories, in which calque dies where it is told to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from calque.adapters.files.storage import FileStorage
from calque.adapters.memory.metastore import HIVE_3
from calque.core.layout import join, place
from calque.engine.capture import Capture, Gatherer
from calque.engine.failpoints import guard
from calque.model.files import Listing
from calque.model.policy import Policy
from calque.ports import Copied, CopyTask
from worlds import Died, World


class Disk(FileStorage):
    """Local directories with what a world's storage has besides. `between` is called after every file that was copied
    or published; `moved` counts bytes, by their source."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str, str], None] = lambda _call, _about: None
        self.between: Callable[[str], None] = lambda _: None
        self.changes = 0
        self.moved: list[tuple[str, int]] = []

    def copy(self, tasks: Sequence[CopyTask], progress: Callable[[Copied], None] | None = None) -> Sequence[Copied]:
        results = []
        for task in tasks:
            [copied] = super().copy([task], progress)
            self.changes += 1
            if copied.bytes_moved:
                self.moved.append((task.source, copied.bytes_moved))
            results.append(copied)
            self.between("storage.copy.file")
        return results

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        for rename in renames:
            super().publish([rename])
            self.changes += 1
            self.between("storage.publish.file")

    def write(self, path: str, content: bytes) -> None:
        super().write(path, content)
        self.changes += 1

    def remove(self, locations: Sequence[str]) -> None:
        super().remove(locations)
        self.changes += 1

    def contents(self, location: str) -> Sequence[tuple[str, bytes]]:
        found: Listing = self.list([location])[location]
        root = Path(place(location).path)
        return [(file.path, (root / file.path).read_bytes()) for file in found.files]

    @property
    def copied(self) -> int:
        return sum(size for _, size in self.moved)


def files_below(location: str) -> list[str]:
    """Every file, hidden ones too, by its full path."""
    return sorted(os.path.join(at, name) for at, _, names in os.walk(place(location).path) for name in names)


class Death:
    """Dies at the hit number `at`, or at the `left`-th hit of `name` from now, once; `hits` are the names passed."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.name, self.left = at, "", 0
        self.hits: list[str] = []

    def __call__(self, name: str) -> None:
        self.hits.append(name)
        self.left -= name == self.name
        if len(self.hits) - 1 == self.at or (name == self.name and self.left == 0):
            raise Died


class DiskWorld(World):
    """Metastores in memory, files on a disk, failpoints around every port. Source tables are external: nobody but the
    test moves files."""

    def __init__(self, root: Path, death: Death, **policy: object) -> None:
        self.root = f"file:{root}"
        self.disk = Disk()
        self.disk.between = death
        wanted = Policy("dr", "hq", include=("d*.*",), warehouse=f"{self.root}/target", grace=0.0)
        super().__init__(1, HIVE_3, replace(wanted, **policy), storage=self.disk, root=self.root)  # type: ignore[arg-type]
        self.clock.now = time.time_ns() + 10**12
        source, side = self.source_side, self.side
        self.source_side = replace(
            source, journal=guard(self.journal, "journal", death), evidence=guard(self.evidence, "evidence", death)
        )
        self.side = replace(
            side,
            catalog=guard(side.catalog, "catalog", death),
            ledger=guard(side.ledger, "ledger", death),
            storage=guard(side.storage, "storage", death),
        )
        self.gatherer = Gatherer(self.source_side, self.side.admission.takes)
        self.capture = Capture(self.source_side, self.begin, self.gatherer)
        self.replica = self.new_replica()
        self.open()

    def restart_replica(self, ledger: object) -> None:
        del ledger
        self.background.waiting.clear()
        self.replica = self.new_replica()
        self.open()

    def go_on(self) -> None:
        """Capture, reads, a window; who dies is started again."""
        try:
            self.capture_all()
            self.background.run()
            self.window()
        except Died:
            self.gathering = False
            self.restart()

    def place(self, name: str) -> str:
        return join(self.root, f"data/{name}")
