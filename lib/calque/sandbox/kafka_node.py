"""One process of a Kafka cluster, over a directory that holds its settings, its data and its log."""

import os
import secrets
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import installed
from calque.sandbox.java import archive_of, java_17
from calque.sandbox.processes import KeptProcess, on_free_ports

HOST = "127.0.0.1"

_START_SECONDS = 120.0
_GRACE_SECONDS = 10.0
_ARCHIVE_SECONDS = 120.0
_READY = "Kafka Server started"
_FOREIGN = ("KAFKA_", "JAVA_TOOL_OPTIONS", "CLASSPATH")
_JAVA_OPTIONS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # An archive that does not fit is passed over in silence.
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
_SMALL = {
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    # After this time a broker that was killed is replaced as leader, or let in again.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}

Properties = Callable[[Sequence[int]], Mapping[str, str]]
"""A function that returns a node's settings for these ports, the first of which is its clients'."""


class Node:
    """A running process of the cluster. The first of its ports is its address."""

    def __init__(self, directory: Path, ports: Sequence[int], archive: Path | None) -> None:
        self.ports = tuple(ports)
        self.address = f"{HOST}:{ports[0]}"
        self._directory = directory
        self._archive = archive
        self._process = self._launch()

    @classmethod
    def start(
        cls,
        directory: Path,
        number: int,
        cluster: str,
        properties: Properties,
        ports: int,
        *,
        archive: Path | None = None,
    ) -> "Node":
        """Start the node `number` of the cluster with the id `cluster`, and return when it can be used. It has `ports`
        ports: those that the directory remembers, else free ones. With `archive`, the classes that it loaded are
        written there at its end. Raises `Unavailable` when it does not start."""
        directory = directory.resolve()
        (directory / "data").mkdir(parents=True, exist_ok=True)
        identity = directory / "data" / "meta.properties"
        if not identity.exists():
            # Kafka's format step would write the same.
            format_properties = {
                "version": "1",
                "cluster.id": cluster,
                "node.id": str(number),
                "directory.id": new_id(),
            }
            _write(identity, format_properties)

        def start_on(free: Sequence[int]) -> "Node":
            settings = {"node.id": str(number), "log.dirs": str(directory / "data"), **_SMALL, **properties(free)}
            _write(directory / "server.properties", settings)
            node = cls(directory, free, archive)
            ports_file.write_text(" ".join(map(str, free)))
            return node

        ports_file = directory / "ports"
        if ports_file.exists():
            return start_on([int(port) for port in ports_file.read_text().split()])
        return on_free_ports(start_on, ports)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        self._process.kill()

    def restart(self) -> None:
        self._process.stop()
        self._process = self._launch()

    def _launch(self) -> KeptProcess:
        classes = (
            f"-XX:ArchiveClassesAtExit={self._archive}" if self._archive else f"-XX:SharedArchiveFile={archive_path()}"
        )
        options = [*_JAVA_OPTIONS, f"-Djava.io.tmpdir={self._directory}", classes]
        class_path = os.pathsep.join(map(str, _jars()))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        process = KeptProcess(
            [str(java_17()), *options, "-cp", class_path, "kafka.Kafka", str(self._directory / "server.properties")],
            self._directory / "kafka.log",
            environment=environment,
            grace_seconds=_ARCHIVE_SECONDS if self._archive else _GRACE_SECONDS,
        )
        try:
            process.wait_until(lambda output: _READY in output, _START_SECONDS)
        except BaseException:
            process.kill()
            raise
        return process


def new_id() -> str:
    """Return a UUID as Kafka writes it; never one that begins with a dash, which Kafka's tools take for an option."""
    return urlsafe_b64encode(uuid.UUID(bytes=b"\x01" + secrets.token_bytes(15)).bytes).decode().rstrip("=")


def archive_path() -> Path:
    """Return the path at which the archive of the classes that a broker loads belongs."""
    return archive_of("kafka", _jars())


def _jars() -> list[Path]:
    return installed(manifest.KAFKA_JARS, cache_folder().resolve())


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
