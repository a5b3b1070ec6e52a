"""The Spark session of a process: under spark-submit the one that this brings, else a quiet one on this machine that
starts fast.

The settings are measured. Its JVM needs about 400 MB, each Python worker 50–160 MB.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from calque.errors import Refused
from calque.java import DOES_NOT_START, SUBMITTED, TO_INSTALL

LOG = logging.getLogger(__name__)

NOT_FOR_SPARK = ("METASTORE_CONF_DIR", "HIVE_CONF_DIR", "SPARK_HOME", "SPARK_CONNECT_MODE")
"""The environment variables that Spark's JVM must not inherit: settings of a metastore, and another Spark than the
installed one."""

STREAMING = {
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # A query that died in its first batch may have left a part of a file, which would keep it from ever starting again.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Other users get no right to the files that Spark itself writes, such as checkpoints.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
}
AUTHENTICATED = "spark.authenticate"
"""The setting by which a caller of Spark's own ports must know a secret. On one machine Spark makes the secret, anew
for each process, and tells it to no other; on a cluster all of its processes have to be told (docs/deployment.md)."""
LOCAL = {
    "spark.master": "local[2]",
    AUTHENTICATED: "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.maxResultSize": "0",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
NO_LOOK_UP = {"PYSPARK_DRIVER_PYTHON": "none-of-calque"}
"""The environment variable that keeps Spark from looking in its Python for packages that bring data sources, in two
processes, before a query meets the first data source: Spark does not look where it finds no such program. calque's
sources are registered, and run by `PYSPARK_PYTHON`."""
TELL_THE_CLUSTER = (
    "set spark.authenticate and spark.authenticate.secret for the cluster and for spark-submit, in spark-defaults.conf"
)
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
STARTING = threading.Lock()
JVM = (*QUICK_START, "-Xss4m", "-Djava.net.preferIPv4Stack=true")


def session(
    app_name: str,
    jars: Sequence[Path],
    local_dir: Path,
    conf: Mapping[str, str] | None = None,
    archive: Path | None = None,
) -> SparkSession:
    """Return the process's session. The first call starts it, on any thread, and `conf` wins over the settings here.

    `jars` go on the class path; with Delta's among them the session speaks Delta. Scratch files, and the JVM's log
    (`spark.log`), go below `local_dir`. `archive` is a file of `archive.make_archive`; one that is missing or no longer
    fits is ignored. Under spark-submit the JVM, its class path and its log are spark-submit's, its settings win, and
    the session speaks Delta where `--jars` or `--packages` brought it. An error that a function of calque's raises
    inside a query is reported by the query alone, not by py4j's logger too. Raises `Refused` when no JVM can be
    started.
    """
    with STARTING:
        return started(app_name, jars, local_dir, conf, archive)


def started(
    app_name: str, jars: Sequence[Path], local_dir: Path, conf: Mapping[str, str] | None, archive: Path | None
) -> SparkSession:
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    if SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    if SUBMITTED in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return submitted(app_name, STREAMING | dict(conf or {}))
    settings = STREAMING | of_delta(jars) | LOCAL | of_folder(local_dir) | on_class_path(jars)
    settings["spark.driver.extraJavaOptions"] = shlex.join((*java_options(local_dir), *from_archive(archive)))
    return launched(app_name, settings | dict(conf or {}), local_dir)


def of_delta(jars: Iterable[Path]) -> dict[str, str]:
    return DELTA if any("delta-spark" in jar.name for jar in jars) else {}


def of_folder(local_dir: Path) -> dict[str, str]:
    local_dir.mkdir(parents=True, exist_ok=True)
    return {
        "spark.local.dir": str(local_dir.resolve()),
        "spark.sql.warehouse.dir": str(local_dir.resolve() / "warehouse"),
    }


def on_class_path(jars: Sequence[Path]) -> dict[str, str]:
    """Return the settings that put the jars on the class path of the driver and the executors; empty without jars.
    `spark.jars` would put them on a child class loader, whose classes an archive of the JVM (`archive`) can't hold."""
    path = os.pathsep.join(str(jar) for jar in jars)
    return {"spark.driver.extraClassPath": path, "spark.executor.extraClassPath": path} if path else {}


