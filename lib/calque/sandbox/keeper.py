"""A script that runs one command and ends it when the process that started the script is gone.

`processes.KeptProcess` starts it as a script with one argument, a JSON object. It is kept small and imports only the
standard library. Three things end the command: the closing of this process's standard input, a new parent (a fork of
the starter may hold the pipe open), and the death of this process itself (the kernel then kills the command).
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def main(order: dict[str, Any], parent: int) -> int:
    user, group = order["user"] or (None, None)
    command = subprocess.Popen(
        order["command"],
        stdin=subprocess.DEVNULL,
        user=user,
        group=group,
        extra_groups=None if group is None else [],
        preexec_fn=_die_with_keeper,
    )
    at_once = _wait_for_end(command, parent)
    if command.poll() is None:
        command.send_signal(signal.SIGKILL if at_once else order["stop_signal"])
    try:
        command.wait(order["grace_seconds"])
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()
    if order["remove_after"]:
        shutil.rmtree(order["remove_after"], ignore_errors=True)
    for file in order["remove_files"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)  # noqa: PTH108
    return command.returncode


def _die_with_keeper() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_for_end(command: "subprocess.Popen[bytes]", parent: int) -> bool:
    """Wait until the command has ended or should end. Return whether it should be killed, because a byte was written to
    the pipe."""
    ended = os.pidfd_open(command.pid)
    pipe = sys.stdin.fileno()
    while os.getppid() == parent:
        readable, _, _ = select.select([pipe, ended], [], [], 1.0)
        if readable:
            return pipe in readable and os.read(pipe, 1) != b""
    return False


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), os.getppid()))
