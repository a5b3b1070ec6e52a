"""The roles of processes over a state folder: each role belongs to one process at a time.

A role has a lock file, and a lease in generations beside it (`role_generations`). The lock says at once that its holder
is dead, as the kernel frees it. The lease says whether the process that has the lock lives: one that is suspended or
hangs is replaced after the lease's seconds, by the rules of `core.records.lease`. The next process then puts a lock
file of its own in the place of the one that is not freed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO
from uuid import uuid4

from calque.control.role_generations import FileGenerations
from calque.engine.lease.keeper import Lease, LeaseHeldByOther
from calque.errors import CalqueError, Unavailable
from calque.model.lease import Writer
from calque.model.state_places import TargetPlaces
from calque.state_files import make_folder, open_private, reaching, write_whole

if TYPE_CHECKING:
    from calque.config import Config

LOG = logging.getLogger(__name__)
LOOKED_AT_SECONDS = 0.2
"""Seconds for which a lock without a known holder is tried again: a process that asks who holds a role has its lock for
a moment."""
LEASE_SECONDS = 30.0
"""Seconds of the lease of a process that captures a source which no target follows."""
RENEWED_SECONDS = 1.0
"""Seconds between two renewals by a holder. A second process is refused as soon as it sees one."""
PAUSE_SECONDS = 0.02
"""Seconds between two tries of a lock whose holder is not known."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


def roles(config: Config, sources: Iterable[str], targets: Iterable[str]) -> dict[str, float]:
    """Return the roles of a process that captures `sources` and replicates to `targets`, each with the seconds after
    which a holder that shows no sign of life is replaced."""
    leases = {name: target.keys.lease for name, target in config.targets.items()}
    captures = {
        config.sources[name].places.role: max(
            [leases[target] for target in config.targets_of(name)], default=LEASE_SECONDS
        )
        for name in sources
    }
    return captures | {TargetPlaces(name).role: leases[name] for name in targets}


class Roles:
    """The roles that this process has in one state folder; they are given back when the `with` block ends.

    It is a `Fence`: a process that has lost one of its roles begins no effect any more, under any of them.
    """

    def __init__(self, state: Path) -> None:
        self.state = state
        self.held_roles: dict[str, RoleLock] = {}

    def take(self, wanted_roles: Mapping[str, float], stopping: threading.Event | None = None) -> bool:
        """Take all of `wanted_roles`, or none; each comes with the seconds of its lease. Return True once they are
        taken, and False where `stopping` was set meanwhile.

        Waits for holders that may be suspended, as long as their leases last. Raises `Unavailable` where another
        process has one of the roles and lives.
        """
        stopping = stopping or threading.Event()
        locks = {role: RoleLock(self.state, role, seconds) for role, seconds in wanted_roles.items()}
        missing = list(locks.values())
        try:
            while missing := [lock for lock in missing if not lock.attempt()]:
                if stopping.wait(min(lock.pause() for lock in missing)):
                    return False
        finally:
            if missing:
                for lock in locks.values():
                    lock.give_back()
        self.held_roles |= locks
        return True

    def permit(self) -> None:
        """Return as soon as an effect may begin. Raises as `Lease.permit` does: `Broken` where a role is another
        process's."""
        for lock in tuple(self.held_roles.values()):
            lock.lease.permit()

    @property
    def lost(self) -> CalqueError | None:
        """The error that says why one of the roles is another process's now; None while this process has them all."""
        return next((lock.lease.lost for lock in tuple(self.held_roles.values()) if lock.lease.lost is not None), None)

    def proof(self, role: str) -> str:
        """Return a text that only holders of the role have, under the kernel that runs now; empty where this process
        does not have the role, or the system does not tell its boots apart.

        A writer shows it at the lease on a target. A generation there with the same text was made by an earlier holder
        of the role, which is dead or begins no effect any more, so the lease is taken over at once.
        """
        if role not in self.held_roles or not BOOT.exists():
            return ""
        folder = lock_of(self.state, role).parent.stat()
        return f"{BOOT.read_text().strip()}:{folder.st_dev}:{folder.st_ino}:{role}"

    def takeovers(self, role: str) -> int:
        """Return how often a process that may still live was replaced in the role."""
        return takeovers_of(lock_of(self.state, role))

    def give_back(self, role: str) -> None:
        self.held_roles.pop(role).give_back()

    def __enter__(self) -> Roles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in list(self.held_roles):
            self.give_back(role)


