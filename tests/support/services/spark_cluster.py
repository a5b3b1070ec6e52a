"""A standalone cluster of the Spark that pyspark's wheel brings: a master and workers, each a process of its own, that
share a secret with whoever submits to them."""

import os
import re
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from secrets import token_hex
from types import TracebackType

import pyspark

from calque.sandbox.java import java_17
from calque.sandbox.processes import KeptProcess

SPARK_HOME = Path(pyspark.__file__).parent
NOT_FOR_SPARK = ("METASTORE_CONF_DIR", "HIVE_CONF_DIR", "SPARK_CONNECT_MODE", "SPARK_REMOTE", "PYSPARK_PYTHON")
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_MASTER_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_START_SECONDS = 90.0
_SETTINGS = "conf"


def spark_environment(settings: Path) -> dict[str, str]:
    """For `spark-class` and `spark-submit` of pyspark's wheel, all on loopback, with the cluster's settings."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_SPARK}
    return environment | {
        "SPARK_CONF_DIR": str(settings),
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_17().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
    }


@dataclass(frozen=True, slots=True)
class SparkWorker:
    """`directory` has the folder `APPLICATION/EXECUTOR` of each executor that it started."""

    number: int
    directory: Path
    process: KeptProcess

    def executors(self) -> Sequence[int]:
        """The numbers of the processes that run its executors now."""
        process = self.process.pid
        children = Path(f"/proc/{process}/task").glob("*/children")
        return [int(child) for file in children for child in file.read_text().split()]

    def has_run(self, application: str, executor: str) -> bool:
        """Whether that executor is, or was, one of its own."""
        return (self.directory / application / executor).is_dir()

    def kill(self) -> None:
        """At once, and its executors: as a machine that fails."""
        executors = self.executors()
        self.process.kill()
        for executor in executors:
            with suppress(ProcessLookupError):
                os.kill(executor, signal.SIGKILL)


@dataclass(slots=True)
class SparkCluster:
    """A master and its workers on loopback and free ports; `stop` it, or use it as a context manager.

    url: what `spark-submit --master` is told. workers: those that were started, the killed ones too. settings: the
    folder of what all of its processes, and who submits, have to know.
    """

    directory: Path
    cores: int
    master: KeptProcess
    url: str
    workers: list[SparkWorker] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    @classmethod
    def start(cls, directory: Path, workers: int = 2, cores: int = 4) -> "SparkCluster":
        """Returns when all workers are known to the master; each offers so many cores and 2 GiB."""
        settings = _settings_in(directory)
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = _started(settings, directory / "master.log", _MASTER, *options)
        try:
            master.wait_until(lambda output: "New state: ALIVE" in output, _START_SECONDS)
            found = _MASTER_STARTED.search(master.output())
            assert found is not None
            cluster = cls(directory, cores, master, found[1])
        except BaseException:
            master.kill()
            raise
        try:
            with ThreadPoolExecutor(workers) as pool:
                for starting in [pool.submit(cluster.add_worker) for _ in range(workers)]:
                    starting.result()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def add_worker(self) -> SparkWorker:
        """Another one; returns when the master knows it."""
        number = next(self._numbers)
        directory = self.directory / f"worker{number}"
        directory.mkdir()
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        offer = ("--cores", str(self.cores), "--memory", "2g", "--work-dir", str(directory))
        process = _started(self.settings, directory / "worker.log", _WORKER, *options, *offer, self.url)
        worker = SparkWorker(number, directory, process)
        self.workers.append(worker)
        process.wait_until(lambda output: "Successfully registered with master" in output, _START_SECONDS)
        return worker

    def worker_of(self, application: str, executor: str) -> int:
        """The number of the worker that started that executor."""
        return next(worker.number for worker in self.workers if worker.has_run(application, executor))

    @property
    def settings(self) -> Path:
        return self.directory / _SETTINGS

    def stop(self) -> None:
        """Ends them all, their executors too."""
        for end in (*(worker.kill for worker in self.workers if worker.process.running), self.master.kill):
            _quietly(end)

    def __enter__(self) -> "SparkCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _settings_in(directory: Path) -> Path:
    settings = directory / _SETTINGS
    settings.mkdir(parents=True, exist_ok=True)
    file = settings / "spark-defaults.conf"
    file.touch(mode=0o600)
    file.write_text(f"spark.authenticate true\nspark.authenticate.secret {token_hex(32)}\n")
    return settings


def _started(settings: Path, log: Path, *arguments: str) -> KeptProcess:
    environment = spark_environment(settings) | {"SPARK_LOCAL_DIRS": str(log.parent)}
    return KeptProcess([str(SPARK_HOME / "bin" / "spark-class"), *arguments], log, environment=environment)


def _quietly(end: Callable[[], None]) -> None:
    with suppress(OSError, IndexError):
        end()
