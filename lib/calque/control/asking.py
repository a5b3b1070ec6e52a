"""Questions of commands to a running process: how a command finds the process, and what both say to each other.

A command that imports what it needs to read the state folder takes most of a second of processor time. A process that
runs on the folder has all of it in memory. It listens at a Unix socket in a folder of its own that only its user may
enter, and a file of `sockets/` in the state folder says where. Both sides speak lines of JSON:

    command   {"build": …, "configuration": …, "question": "epochs list", "arguments": {"targets": ["dr"]}}
    process   {"taken": true}            at once; anything else means that it declines
    process   {"answer": …} or {"error": {…}} or {"declined": true}

A process declines what it may not answer: a question of another build of calque, or under a configuration other than
its own. The command then finds the answer itself, as it does without a process. So an answer never depends on who gave
it, and a file with a mistake is refused as ever (Decision 207).
"""

from __future__ import annotations

import json
import os
import socket
import tomllib
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from calque import errors
from calque.config.environment import PREFIX, overridden
from calque.config.places import folder
from calque.errors import (
    Broken,
    CalqueError,
    Refused,
    StatementSyntaxError,
    Unavailable,
    Where,
    WrongUsage,
)

SOCKETS = "sockets"
"""The folder of the state folder with a file for each process that answers, which has the path of its socket."""
TAKEN_SECONDS, ANSWER_SECONDS = 2.0, 60.0
"""Seconds for which a command waits for a process to take its question, and then for the answer."""
LONGEST = 1 << 30
"""Bytes of an answer, at most."""


class Declined(Exception):
    """The running processes do not answer the question: the command has to find the answer itself."""


def ask(path: str, question: str, arguments: Mapping[str, Any]) -> Any:
    """Return the answer of a process that runs under the configuration in the file `path`. Raises `Declined` where none
    does or none answers, and the error that the answer is."""
    try:
        state, configuration = state_and_digest(Path(path), os.environ)
        records = sorted((state / SOCKETS).iterdir())
    except (OSError, ValueError, Refused) as error:
        raise Declined from error
    request = {"build": build(), "configuration": configuration, "question": question, "arguments": dict(arguments)}
    for record in records:
        try:
            return answer_of(record, request)
        except (OSError, ValueError, Declined):
            continue
    raise Declined


def answer_of(record: Path, request: Mapping[str, Any]) -> Any:
    """Return the answer of the process at the socket that `record` names. Raises `OSError` and `ValueError` where
    nothing answers there, `Declined`, and the error that the answer is."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TAKEN_SECONDS)
        connection.connect(record.read_text())
        with connection.makefile("rb") as replies:
            send(connection, request)
            if "taken" not in receive(replies):
                raise Declined
            connection.settimeout(ANSWER_SECONDS)
            reply = receive(replies)
    if "error" in reply:
        raise error_of(reply["error"])
    if "answer" not in reply:
        raise Declined
    return reply["answer"]


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive(stream: BinaryIO) -> dict[str, Any]:
    """Return the next message. Raises `ValueError` where there is none."""
    message = json.loads(stream.readline(LONGEST))
    if not isinstance(message, dict):
        raise ValueError("it is no message")
    return message


# Who may answer


def build() -> str:
    """Return which calque runs: another installation, or another version in its place, has another text."""
    file = Path(errors.__file__).with_name("__init__.py")
    return f"{file} {file.stat().st_mtime_ns}"


def state_and_digest(path: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """Return the state folder that the configuration file names, and a digest of all that the configuration says.

    The file is not checked: the digest is compared with the one of a process that has checked it. Raises `OSError`,
    `ValueError` and `Refused` for a file that can't be read.
    """
    data = content_of(path)
    keys, _ = overridden(tomllib.loads(data.decode()), environment)
    state = keys.get("state", {})
    place = state.get("path", "state") if isinstance(state, dict) else ""
    base = path.absolute().parent
    return Path(folder(str(place), base)), digest_of(path.absolute(), data, environment)


def digest_of(path: Path, data: bytes, environment: Mapping[str, str]) -> str:
    """Return a digest of a configuration: the file's place and content, and the variables that set its keys."""
    variables = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith(PREFIX))
    return sha256("\0".join([str(path), *variables]).encode() + b"\0" + data).hexdigest()


def digest_of_file(path: str) -> str:
    """Return the digest of the configuration in the file, with this process's environment; empty where it can't be
    read."""
    file = Path(path)
    try:
        return digest_of(file.absolute(), content_of(file), os.environ)
    except (OSError, ValueError):
        return ""


def content_of(path: Path) -> bytes:
    """Return the content of the configuration file. Raises `ValueError` for what can be read only once, as a pipe: the
    configuration is read from it later."""
    if not path.is_file():
        raise ValueError(f"{path} is no file")
    return path.read_bytes()


# Errors


def several_targets(names: Iterable[str]) -> WrongUsage:
    """Return the error of a command about one target for which none of several is named."""
    return WrongUsage("--target is missing", f"There are several targets: {', '.join(names)}", "Name one")


KINDS: Mapping[int, type[CalqueError]] = {kind.exit_code: kind for kind in (WrongUsage, Refused, Unavailable, Broken)}


def error_document(error: CalqueError) -> dict[str, Any]:
    """Return the error as a message has it."""
    excerpt = {"excerpt": error.excerpt} if isinstance(error, StatementSyntaxError) else {}
    return {**error.document()["error"], **excerpt}


def error_of(document: Mapping[str, Any]) -> CalqueError:
    """Return the error of a message: one of the same exit code, texts and place."""
    texts = document["what"], document["why"], document["do"]
    if "excerpt" in document:
        return StatementSyntaxError(*texts, document["excerpt"])
    where = Where(**document["where"]) if document["where"] is not None else None
    return KINDS.get(document["code"], Broken)(*texts, where)


def records_of_the_dead(sockets: Path) -> Iterable[Path]:
    """Return the records of sockets at which nothing listens any more, as processes leave them that were killed."""
    for record in sockets.iterdir():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(TAKEN_SECONDS)
            try:
                connection.connect(record.read_text())
            except TimeoutError:
                continue
            except (OSError, ValueError):
                yield record
