"""Real Kafka brokers, 4.3.1 in KRaft mode: one alone, or two that a controller leads.

Topics are never made by accident, and Kafka's own have one partition. A directory remembers its ports: a broker that is
started over it again has its old address and its old data.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from calque.errors import Unavailable
from calque.sandbox.kafka_node import HOST, Node, archive_path, new_id

USER = "calque"
GUEST = "guest"
"""A user who is not a super user, so that access control lists hold for it."""

_CONTROLLER, _ALONE = 100, 1


class Broker:
    """A running broker; `stop` it, or use it as a context manager.

    `address` is `127.0.0.1:<port>`, the same after a restart. `password` is the one with which clients log in as
    `USER`, by SASL/PLAIN; empty where no login is needed. `USER` may do everything; `GUEST`, with the same password,
    may do what no access control list denies.
    """

    def __init__(self, node: Node, password: str = "") -> None:
        self._node = node
        self.address = node.address
        self.password = password

    @property
    def pid(self) -> int:
        return self._node.pid

    @classmethod
    def start(cls, directory: Path, *, password: str = "", archive: Path | None = None) -> Self:
        """Start a broker whose data, settings and log lie in `directory`, and return when it can be used.

        Where `password` isn't empty, clients have to log in (see `options`). With `archive`, the classes that the
        broker loaded are written there at its end (see `make_archive`). Raises `Unavailable` when it does not start.
        """

        def properties(ports: Sequence[int]) -> Mapping[str, str]:
            clients, controller = ports
            return {
                "process.roles": "broker,controller",
                "listeners": f"CLIENTS://{HOST}:{clients},CONTROLLER://{HOST}:{controller}",
                **_listening(clients, password),
                **_voters(_ALONE, controller),
                **_copies(1),
            }

        return cls(Node.start(directory, _ALONE, _cluster_id(directory), properties, 2, archive=archive), password)

    @property
    def options(self) -> dict[str, str]:
        """The options that librdkafka needs to reach the broker, besides the address."""
        if not self.password:
            return {}
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": self.password,
        }

    def stop(self) -> None:
        """End the broker in good order. The directory stays."""
        self._node.stop()

    def kill(self) -> None:
        """End the broker as `kill -9` would; the data stay."""
        self._node.kill()

    def restart(self) -> None:
        """End the broker if it runs, and start it on the same port and data."""
        self._node.restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class Cluster:
    """Two brokers and the controller that chooses leaders among them. Either broker may be killed and started again.

    Topics have a copy on each broker unless they say otherwise.
    """

    def __init__(self, controller: Node, brokers: Sequence[Broker]) -> None:
        self._controller = controller
        self.brokers = tuple(brokers)

    @classmethod
    def start(cls, directory: Path) -> Self:
        """Start all three with their data below `directory`, and return when they can be used.

        Raises `Unavailable` when one does not start.
        """
        cluster_id = _cluster_id(directory)

        def of_controller(ports: Sequence[int]) -> Mapping[str, str]:
            return {
                "process.roles": "controller",
                "listeners": f"CONTROLLER://{HOST}:{ports[0]}",
                "controller.listener.names": "CONTROLLER",
                **_voters(_CONTROLLER, ports[0]),
                **_copies(2),
            }

        with ExitStack() as running_nodes:
            controller = Node.start(directory / "controller", _CONTROLLER, cluster_id, of_controller, 1)
            running_nodes.callback(controller.stop)

            def of_broker(ports: Sequence[int]) -> Mapping[str, str]:
                return {
                    "process.roles": "broker",
                    "listeners": f"CLIENTS://{HOST}:{ports[0]}",
                    **_listening(ports[0], ""),
                    **_voters(_CONTROLLER, controller.ports[0]),
                    **_copies(2),
                }

            brokers = []
            for number in (1, 2):
                node = Node.start(directory / f"broker-{number}", number, cluster_id, of_broker, 1)
                running_nodes.callback(node.stop)
                brokers.append(Broker(node))
            running_nodes.pop_all()
            return cls(controller, brokers)

    @property
    def address(self) -> str:
        """The addresses of both brokers, separated by a comma."""
        return ",".join(broker.address for broker in self.brokers)

    def stop(self) -> None:
        """End the two brokers and the controller. The directory stays."""
        for broker in self.brokers:
            broker.stop()
        self._controller.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def make_archive(cache: Path) -> None:
    """Make the archive of classes with which a broker starts in half the time, unless it is there, by starting and
    stopping a broker. Raises `Unavailable`; brokers work without it."""
    path = archive_path()
    if path.is_file():
        return
    with TemporaryDirectory(prefix="archive-", dir=cache) as folder:
        temporary = Path(folder, "classes.jsa")
        Broker.start(Path(folder, "broker"), archive=temporary).stop()
        if not temporary.is_file():
            why = "Java wrote none before its time was up"
            raise Unavailable("The archive of Kafka's classes was not made", why, "Go on without it")
        temporary.replace(path)


def _listening(port: int, password: str) -> dict[str, str]:
    settings = {
        "advertised.listeners": f"CLIENTS://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    if password:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        login = f'username="{USER}" password="{password}"'
        users = " ".join(f'user_{name}="{password}"' for name in (USER, GUEST))
        settings |= {
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{module} {login} {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": f"User:{USER};User:ANONYMOUS",
        }
    return settings


def _voters(number: int, port: int) -> dict[str, str]:
    return {"controller.quorum.voters": f"{number}@{HOST}:{port}"}


def _copies(count: int) -> dict[str, str]:
    names = ("default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {f"{name}.replication.factor": str(count) for name in names} | {
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _cluster_id(directory: Path) -> str:
    """Return the id of the cluster in this directory, made when it is first asked for."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "cluster"
    if not path.exists():
        path.write_text(new_id())
    return path.read_text()
