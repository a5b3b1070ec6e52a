"""A real HDFS, 3.5.0: a NameNode and two DataNodes, each a process of its own, with permissions checked.

Files have two copies: the NameNode hears of a single one only after it was asked to end the file, and clients then wait
for half a second.

The jar is the one that Hadoop publishes for its own tests; the client's jars are those that pyspark ships. A directory
remembers the NameNode's port: whatever is started over it again is reached under its old address, with its old data.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from calque.errors import Unavailable
from calque.resources import cache_folder
from calque.sandbox.artifacts import installed
from calque.sandbox.hive_settings import KerberosService, site
from calque.sandbox.java import archive_of, java_17, pyspark_jars
from calque.sandbox.processes import KeptProcess, on_free_port
from support.services import manifest

_HOST = "127.0.0.1"
_START_SECONDS = 120.0
_ARCHIVE_SECONDS = 120.0
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
_FORMATTED = "has been successfully formatted"
_LEFT, _REPORTED = "Leaving safe mode", "blocks: "
"""What a NameNode has written, the latter for each DataNode, once files can be read and written."""
_WEB_PORT = re.compile(r"Jetty bound to port (\d+)")
_DATA_NODES = 2
_FOREIGN = ("HADOOP_", "HDFS_", "JAVA_TOOL_OPTIONS", "CLASSPATH")
_JAVA_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # An archive that does not fit is passed over in silence.
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.hdfs.StateChange=info",
    "-Dorg.slf4j.simpleLogger.log.BlockStateChange=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.hdfs.server.common.Storage=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.http.HttpServer2=info",
)
_SMALL = {
    "dfs.replication": str(_DATA_NODES),
    "dfs.namenode.safemode.extension": "0",
    # Else it would be ready before there is a place for blocks.
    "dfs.namenode.safemode.min.datanodes": str(_DATA_NODES),
    "dfs.namenode.handler.count": "8",
    "dfs.namenode.redundancy.interval.seconds": "1s",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.heartbeat.interval": "1s",
    "dfs.datanode.hostname": _HOST,
    # What is written lies in the system's memory when a process is killed; no test takes the power away.
    "dfs.namenode.edits.noeditlogchannelflush": "true",
    "ipc.client.connect.retry.interval": "200",
    "ipc.client.connect.max.retries": "600",
}


class Hdfs:
    """One running HDFS; `stop` it, or use it as a context manager.

    uri: its address, `hdfs://127.0.0.1:<port>`, the same after a restart.
    The user of the process that started it may do everything; who else comes (`HADOOP_USER_NAME`) what modes allow.
    """

    def __init__(
        self, directory: Path, port: int, archive: Path | None = None, kerberos: KerberosService | None = None
    ) -> None:
        """archive: the folder where to write the classes that were loaded, at the end."""
        self.uri = f"hdfs://{_HOST}:{port}"
        self._directory, self._archive, self._kerberos = directory, archive, kerberos
        if not (directory / "name" / "current").is_dir():
            self._format()
        self.name_node = self._launch(_NAME_NODE)
        self.data_nodes = tuple(self._launch(_DATA_NODE, number=number) for number in range(1, _DATA_NODES + 1))
        self._wait()

    @classmethod
    def start(cls, directory: Path, *, archive: Path | None = None, kerberos: KerberosService | None = None) -> "Hdfs":
        """Starts one whose data, settings and logs lie in `directory`, and returns when files can be written.

        archive: the folder where to write the classes that its processes loaded, at their end (see `make_archives`).
        kerberos: for one that takes tickets alone, and gives tokens for blocks. Its own principal may do all.
        Raises `Unavailable` when it does not start.
        """
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        port_file = directory / "port"

        def start_on(port: int) -> "Hdfs":
            hdfs = cls(directory, port, archive, kerberos)
            port_file.write_text(str(port))
            return hdfs

        return start_on(int(port_file.read_text())) if port_file.exists() else on_free_port(start_on)

    @property
    def options(self) -> Mapping[str, str]:
        """What a storage's options have to say of it: where it speaks HTTP. A restart changes that."""
        return {"dfs.namenode.http-address": f"{_HOST}:{_WEB_PORT.findall(self.name_node.output())[-1]}"}

    def stop(self) -> None:
        """Ends all three processes. The directory stays."""
        with ThreadPoolExecutor(1 + _DATA_NODES) as pool:
            list(pool.map(KeptProcess.stop, (self.name_node, *self.data_nodes)))

    def kill(self) -> None:
        """Ends the NameNode as `kill -9` would; the DataNodes wait for it, and the data stay."""
        self.name_node.kill()

    def restart(self) -> None:
        """Ends the NameNode if it runs, starts it on the same port and data, and returns when files can be written."""
        self.name_node.stop()
        self.name_node = self._launch(_NAME_NODE)
        self._wait()

    def admin(self, *arguments: str) -> str:
        """What `hdfs dfsadmin` says to these arguments. Raises `Unavailable` when it fails."""
        command = self._command(_ADMIN, _shared("NameNode"))
        process = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=_START_SECONDS, check=False
        )
        if process.returncode:
            why = (process.stderr.strip() or process.stdout.strip()).splitlines()[-1:]
            raise Unavailable(f"dfsadmin {' '.join(arguments)} failed", " ".join(why), f"See {self._directory}")
        return process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _format(self) -> None:
        formatting = self._launch(_NAME_NODE, "-format", "-nonInteractive")
        try:
            formatting.wait_until(lambda output: _FORMATTED in output and not formatting.running, _START_SECONDS)
        finally:
            formatting.kill()

    def _wait(self) -> None:
        try:
            self.name_node.wait_until(self._is_ready, _START_SECONDS)
        except BaseException:
            for node in (self.name_node, *self.data_nodes):
                node.kill()
            raise

    def _is_ready(self, output: str) -> bool:
        for node in self.data_nodes:
            if not node.running:
                raise node.failure("ended before it was ready")
        return _LEFT in output and output.count(_REPORTED) >= _DATA_NODES

    def _launch(self, main: str, *arguments: str, number: int = 0) -> KeptProcess:
        name = main.rpartition(".")[2]
        archiving = self._archive is not None and not arguments and number < 2
        classes = f"-XX:ArchiveClassesAtExit={self._archive}/{name}.jsa" if archiving else _shared(name)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        return KeptProcess(
            [*self._command(main, classes, number), *arguments],
            self._directory / f"{name}{number or ''}.log",
            environment=environment,
            # What was written is on disk by then, and shutdown hooks take seconds.
            stop_signal=signal.SIGTERM if self._archive else signal.SIGKILL,
            grace_seconds=_ARCHIVE_SECONDS if self._archive else 10.0,
        )

    def _command(self, main: str, classes: str, number: int = 0) -> list[str]:
        settings = self._directory / f"{main.rpartition('.')[2]}{number or ''}.xml"
        properties = _settings(self._directory, self.uri, self._directory / f"data{number}")
        options = [*_JAVA_OPTIONS, f"-Djava.io.tmpdir={self._directory}", classes]
        if self._kerberos is not None:
            properties = {**properties, **_secure(self._kerberos)}
            options.append(f"-Djava.security.krb5.conf={self._kerberos.configuration}")
        settings.write_text(site(properties))
        class_path = os.pathsep.join(map(str, _jars()))
        return [str(java_17()), *options, "-cp", class_path, main, "-conf", str(settings)]


