"""The start, the watch and the end of services, each under a keeper.

A keeper (module `keeper`) is a small process of its own session that runs one command and ends it when its own standard
input closes or its parent is gone. The kernel closes that pipe however the starting process ends, so no service
outlives it, and a Ctrl-C in the terminal reaches only the starting process, which stops its services in order.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from py4j.java_gateway import GatewayParameters, JavaGateway

from calque.errors import Unavailable

_KEEPER = Path(__file__).with_name("keeper.py")
_LOG_LINES_SHOWN = 20
_GRACE_SECONDS = 10.0
_KEEPER_SECONDS = 10.0
_PORT_ATTEMPTS = 5
_GATEWAY_ADDRESS = re.compile(r"^(\d+)\n(\S+)\n", re.MULTILINE)
GATEWAY = ("py4j.GatewayServer", "--enable-auth", "0")
"""Main class and arguments of a JVM that does what it is told by py4j."""

Started = TypeVar("Started")


class PortTaken(Unavailable):
    """Raised when another process took the port between its choice and its use."""


class KeptProcess:
    """A running command whose output goes to `log`, under a keeper that ends it with this process."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        user: tuple[int, int] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        grace_seconds: float = _GRACE_SECONDS,
        remove_after: Path | None = None,
        remove_files: Sequence[Path] = (),
    ) -> None:
        """Start the command.

        `user` is the user and group id to run it under, None for the present one. `stop_signal` asks the command to
        end; it is killed when it doesn't within `grace_seconds`. `remove_after` is a folder that the keeper removes
        when the command has ended, and `remove_files` are files that it removes then, where they exist.
        """
        self.log = log
        self._grace_seconds = grace_seconds
        self._log_start = log.stat().st_size if log.exists() else 0
        order = {
            "command": list(command),
            "user": user,
            "stop_signal": int(stop_signal),
            "grace_seconds": grace_seconds,
            "remove_after": str(remove_after) if remove_after else None,
            "remove_files": [str(file) for file in remove_files],
        }
        with log.open("ab") as output:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_KEEPER), json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=dict(os.environ if environment is None else environment),
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._keeper.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the command itself, while it runs."""
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children")
        return int(children.read_text().split()[0])

    def output(self) -> str:
        """Return what the command has written since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def wait_until(self, ready: Callable[[str], bool], seconds: float, *, failure_text: str = "\0") -> None:
        """Wait until `ready` holds of the output.

        Raises `Unavailable` with the log's last lines when the command ends, writes `failure_text`, or takes longer
        than `seconds`.
        """
        deadline = time.monotonic() + seconds
        while True:
            ended = not self.running
            output = self.output()
            if ready(output):
                return
            if ended or failure_text in output:
                raise self.failure("ended before it was ready" if ended else "failed to start")
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready within {seconds:.0f} s")
            time.sleep(0.02)

    def failure(self, problem: str) -> Unavailable:
        """Return an error that shows the end of the log; a `PortTaken` where the log says that the address is in
        use."""
        lines = self.output().splitlines()[-_LOG_LINES_SHOWN:]
        error = PortTaken if "address already in use" in self.output().lower() else Unavailable
        return error(f"A service {problem}", f"Its log ends: {' | '.join(lines)}", f"See {self.log}")

    def stop(self) -> None:
        """Ask the command to end, and return when it has ended."""
        self._end(b"")

    def kill(self) -> None:
        """End the command at once, as `kill -9` would, and return when it has ended."""
        self._end(b"kill")

    def _end(self, command: bytes) -> None:
        pipe = self._keeper.stdin
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError), pipe:
                pipe.write(command)
        try:
            self._keeper.wait(self._grace_seconds + _KEEPER_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._keeper.pid, signal.SIGKILL)
            self._keeper.wait()


def gateway_to(server: KeptProcess, seconds: float) -> JavaGateway:
    """Connect to a JVM that runs `GATEWAY`, once it has said how it is reached. The JVM goes on when the connection
    ends. Raises `Unavailable` after `seconds`."""
    server.wait_until(lambda output: _GATEWAY_ADDRESS.search(output) is not None, seconds)
    address = _GATEWAY_ADDRESS.search(server.output())
    assert address is not None
    return JavaGateway(gateway_parameters=GatewayParameters(port=int(address[1]), auth_token=address[2]))


def is_listening(port: int) -> bool:
    """Tell whether a process takes connections at that loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def on_free_port(start: Callable[[int], Started]) -> Started:
    """Call `start` with a free loopback port, and return what it returns. Where it raises `PortTaken`, call it again
    with another one, up to five times in all."""
    return on_free_ports(lambda ports: start(ports[0]), 1)


def on_free_ports(start: Callable[[Sequence[int]], Started], count: int) -> Started:
    """Call `start` with `count` different free loopback ports, as `on_free_port` does with one."""
    for _ in range(_PORT_ATTEMPTS - 1):
        try:
            return start(_free_ports(count))
        except PortTaken:
            continue
    return start(_free_ports(count))


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        probes = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
