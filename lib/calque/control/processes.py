"""The processes that run on a state folder, and the request that they read their configuration again."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calque.control.free_space import free_at
from calque.errors import CalqueError, Unavailable
from calque.ports.records import MISSING, Json, Records, Stamp

LOG = logging.getLogger(__name__)
TICK_SECONDS = 1.0
"""Seconds between two looks for a request."""
TELL_SECONDS = 3.0
"""Seconds between two records of a process."""
FRESH_SECONDS = 10.0
"""Seconds for which a record of another host's process counts as one of a process that runs."""
POLL_SECONDS = 0.1
RELOAD = "reload"
PROCESSES = "processes/"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a process to the request `id`: an exit code, and what is wrong; an empty `problem` says that the
    configuration was taken over."""

    id: str = ""
    code: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that runs on the state folder. `name` stays the same as long as it runs. `serves` is the URL of its
    pages, empty for none."""

    name: str
    pid: int
    targets: tuple[str, ...]
    answer: Answer
    host: str = ""
    serves: str = ""


class ProcessPresence:
    """The record that says that this process runs, refreshed every few seconds from `begin` to `end`.

    `begin` also removes records of processes that are dead. `reload_requested` is set when the process is asked to read
    its configuration again.
    """

    def __init__(self, control: Records, state: Path) -> None:
        self.control, self.state = control, state
        self.free_bytes: int | None = None
        """Bytes that are free where the state folder lies; None while that is not known."""
        self.name = f"{PROCESSES}{uuid.uuid4().hex}"
        self.reload_requested = threading.Event()
        self.ended = threading.Event()
        self.targets: Sequence[str] = ()
        self.answered = Answer()
        self.serves = ""
        """The URL of this process's pages."""
        self.began = time.time()
        self.last_stamp: Stamp = MISSING
        self.lock = threading.Lock()
        self.told_at = 0.0
        self.thread = threading.Thread(target=self.run, name="presence", daemon=True)

    def begin(self, targets: Sequence[str]) -> None:
        self.targets = targets
        for name in self.control.names(PROCESSES):
            record = self.control.read(name)
            if record is not None and not is_there(record):
                self.control.remove(name)
        self.tell()
        self.thread.start()

    def end(self) -> None:
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
        self.control.remove(self.name)

    def answer(self, answer: Answer, targets: Sequence[str]) -> None:
        with self.lock:
            self.answered, self.targets = answer, targets
        self.tell()

    def request(self) -> str:
        """Return the id of the newest request; empty where there was none since this process began."""
        record = self.control.read(RELOAD) or {}
        return str(record["id"]) if float(str(record.get("at", 0))) >= self.began else ""

    def run(self) -> None:
        untold = False
        while not self.ended.wait(TICK_SECONDS):
            try:
                self.look()
                if time.monotonic() - self.told_at >= TELL_SECONDS:
                    self.tell()
                    untold = False
            except CalqueError as error:
                if not untold:
                    LOG.warning("that this process is there is not told, which is tried again: %s", error)
                untold = True

    def look(self) -> None:
        stamp = self.control.stamp(RELOAD)
        if stamp != self.last_stamp:
            self.last_stamp = stamp
            if self.request() not in ("", self.answered.id):
                self.reload_requested.set()

    def tell(self) -> None:
        self.free_bytes = free_at(str(self.state))
        with self.lock:
            self.told_at = time.monotonic()
            answer: dict[str, Json] = {
                "id": self.answered.id,
                "code": self.answered.code,
                "problem": self.answered.problem,
            }
            self.control.put(
                self.name,
                {
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "at": time.time(),
                    "targets": list(self.targets),
                    "serves": self.serves,
                    "answer": answer,
                },
            )


def ask_reload(control: Records) -> str:
    """Ask every process on the state folder to read its configuration again. Return the request's id."""
    name = uuid.uuid4().hex
    control.put(RELOAD, {"id": name, "at": time.time()})
    return name


def answers(control: Records, request: str, seconds: float) -> Sequence[Process]:
    """Wait until all processes have answered the request, and return them. A process that ends meanwhile need not
    answer. Raises `Unavailable` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        running_processes = processes(control)
        silent = [str(process.pid) for process in running_processes if process.answer.id != request]
        if not silent:
            return running_processes
        if time.monotonic() > deadline:
            raise Unavailable(
                f"Process {', '.join(silent)} did not take the configuration over in {seconds:g} s",
                "It is busy, or hangs",
                "Look at its log, and at `calque status`",
            )
        time.sleep(POLL_SECONDS)


def processes(control: Records) -> list[Process]:
    """Return the processes that run on the state folder."""
    running = []
    for name in control.names(PROCESSES):
        record = control.read(name)
        if record is not None and is_there(record):
            running.append(process_of(name, record))
    return running


def process_of(name: str, record: Mapping[str, Any]) -> Process:
    return Process(
        name,
        int(record["pid"]),
        tuple(record["targets"]),
        Answer(**record["answer"]),
        record["host"],
        record.get("serves", ""),
    )


def is_there(record: Mapping[str, Any]) -> bool:
    """Tell whether the process of a record runs.

    On this host its process id has to live, and its record to be of the last minute, because the id may be another
    process's by now. On another host its record has to be of the last `FRESH_SECONDS`.
    """
    if record["host"] != socket.gethostname():
        return time.time() - float(record["at"]) < FRESH_SECONDS
    try:
        os.kill(int(record["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        LOG.debug("process %s is another user's", record["pid"])
    return time.time() - float(record["at"]) < 6 * FRESH_SECONDS