def make_archives(cache: Path) -> None:
    """Makes the archives of classes with which its processes start in half the time, unless they are there, by
    starting and stopping one HDFS. Raises `Unavailable`; it works without them."""
    paths = [archive_path(main.rpartition(".")[2]) for main in (_NAME_NODE, _DATA_NODE)]
    if all(path.is_file() for path in paths):
        return
    with TemporaryDirectory(prefix="archive-", dir=cache) as folder:
        Hdfs.start(Path(folder, "hdfs"), archive=Path(folder)).stop()
        for path, main in zip(paths, (_NAME_NODE, _DATA_NODE), strict=True):
            temporary = Path(folder, f"{main.rpartition('.')[2]}.jsa")
            if not temporary.is_file():
                why = "Java wrote none before its time was up"
                raise Unavailable("The archive of HDFS's classes was not made", why, "Go on without it")
            temporary.replace(path)


def archive_path(name: str) -> Path:
    """Where the archive of the classes that a process loads belongs."""
    return archive_of(f"hdfs-{name}", _jars())


def _shared(name: str) -> str:
    return f"-XX:SharedArchiveFile={archive_path(name)}"


def _settings(directory: Path, uri: str, data: Path) -> Mapping[str, str]:
    any_port = f"{_HOST}:0"
    return {
        "fs.defaultFS": uri,
        "hadoop.tmp.dir": str(directory / "tmp"),
        "dfs.namenode.name.dir": (directory / "name").as_uri(),
        "dfs.datanode.data.dir": data.as_uri(),
        "dfs.namenode.http-address": any_port,
        "dfs.datanode.address": any_port,
        "dfs.datanode.http.address": any_port,
        "dfs.datanode.ipc.address": any_port,
        **_SMALL,
    }


def _secure(kerberos: KerberosService) -> Mapping[str, str]:
    user = kerberos.principal.partition("/")[0]
    return {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": "privacy",
        "hadoop.security.auth_to_local": "RULE:[1:$1] RULE:[2:$1]",
        "hadoop.user.group.static.mapping.overrides": f"{user}=supergroup",
        # Metastores act for whoever calls them.
        "hadoop.proxyuser.hive.hosts": "*",
        "hadoop.proxyuser.hive.groups": "*",
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        # Its ports are none of root's, and what speaks HTTP has no certificate.
        "ignore.secure.ports.for.testing": "true",
        "dfs.web.authentication.kerberos.principal": kerberos.principal,
        "dfs.web.authentication.kerberos.keytab": str(kerberos.keytab),
        **{
            f"dfs.{node}.{key}": value
            for node in ("namenode", "datanode")
            for key, value in (("kerberos.principal", kerberos.principal), ("keytab.file", str(kerberos.keytab)))
        },
    }


def _jars() -> Sequence[Path]:
    return [*installed(manifest.HDFS_JARS, cache_folder().resolve()), *pyspark_jars("hadoop-client-*.jar")]
