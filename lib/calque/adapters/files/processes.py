"""Processes that copy files beside this one, because threads that copy small files fight for the interpreter's lock.

A process is a Python of its own and shares no lock or descriptor with this one. It gets portions of files by its
standard input, and answers by its standard output with what was copied. When its input ends, as it does when this
process dies, it ends behind the file in hand.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from subprocess import PIPE
from threading import Event

from calque.adapters.files.attempt import CopyTerms, FileCopier
from calque.adapters.files.systems import FileSystemSet
from calque.errors import CalqueError
from calque.ports import CopiedFile, CopyTask

START = "from calque.adapters.files.processes import serve; serve()"
REPORT_SECONDS = 0.5
"""Seconds after which a process reports what it copied, also before the end of a portion."""
READY = "ready"
END_SECONDS = 1.0
"""Seconds for which a killed process is waited for: one that hangs in a call of a storage ends when the call does."""

CopyRow = tuple[str, str, int, int, bool, int, bool, bool, str]
"""A `CopyTask` as it travels. Objects would take ten times as long to write and read, half as long as a small file
takes."""
Outcome = tuple[str, str, int, str]
"""A copy's checksum, problem, bytes moved, and which permissions it lacks."""


def row_of(task: CopyTask) -> CopyRow:
    expected = (task.source, task.target, task.size, task.modified_ns, task.ours, task.source_ns)
    return (*expected, task.permissions, task.lent, task.within)


def outcome_of(copied: CopiedFile) -> Outcome:
    return copied.checksum, copied.problem, copied.bytes_moved, copied.unpermitted


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it travels from another process."""

    kind: type[CalqueError]
    what: str
    why: str
    todo: str

    @staticmethod
    def of(error: CalqueError) -> Failure:
        return Failure(type(error), error.what, error.why, error.todo)

    def error(self) -> CalqueError:
        return self.kind(self.what, self.why, self.todo)


class CopyProcess:
    """A process that copies one portion of files at a time, until it is lost."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._portions, self._answers = process, process.stdin, process.stdout
        self.lost = False

    def begin(self, systems: FileSystemSet, terms: CopyTerms) -> None:
        """Say on what terms to copy."""
        self._send((systems, terms))

    def has_begun(self, seconds: float) -> bool:
        """Wait for the process for so long. Return whether it takes portions or is lost; call it until it does."""
        has_begun = bool(select.select([self._answers], [], [], seconds)[0])
        if has_begun:
            self._received()
        return has_begun

    def copied(self, tasks: Sequence[CopyTask]) -> Iterator[CopiedFile]:
        """Copy the files, and give the results as they come, in the order of the tasks; fewer where the process is
        lost. Raises the error that ended a copy."""
        self._send([row_of(task) for task in tasks])
        count = 0
        while count < len(tasks):
            match self._received():
                case Failure() as failure:
                    raise failure.error()
                case list(outcomes):
                    for outcome in outcomes:
                        yield CopiedFile(tasks[count], *outcome)
                        count += 1
                case _:
                    return

    def end(self) -> None:
        """End the process. One that still copies leaves an unfinished copy, as one does that dies."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        with suppress(OSError):
            self._portions.close()
        self._answers.close()

    def _send(self, message: object) -> None:
        try:
            pickle.dump(message, self._portions)
            self._portions.flush()
        except OSError:
            self.lost = True

    def _received(self) -> object:
        """Return the next answer; None where the process is lost."""
        try:
            return pickle.load(self._answers)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.lost = True
            return None


@contextmanager
def copy_process(systems: FileSystemSet, terms: CopyTerms) -> Iterator[CopyProcess | None]:
    """Start a process for as long as the context lasts; None where none can be started."""
    try:
        process = CopyProcess(started())
    except OSError:
        yield None
        return
    try:
        process.begin(systems, terms)
        yield process
    finally:
        process.end()


def started() -> subprocess.Popen[bytes]:
    """Start a process that runs `serve`. Raises `OSError`."""
    # Ctrl-C is for this process, which ends the other one in order: it gets a group of its own.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", START], stdin=PIPE, stdout=PIPE, env=environment, process_group=0
    )


def serve() -> None:
    """Copy what comes by the standard input until it ends."""
    answers, portions = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)  # What a library prints must not get between the answers.

    def send(message: object) -> None:
        pickle.dump(message, answers)
        answers.flush()

    with suppress(EOFError, BrokenPipeError):
        systems, terms = pickle.load(portions)
        copier = FileCopier(terms, None, Event())
        send(READY)
        while True:
            for outcomes in _outcomes(copier, systems, pickle.load(portions)):
                send(outcomes)


def _outcomes(
    copier: FileCopier, systems: FileSystemSet, rows: Sequence[CopyRow]
) -> Iterator[Sequence[Outcome] | Failure]:
    """Copy the files, and give the outcomes whenever `REPORT_SECONDS` have passed. Raises `EOFError` where the
    standard input ends meanwhile: the process that waits for them has died."""
    outcomes: list[Outcome] = []
    reported = time.monotonic()
    for row in rows:
        if select.select([0], [], [], 0)[0]:
            raise EOFError
        try:
            outcomes.append(outcome_of(copier.copy(CopyTask(*row), systems)))
        except CalqueError as error:
            yield Failure.of(error)
            return
        if time.monotonic() > reported + REPORT_SECONDS:
            yield outcomes
            outcomes, reported = [], time.monotonic()
    yield outcomes