class RoleLock:
    """A role that this process wants, or has."""

    def __init__(self, state: Path, role: str, seconds: float) -> None:
        self.state, self.role, self.path = state, role, lock_of(state, role)
        with self.reaching():
            make_folder(self.path.parent)
        self.generations = FileGenerations(self.path.parent, self.path.stem)
        self.lease = Lease(self.generations, f"{role} in {state}", seconds, every=RENEWED_SECONDS, ends_when_out=True)
        self.id = uuid4().hex
        self.lock: TextIO | None = None
        """The locked file: the one at `path`, or the draft that is to replace it; None before the first attempt."""
        self.draft = self.path.with_name(f".{self.path.name}.{self.id}")
        """The path of a lock file of this process's own, for a role whose lock another process does not free."""
        self.has_draft = False
        self.began = time.monotonic()

    def attempt(self) -> bool:
        """Tell whether this process has the role now; where not, it may have it at a later attempt. Raises
        `Unavailable` where another process has it and lives, or the folder can't be used now, and `StateUnusable`."""
        with self.reaching():
            return self.attempted()

    def reaching(self) -> AbstractContextManager[None]:
        return reaching(f"{self.role} can't be begun on {self.state}", self.state)

    def attempted(self) -> bool:
        self.lock_file()
        if self.has_draft and not self.is_holder_known():
            if time.monotonic() < self.began + LOOKED_AT_SECONDS:
                return False
            raise self.refusal()
        is_first_look = self.lease.first is None
        try:
            watched = self.lease.attempt(self.writer())
        except LeaseHeldByOther as error:
            raise self.refusal() from error
        if watched is None:
            self.name_lock()
            self.lease.keep(ignore)
        elif is_first_look:
            seconds = watched.holder.seconds
            LOG.info(
                "%s: %s is replaced if it shows no sign of life for %.0f s", self.role, watched.holder.writer, seconds
            )
        return watched is None

    def lock_file(self) -> None:
        """Lock the file at `path` where no process has it locked, else a draft beside it."""
        if self.lock is not None and not self.has_draft:
            return
        free = free_lock(self.path)
        if free is not None:
            self.drop_draft()
            self.lock = free
        elif self.lock is None:
            self.lock, self.has_draft = opened(self.draft), True
            fcntl.flock(self.lock, fcntl.LOCK_EX)

    def is_holder_known(self) -> bool:
        """Tell whether the newest generation of the lease was made by the process that the lock file names."""
        newest = self.generations.newest()
        return newest is not None and not newest.released and newest.writer.pid == process_in(self.path)

    def writer(self) -> Writer:
        """Return this process as a writer of the lease.

        Where this process has locked the file that names the process of the newest generation, that process is dead,
        because the kernel has freed its lock. The writer inherits its proof then, so that it takes the lease without
        waiting. The same holds in a copy of a state folder.
        """
        assert self.lock is not None
        newest, host, proof = self.generations.newest(), socket.gethostname(), self.id
        self.lock.seek(0)
        named = self.lock.read().strip()
        if newest is not None and not self.has_draft and (newest.writer.host, str(newest.writer.pid)) == (host, named):
            proof = newest.writer.proof
        return Writer(self.id, host, os.getpid(), str(self.state), proof)

    def name_lock(self) -> None:
        """Write this process's id into the locked file, and move a draft to `path`. A process that had the file at
        `path` locked keeps a lock on a file without a name."""
        assert self.lock is not None
        if self.has_draft:
            write_whole(takeovers_file(self.path), str(takeovers_of(self.path) + 1).encode())
        self.lock.truncate(0)
        self.lock.write(str(os.getpid()))
        self.lock.flush()
        if self.has_draft:
            self.draft.replace(self.path)
            self.has_draft = False

    def pause(self) -> float:
        """Return the seconds to wait before the next attempt."""
        return PAUSE_SECONDS if self.lease.first is None else self.lease.pause()

    def refusal(self) -> Unavailable:
        return Unavailable(
            f"Another process runs {self.role} on {self.state}",
            f"It is process {process_in(self.path) or 'unknown'}",
            "Stop it first, or give this one a state folder of its own",
        )

    def give_back(self) -> None:
        self.lease.release()
        self.drop_draft()
        if self.lock is not None:
            self.lock.close()

    def drop_draft(self) -> None:
        if self.has_draft and self.lock is not None:
            self.draft.unlink(missing_ok=True)
            self.lock.close()
            self.has_draft = False


def ignore(_: CalqueError) -> None:
    """Ignore what ended a lease: a process that needs the role is told by `Roles.permit` and `Roles.lost`."""


def holder(state: Path, role: str) -> int | None:
    """Return the id of the process on this host that has the role; None where no process has it."""
    path = lock_of(state, role)
    try:
        with path.open("r") as lock:
            return None if is_locked(lock, fcntl.LOCK_SH) else process_in(path)
    except FileNotFoundError:
        return None


def tell_of_holders(state: Path, wanted_roles: Mapping[str, float]) -> None:
    """Log at once which processes of this host have the roles, and how long a process waits for them that takes the
    roles with these leases."""
    by_process: dict[int, list[str]] = {}
    for role in wanted_roles:
        with suppress(OSError):
            if (pid := holder(state, role)) is not None:
                by_process.setdefault(pid, []).append(role)
    for pid, roles_of_process in by_process.items():
        longest = max(wanted_roles[role] for role in roles_of_process)
        LOG.warning(
            "Process %d runs %s here. This one waits for a sign of life from it, for %.0f s at most: it ends where "
            "there is one, and takes the work over where there is none",
            pid,
            ", ".join(roles_of_process),
            longest,
        )


def lock_of(state: Path, role: str) -> Path:
    return state / "locks" / f"{role.replace(' ', '.')}.lock"


def process_in(path: Path) -> int | None:
    """Return the process id that the lock file names; None where it names none."""
    text = path.read_text(errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else None


def takeovers_of(path: Path) -> int:
    """Return how often the role was taken from a process that may still live; 0 where the count was never written.

    Where the count can't be read, the seconds at which its file was changed stand for it. They are more than there were
    takeovers, so that the next checkpoint gets a name that no earlier one has.
    """
    try:
        text = takeovers_file(path).read_text(errors="replace").strip()
    except FileNotFoundError:
        return 0
    return int(text) if text.isascii() and text.isdigit() else int(takeovers_file(path).stat().st_mtime)


def takeovers_file(path: Path) -> Path:
    return path.with_suffix(".takeovers")


def opened(path: Path) -> TextIO:
    """Open the file for reading and appending, and make it where it is missing."""
    return os.fdopen(open_private(path, os.O_RDWR | os.O_APPEND), "a+", errors="replace")


def free_lock(path: Path) -> TextIO | None:
    """Return the file at `path`, locked by this process; None where another process has it, or has just replaced the
    file."""
    lock = opened(path)
    if is_locked(lock, fcntl.LOCK_EX) and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
        return lock
    lock.close()
    return None


def is_locked(lock: TextIO, mode: int) -> bool:
    """Lock the file if no other process stands against it, and tell whether that succeeded."""
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