def python_for_workers(local_dir: Path) -> str:
    """Write a script below `local_dir` that runs this Python with the path that it has here, and return the script;
    where scripts can't be run, return this Python. Spark puts archives of pyspark's and py4j's sources first on its
    workers' path, and modules from there are compiled anew in each worker: 0.4 s of a processor for each, and a query
    starts several."""
    path = shlex.quote(os.environ.get("PYTHONPATH", ""))
    text = f'#!/bin/sh\nPYTHONPATH={path} exec {shlex.quote(sys.executable)} "$@"\n'
    # Processes that share a folder may have different scripts.
    script = local_dir.resolve() / f"python-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    draft = script.with_name(f"{script.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(0o755)
    draft.replace(script)
    return str(script) if os.access(script, os.X_OK) else sys.executable


def java_options(local_dir: Path) -> tuple[str, ...]:
    return (
        *JVM,
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        f"-Djava.io.tmpdir={local_dir.resolve()}",
    )


def from_archive(archive: Path | None) -> tuple[str, ...]:
    """Return the JVM's options to use the archive; none where it is missing. Without `-Xlog` a JVM whose class path
    differs says so on standard output."""
    if archive is None or not archive.is_file():
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")


def submitted(app_name: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(app_name)
    SparkContext._ensure_initialized()
    submitted_settings = SparkConf()
    if is_local(submitted_settings.get("spark.master") or "local"):
        settings = {**settings, AUTHENTICATED: "true"}
    elif submitted_settings.get(AUTHENTICATED) != "true":
        LOG.warning("Spark's ports answer whoever reaches them: %s", TELL_THE_CLUSTER)
    brought = map(Path, (submitted_settings.get("spark.jars") or "").split(","))
    for key, value in {**of_delta(brought), **settings}.items():
        if not submitted_settings.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def is_local(master: str) -> bool:
    """Return whether all of Spark is this process."""
    return master == "local" or master.startswith("local[")


def launched(app_name: str, settings: Mapping[str, str], local_dir: Path) -> SparkSession:
    """Return a session on a JVM of calque's own. The JVM lies in a process group of its own, so that a Ctrl-C ends only
    what calque ends; it ends with this process, however that ends. Raises `Refused` when the JVM does not start."""
    spark_conf = SparkConf(loadDefaults=False).setAppName(app_name).setAll(list(settings.items()))
    log = local_dir / "spark.log"
    before = log.stat().st_size if log.exists() else 0
    with for_spark(os.environ, python_for_workers(local_dir)), log.open("ab") as output:
        options = WithoutCodeInTheChild(stdout=output, stderr=output, start_new_session=True)
        try:
            gateway = launch_gateway(spark_conf, options)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as problem:
            raise Refused(DOES_NOT_START, first_line(log, before), TO_INSTALL) from problem
        return SparkSession(SparkContext(conf=spark_conf, gateway=gateway))


class WithoutCodeInTheChild(dict[str, Any]):
    """Options of `Popen` that take no `preexec_fn`. pyspark gives one, against Ctrl-C, for which a session of its own
    does as well.

    With one, Python forks, runs the hooks of all libraries and then Python's own code in the child: beside the threads
    of delta-rs, Arrow and hdfs-native that child may wait for a lock that no thread holds any more, and its parent for
    the child.
    """

    def __setitem__(self, option: str, value: object) -> None:
        if option != "preexec_fn":
            super().__setitem__(option, value)


@contextmanager
def for_spark(environment: MutableMapping[str, str], python: str) -> Iterator[None]:
    """Change the environment within the context: without `NOT_FOR_SPARK`, and with what makes a start quick, that is
    `NO_LOOK_UP`, options for the small JVM that composes the command, and `python`, the Python that workers run, unless
    the environment names one."""
    usual = {"SPARK_LAUNCHER_OPTS": " ".join(QUICK_START), "PYSPARK_PYTHON": python}
    added = {name: value for name, value in usual.items() if name not in environment} | NO_LOOK_UP
    # Other threads may change the rest meanwhile.
    before = {name: environment.pop(name, None) for name in (*NOT_FOR_SPARK, *added)}
    environment.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value


def first_line(log: Path, after: int) -> str:
    """Return the first line of the log behind its byte `after`; "It said nothing" where the log has no more text."""
    lines = log.read_bytes()[after:].decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "It said nothing"
