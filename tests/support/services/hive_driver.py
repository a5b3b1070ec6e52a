"""Hive 4.0.1 as a process that runs statements, driven over py4j: a client of a metastore of the sandbox.

The program is py4j's own gateway with Hive's jars on its class path. What a statement needs of Hive is its driver; all
that a server of Hive's adds is about its clients.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from calque.resources import cache_folder
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.artifacts import installed
from calque.sandbox.hive_settings import site
from calque.sandbox.java import java_17, pyspark_jars
from calque.sandbox.processes import GATEWAY, KeptProcess, gateway_to
from support.services import manifest

HIVE_4_0 = MetastoreSettings(version="4.2.0", extra={"metastore.alterPartitions.notification.v2.enabled": "false"})
"""A server for it: Hive 4.0.1 dumps an event of several partitions, which 4.2.0 writes by default, as unknown."""
OPENED = (
    "java.lang",
    "java.util",
    "java.io",
    "java.net",
    "java.nio",
    "java.util.concurrent",
    "java.text",
    "java.time",
    "java.util.concurrent.atomic",
    "java.util.regex",
    "java.lang.reflect",
    "java.lang.invoke",
    "sun.nio.ch",
)
OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
START_SECONDS = 60.0
SETTINGS = {
    "fs.defaultFS": "file:///",
    "hive.support.concurrency": "false",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
    "hive.stats.autogather": "false",
    "hive.stats.column.autogather": "false",
    "hive.execution.engine": "mr",
    "mapreduce.framework.name": "local",
    "hive.security.authorization.enabled": "false",
    "hive.query.results.cache.enabled": "false",
    "hive.notification.event.poll.interval": "0",
    "hive.materializedview.rewriting": "false",
    "hive.scheduled.queries.executor.enabled": "false",
    "hive.metastore.dml.events": "true",
    "hive.repl.cm.enabled": "true",
    "hive.repl.retry.total.duration": "5s",
    "hive.repl.retry.initial.delay": "1s",
}
FOLDERS = {
    "hive.repl.rootdir": "dumps",
    "hive.repl.replica.functions.root.dir": "functions",
    "hive.repl.replica.external.table.base.dir": "base",
    "hive.exec.scratchdir": "scratch",
}
LOCAL_FOLDERS = {
    "hive.exec.local.scratchdir": "local",
    "hive.downloaded.resources.dir": "resources",
    "hive.querylog.location": "queries",
}
"""Paths of this machine, where a URI would be a relative one."""


@dataclass
class Hive:
    """One session. It belongs to the thread that made it, as Hive keeps sessions by thread."""

    gateway: JavaGateway
    configuration: Any
    log: Path

    @property
    def jvm(self) -> Any:
        return self.gateway.jvm

    def run(self, statement: str) -> list[str]:
        """The rows, with tabs between columns."""
        driver = self.jvm.org.apache.hadoop.hive.ql.DriverFactory.newDriver(self.configuration)
        rows = self.jvm.java.util.ArrayList()
        try:
            driver.run(statement)
            driver.getResults(rows)
        except Py4JJavaError as error:
            said = str(error).split("\n\tat ", 1)[0]
            raise AssertionError(f"{statement}: {said}\n{self.log.read_text()[-4000:]}") from error
        else:
            return list(rows)
        finally:
            driver.close()
            for one in (driver, rows):
                self.gateway.detach(one)


@contextmanager
def hive(folder: Path, metastore: Metastore, **settings: str) -> Iterator[Hive]:
    """In the folder, which has those of `FOLDERS` and `LOCAL_FOLDERS`, on that metastore and its warehouse."""
    configured = folder / "hive-site.xml"
    configured.write_text(site({**SETTINGS, **roots(folder), **places_of(metastore), **settings}))
    class_path = os.pathsep.join(
        map(str, [*installed(manifest.HIVE_JARS, cache_folder()), *pyspark_jars("py4j-*.jar")])
    )
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    log = folder / "hive.log"
    command = [str(java_17()), *opened, *OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", class_path, *GATEWAY]
    server = KeptProcess(command, log, stop_signal=signal.SIGKILL)
    try:
        gateway = gateway_to(server, START_SECONDS)
        # Python lets go of objects in any thread, and another thread's call moves the session to another thread there.
        gateway.gateway_property.enable_memory_management = False
        try:
            yield session(gateway, configured, log)
        finally:
            gateway.shutdown()
    finally:
        server.stop()


def session(gateway: JavaGateway, configured: Path, log: Path) -> Hive:
    jvm = gateway.jvm
    hive_conf = jvm.org.apache.hadoop.hive.conf.HiveConf
    hive_conf.setHiveSiteLocation(jvm.java.io.File(str(configured)).toURI().toURL())
    configuration = hive_conf()
    state = jvm.org.apache.hadoop.hive.ql.session.SessionState
    state.start(state(configuration))
    return Hive(gateway, configuration, log)


def roots(folder: Path) -> Mapping[str, str]:
    for name in (*FOLDERS.values(), *LOCAL_FOLDERS.values()):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o777)
    uris = {key: (folder / name).as_uri() for key, name in FOLDERS.items()}
    return {**uris, **{key: str(folder / name) for key, name in LOCAL_FOLDERS.items()}}


def places_of(metastore: Metastore) -> Mapping[str, str]:
    return {
        "hive.metastore.uris": metastore.uri,
        "hive.metastore.warehouse.dir": metastore.warehouse.as_uri(),
        "hive.metastore.warehouse.external.dir": metastore.external_warehouse.as_uri(),
        "hive.repl.cmrootdir": (metastore.directory / "change_manager").as_uri(),
    }
