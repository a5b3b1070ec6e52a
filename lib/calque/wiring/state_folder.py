"""The state folder: its records, locks, tables and checkpoints, at the places that sources and targets have in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from calque.adapters.control import ControlGaps, ControlStore, locked, unavailable
from calque.adapters.delta.data_files import local_path
from calque.adapters.files.options import delta_options
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.system import FileSystemKind
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.config.keys import State
from calque.core.records.state_formats import FIRST_FORMAT, require_known_format
from calque.engine.failpoints import FailpointGuard
from calque.model.secrets import Options
from calque.model.state_places import PLACES_OF_PINS, STATE_FORMAT
from calque.ports import Gaps
from calque.state_files import make_folder, reaching, require_own, require_room, restrict_below


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The state folder of a configuration. Places in it are those of `SourcePlaces` and `TargetPlaces`."""

    section: State
    guard: FailpointGuard
    file_systems: tuple[FileSystemKind, ...] = ()
    """File systems of plugins on which the tables may lie."""

    @property
    def path(self) -> Path:
        return Path(self.section.path)

    @property
    def control(self) -> ControlStore:
        """The control records."""
        return ControlStore(self.path / "control", self.guard.records())

    def gaps(self, record: str) -> Gaps:
        return self.guard.gaps(ControlGaps(ControlStore(self.path / "control"), record))

    def table(self, place: str) -> str:
        """Return the path or URI of the table at `place`."""
        return f"{self.section.table_folder()}/{place}"

    def tables_below(self, place: str) -> Sequence[str]:
        """Return the names directly below a place of tables."""
        return self.storage().children(self.table(place))

    def storage(self) -> FileStorage:
        """Return a storage of the file system on which the tables lie."""
        own = OwnLocations((self.section.table_folder(),), self.section.storage)
        return FileStorage(FileSystemSet(own=own, kinds=self.file_systems))

    @property
    def table_options(self) -> Options:
        """The options of delta-rs for all tables."""
        return delta_options(self.section.table_folder(), self.section.storage)

    @contextmanager
    def lock(self, place: str, record: str) -> Iterator[None]:
        """Hold the lock at `place` while the context is entered, to change `record`; one thread of one process has it
        at a time. Raises `Unavailable`, which names the record."""
        with unavailable(record, self.path), locked(self.path / place):
            yield

    def open(self) -> None:
        """Make the state folder and the folder of checkpoints for this user alone, before anything is written, and
        check that they have room.

        Other users lose what an older calque let them read there. Raises `Unavailable`, and `StateUnusable` where the
        folder is another user's.
        """
        for folder in self.folders():
            with reaching(f"{folder} can't be used", folder):
                folder.parent.mkdir(parents=True, exist_ok=True)
                make_folder(folder)
                if (folder / "control").exists():
                    require_own(folder / "control")
                require_room(folder)
        restrict_below(self.path, [self.path / place for place in PLACES_OF_PINS])

    def folders(self) -> Sequence[Path]:
        """Return the state folder, and the folder of checkpoints where it is on this machine's file systems."""
        checkpoints = local_path(self.section.checkpoints)
        return (self.path,) if checkpoints is None else (self.path, Path(checkpoints))

    def identity(self) -> str:
        """Return the folder's own id, made at the first call and recorded with the format of its records. Raises as
        `require_known_format` does."""
        self.require_known_format()
        with self.lock("locks/identity.lock", "identity"):
            record = self.control.read("identity")
            if record is None:
                record = {"id": uuid4().hex, "format": STATE_FORMAT}
                self.control.put("identity", record)
        return str(record["id"])

    def require_known_format(self) -> None:
        """Raise `Refused` where a newer calque has written the folder's records, or one that is older by two
        formats."""
        record: Any = self.control.read("identity")
        if record is not None:
            number = int(record.get("format", FIRST_FORMAT))
            require_known_format(f"The state folder {self.path}", number, STATE_FORMAT)

    def checkpoint(self, query: str, gap: int = 0, takeovers: int = 0) -> str:
        """Return the path or URI of a query's checkpoint. Each gap has one of its own, because offsets begin anew
        behind it and may go back.

        Each takeover of the role has one, too: a process that was replaced while it was suspended may wake, and its JVM
        goes on with its own checkpoint.
        """
        behind_gap = f".{gap}" if gap else ""
        taken_over = f".takeover-{takeovers}" if takeovers else ""
        return f"{self.section.checkpoints}/{query}{behind_gap}{taken_over}"
