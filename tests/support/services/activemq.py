"""A real ActiveMQ Classic broker that speaks STOMP, put together inside a JVM that runs nothing but a py4j gateway.

Its own start script reads Spring's XML and needs Spring for that. A directory remembers its ports and its messages:
whatever is started over it again is reached under its old addresses. Two brokers over one store are a pair: the second
takes no connections until the first one is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError

from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, PortTaken, gateway_to, is_listening, on_free_ports
from support.services import manifest

HOST = "127.0.0.1"
USER = "calque"

_START_SECONDS = 120.0
_JAVA_OPTIONS = (
    "-Xmx192m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_MEGABYTE = 1 << 20
_LOCK_MILLISECONDS = 200


@dataclass(frozen=True, slots=True)
class ActiveMQSettings:
    """password: with which `USER` logs in; empty where anybody may. keystore: a PKCS12 file and its password, for TLS
    at a port of its own; none without. largest: bytes of a frame. store: where messages lie, for two brokers that share
    one; in the broker's own directory otherwise. topics: those that `USER` may use; every queue besides."""

    password: str = ""
    keystore: tuple[Path, str] | None = None
    largest: int = _MEGABYTE
    store: Path | None = None
    topics: str = ">"


class ActiveMQ:
    """One running broker; `stop` it, or use it as a context manager.

    address, tls_address: `127.0.0.1:<port>` of STOMP without and with TLS, the same after a restart.
    """

    def __init__(self, directory: Path, settings: ActiveMQSettings, ports: Sequence[int], *, standby: bool) -> None:
        self.address, self.tls_address = (f"{HOST}:{port}" for port in ports)
        self.password = settings.password
        self._directory, self._settings, self._ports = directory, settings, tuple(ports)
        self._process = self._launch(standby)

    @staticmethod
    def start(directory: Path, settings: ActiveMQSettings | None = None, *, standby: bool = False) -> "ActiveMQ":
        """Returns when it can be used; one that is to stand by, when it waits. Raises `Unavailable`."""
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        remembered = directory / "ports"

        def start_on(ports: Sequence[int]) -> "ActiveMQ":
            broker = ActiveMQ(directory, settings or ActiveMQSettings(), ports, standby=standby)
            remembered.write_text(" ".join(map(str, ports)))
            return broker

        if remembered.exists():
            return start_on([int(port) for port in remembered.read_text().split()])
        return on_free_ports(start_on, 2)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def taking_connections(self) -> bool:
        return is_listening(self._ports[0])

    def stop(self) -> None:
        """Ends the broker in good order. The directory stays."""
        self._process.stop()

    def kill(self) -> None:
        """Ends the broker as `kill -9` would; the data stay."""
        self._process.kill()

    def restart(self) -> None:
        """Ends the broker if it runs, and starts it on the same ports and data."""
        self._process.stop()
        self._process = self._launch(standby=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, standby: bool) -> KeptProcess:
        jars = [*installed(manifest.ACTIVEMQ_JARS, cache_folder().resolve()), *pyspark_jars("py4j-*.jar")]
        options = [*_JAVA_OPTIONS, f"-Djava.io.tmpdir={self._directory}"]
        if self._settings.keystore:
            file, password = self._settings.keystore
            options += [f"-Djavax.net.ssl.keyStore={file}", f"-Djavax.net.ssl.keyStorePassword={password}"]
        process = KeptProcess(
            [str(java_17()), *options, "-cp", ":".join(map(str, jars)), *GATEWAY], self._directory / "activemq.log"
        )
        try:
            gateway = gateway_to(process, _START_SECONDS)
            try:
                self._start_service(gateway, standby)
            except Py4JError as error:
                cause = " ".join(str(error).splitlines()[:2])
                if "Address already in use" in cause:
                    raise PortTaken(f"A port of {self._ports} is taken", "", "Try others") from error
                raise process.failure(f"failed to start: {cause}") from error
            finally:
                gateway.shutdown()
            process.wait_until(lambda _: standby or self.taking_connections, _START_SECONDS)
        except BaseException:
            process.kill()
            raise
        return process

    def _start_service(self, gateway: JavaGateway, standby: bool) -> None:
        activemq: Any = gateway.jvm.org.apache.activemq
        service = activemq.broker.BrokerService()
        service.setBrokerName("sandbox")
        service.setUseJmx(False)
        service.setSchedulerSupport(False)
        store = activemq.store.kahadb.KahaDBPersistenceAdapter()
        store.setDirectory(gateway.jvm.java.io.File(str(self._settings.store or self._directory / "store")))
        store.setJournalMaxFileLength(4 * _MEGABYTE)
        store.setPreallocationStrategy("sparse_file")
        locker = activemq.store.SharedFileLocker()
        locker.setLockAcquireSleepInterval(_LOCK_MILLISECONDS)
        store.setLocker(locker)
        service.setPersistenceAdapter(store)
        service.setTmpDataDirectory(gateway.jvm.java.io.File(str(self._directory / "overflow")))
        usage = service.getSystemUsage()
        usage.getMemoryUsage().setLimit(64 * _MEGABYTE)
        usage.getStoreUsage().setLimit(512 * _MEGABYTE)
        usage.getTempUsage().setLimit(64 * _MEGABYTE)
        if self._settings.password:
            service.setPlugins(self._plugins(gateway))
        limit = f"wireFormat.maxFrameSize={self._settings.largest}"
        addresses = [f"stomp://{self.address}"] + [f"stomp+ssl://{self.tls_address}"] * bool(self._settings.keystore)
        for address in addresses:
            # One that is made from its address alone listens before the broker has the store's lock.
            connector = activemq.broker.TransportConnector()
            connector.setUri(gateway.jvm.java.net.URI(f"{address}?{limit}"))
            service.addConnector(connector)
        # A broker that waits for the store's lock would keep this call.
        service.setStartAsync(standby)
        service.start()
        # The broker's own threads keep no JVM alive; one that waits for ever does. `EventHandler` makes a Runnable of
        # any method.
        java: Any = gateway.jvm.java
        latch = java.util.concurrent.CountDownLatch(1)
        runnable = java.beans.EventHandler.create(java.lang.Class.forName("java.lang.Runnable"), latch, "await")
        java.lang.Thread(runnable).start()

    def _plugins(self, gateway: JavaGateway) -> Any:
        security: Any = gateway.jvm.org.apache.activemq.security
        users = gateway.jvm.java.util.ArrayList()
        users.add(security.AuthenticationUser(USER, self._settings.password, "users"))
        login = security.SimpleAuthenticationPlugin(users)
        entries = gateway.jvm.java.util.ArrayList()
        for kind, names in (("Topic", self._settings.topics), ("Topic", "ActiveMQ.Advisory.>"), ("Queue", ">")):
            entry = security.AuthorizationEntry()
            getattr(entry, f"set{kind}")(names)
            entry.setRead("users")
            entry.setWrite("users")
            entry.setAdmin("users")
            entries.add(entry)
        rights = security.AuthorizationPlugin(security.DefaultAuthorizationMap(entries))
        plugins = gateway.new_array(gateway.jvm.org.apache.activemq.broker.BrokerPlugin, 2)
        plugins[0], plugins[1] = login, rights
        return plugins
