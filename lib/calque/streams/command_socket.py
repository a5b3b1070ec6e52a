"""The socket at which a running process answers questions of commands: `CommandSocket`."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from calque.control.asking import (
    SOCKETS,
    TAKEN_SECONDS,
    build,
    error_document,
    receive,
    records_of_the_dead,
    send,
)
from calque.control.question import Question
from calque.errors import CalqueError
from calque.state_files import make_folder, write_whole
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
AT_A_TIME = 8
"""The number of questions that are answered at a time. Further ones are declined, and cost the process nothing more."""
NAME, PREFIX = "commands", "calque-"
"""The name of the socket, and the beginning of the name of its folder."""


class CommandSocket:
    """The socket of one process, from `begin` to `end`, with a thread for each question.

    `wiring` returns the world as the process has it configured now, `digest` says which configuration that is. A socket
    that can't be made is logged, and commands go on without it.
    """

    def __init__(
        self,
        state: Path,
        questions: Mapping[str, Question],
        wiring: Callable[[], Wiring],
        digest: Callable[[], str],
    ) -> None:
        self.records, self.questions, self.wiring, self.digest = state / SOCKETS, questions, wiring, digest
        self.build = build()
        self.room = threading.BoundedSemaphore(AT_A_TIME)
        self.listener: socket.socket | None = None
        self.folder: Path | None = None
        self.record = self.records / uuid4().hex

    def begin(self) -> None:
        try:
            make_folder(self.records)
            for record in list(records_of_the_dead(self.records)):
                remove(record)
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=runtime_folder()))
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.listener.bind(str(self.folder / NAME))
            self.listener.listen()
            write_whole(self.record, os.fsencode(self.folder / NAME))
        except OSError as error:
            LOG.info("commands read the state folder themselves, because no socket can be made: %s", error)
            self.end()
            return
        threading.Thread(target=self.listen, args=(self.listener,), name="commands", daemon=True).start()

    def end(self) -> None:
        if self.listener is not None:
            with suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        with suppress(OSError):
            self.record.unlink(missing_ok=True)
        if self.folder is not None:
            with suppress(OSError):
                (self.folder / NAME).unlink(missing_ok=True)
                self.folder.rmdir()

    def listen(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), name="command", daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        """Answer the one question that comes over the connection, and close it. A command that goes away meanwhile is
        no error."""
        with connection, suppress(OSError, ValueError):
            connection.settimeout(TAKEN_SECONDS)
            with connection.makefile("rb") as stream:
                request = receive(stream)
            if not self.may_answer(request) or not self.room.acquire(blocking=False):
                send(connection, {"declined": True})
                return
            try:
                send(connection, {"taken": True})
                connection.settimeout(None)
                send(connection, self.reply(request))
            finally:
                self.room.release()

    def may_answer(self, request: Mapping[str, Any]) -> bool:
        is_same = request.get("build") == self.build and request.get("configuration") == self.digest()
        return is_same and request.get("question") in self.questions

    def reply(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to the question, or its error. A defect is logged and declined: the command meets it
        itself."""
        try:
            return {"answer": self.questions[request["question"]](self.wiring(), request["arguments"])}
        except CalqueError as error:
            return {"error": error_document(error)}
        except Exception:
            LOG.exception("the question %s is not answered", request["question"])
            return {"declined": True}


def runtime_folder() -> str | None:
    """Return the folder of `XDG_RUNTIME_DIR`; None, for the one of temporary files, where this user can't write there,
    as after a change of users that keeps the environment."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def remove(record: Path) -> None:
    """Remove the record of a process that was killed, and the folder that it made for its socket, which has nothing
    else in it."""
    try:
        place = Path(record.read_text())
    except (OSError, ValueError):
        place = Path()
    record.unlink(missing_ok=True)
    if place.name == NAME and place.parent.name.startswith(PREFIX):
        with suppress(OSError):
            place.unlink(missing_ok=True)
            place.parent.rmdir()
