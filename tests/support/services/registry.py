"""A real schema registry, Apicurio Registry 2.6.13, which speaks Confluent's protocol and keeps all in memory."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from calque.errors import Unavailable
from calque.resources import TO_INSTALL, cache_folder
from calque.sandbox.java import java_17
from calque.sandbox.processes import KeptProcess, PortTaken, on_free_port

_HOST = "127.0.0.1"
_START_SECONDS = 120.0
_READY = "Listening on:"
_TAKEN = "seems to be in use by another process"
_FOREIGN = ("QUARKUS_", "REGISTRY_", "JAVA_TOOL_OPTIONS", "CLASSPATH")
_JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def registry_program(cache: Path) -> Path:
    """The folder of the schema registry's program and its jars."""
    return cache / "registry-2.6.13"


class SchemaRegistry:
    """One running registry; `stop` it, or use it as a context manager.

    url: the root of its API as Confluent's clients take it, the same after a restart.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self.url = f"http://{_HOST}:{port}/apis/ccompat/v7"
        self._directory, self._port = directory, port
        self._process = self._launch()

    @classmethod
    def start(cls, directory: Path) -> Self:
        """Starts a registry whose log lies in `directory`, and returns when it can be used. Raises `Unavailable` when
        it does not start."""
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        return on_free_port(lambda port: cls(directory, port))

    def stop(self) -> None:
        """Ends the registry, which forgets everything."""
        self._process.stop()

    def restart(self) -> None:
        """Ends the registry if it runs, and starts an empty one on the same port."""
        self._process.stop()
        self._process = self._launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> KeptProcess:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        process = KeptProcess(
            [
                str(java_17()),
                *_JAVA_OPTIONS,
                f"-Djava.io.tmpdir={self._directory}",
                f"-Dquarkus.http.host={_HOST}",
                f"-Dquarkus.http.port={self._port}",
                "-jar",
                str(_program()),
            ],
            self._directory / "registry.log",
            environment=environment,
        )
        try:
            process.wait_until(lambda output: _READY in output, _START_SECONDS)
        except BaseException as error:
            process.kill()
            if isinstance(error, Unavailable) and _TAKEN in process.output():
                raise PortTaken(error.what, error.why, error.todo) from error
            raise
        return process


def _program() -> Path:
    folder = registry_program(cache_folder().resolve())
    programs = sorted(folder.glob("*-runner.jar"))
    if not programs:
        raise Unavailable(
            "The sandbox is not installed completely",
            f"{folder} is missing",
            TO_INSTALL,
        )
    return programs[0]
