"""Spark Connect servers, each over one metastore: the engine of a cluster. The server's jar is in pyspark's wheel."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from calque.sandbox.java import java_17
from calque.sandbox.processes import KeptProcess

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = re.compile(r"Spark Connect server started at: \S*?:(\d+)")
NOT_FOR_SPARK = ("METASTORE_CONF_DIR", "HIVE_CONF_DIR", "SPARK_HOME", "SPARK_CONNECT_MODE", "SPARK_REMOTE")
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true",
}


class ConnectServer:
    """Listens at `url` when it is made; its warehouse, scratch files and log lie below `root`."""

    def __init__(self, metastore: str, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        logging = root / "log4j2.properties"
        logging.write_text(
            "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
            "appender.out.type = Console\nappender.out.name = out\nappender.out.layout.type = PatternLayout\n"
            "appender.out.layout.pattern = %p %c: %m%n\n"
        )
        own = {
            "spark.hadoop.hive.metastore.uris": metastore,
            "spark.sql.warehouse.dir": f"file:{root}/warehouse",
            "spark.local.dir": str(root),
        }
        folder = Path(pyspark.__file__).parent
        settings = [word for key, value in {**SETTINGS, **own}.items() for word in ("--conf", f"{key}={value}")]
        options = [
            "--driver-java-options",
            f"{SETTINGS['spark.driver.extraJavaOptions']} -Dlog4j.configurationFile={logging}",
        ]
        command = [str(folder / "bin" / "spark-submit"), "--class", SERVER, *settings, *options, "spark-internal"]
        environment = {key: value for key, value in os.environ.items() if key not in NOT_FOR_SPARK}
        environment |= {
            "SPARK_HOME": str(folder),
            "JAVA_HOME": str(java_17().parents[1]),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self.process = KeptProcess(command, root / "connect.log", environment=environment, grace_seconds=2)
        try:
            self.process.wait_until(lambda output: STARTED.search(output) is not None, 120)
        except BaseException:
            self.process.kill()
            raise
        match = STARTED.search(self.process.output())
        assert match is not None
        self.port = int(match[1])

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@contextmanager
def connect_servers(
    metastores: Mapping[str, str], folder: Callable[[str], Path]
) -> Iterator[Mapping[str, ConnectServer]]:
    """One for each address, by name; they start together and are always stopped."""
    folders = {name: folder(f"engine-{name}") for name in metastores}
    with ExitStack() as stack, ThreadPoolExecutor(len(metastores)) as pool:
        starting = {name: pool.submit(ConnectServer, uri, folders[name]) for name, uri in metastores.items()}
        problems = [problem for one in starting.values() if (problem := one.exception()) is not None]
        servers = {name: one.result() for name, one in starting.items() if one.exception() is None}
        for server in servers.values():
            stack.callback(server.stop)
        if problems:
            raise problems[0]
        yield servers
