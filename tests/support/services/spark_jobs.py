"""The entry points in `jobs/` on a cluster of Spark's, and what Spark's own event logs say of where their tasks ran.

The Python environment travels as an archive. Spark finds its Python by one relative path: in the working directory of
an executor, where the archive is unpacked, and in that of the driver, which has the same folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.places import ROOT
from support.services.environments import NAME
from support.services.spark_cluster import JVM, SPARK_HOME, SparkCluster, spark_environment

SETTINGS = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
}
"""One core on each of two workers. Settings of a real cluster may be any."""
Json = Mapping[str, Any]


@dataclass(slots=True)
class ClusterJob:
    """A job of `jobs/` in a process group of its own. `folder` has the environment of the driver and takes logs."""

    cluster: SparkCluster
    folder: Path
    name: str
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, job: str, archive: Path | None, *arguments: str, settings: Mapping[str, str] | None = None) -> None:
        """With an archive each executor gets a copy of it; without one all use the driver's folder."""
        self.events.mkdir(parents=True)
        settings = {**SETTINGS, "spark.eventLog.dir": self.events.as_uri(), **(settings or {})}
        words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        words += ["--master", self.cluster.url, *(["--archives", f"{archive}#{NAME}"] if archive else [])]
        place = f"./{NAME}" if archive else f"{self.folder / NAME}"
        python = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": f"{place}/bin/python"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-submit"), *words, str(ROOT / "jobs" / job), *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=spark_environment(self.cluster.settings) | python,
                start_new_session=True,
            )

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def events(self) -> Path:
        return self.folder / "events" / self.name

    def kill(self) -> None:
        """The driver, JVM and Python, as a machine that fails."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def history(self) -> History:
        return History.read(self.events, self.cluster)


@dataclass(frozen=True, slots=True)
class History:
    """What an application's event log says so far. Spark writes it through at the beginning and end of each job, and
    when executors come and go."""

    application: str
    events: Sequence[Json]
    cluster: SparkCluster

    @classmethod
    def read(cls, folder: Path, cluster: SparkCluster) -> History:
        lines = [line for file in folder.glob("app-*") for line in file.read_text(errors="replace").splitlines()]
        events = [event for line in lines if (event := parsed(line)) is not None]
        names = [file.name.removesuffix(".inprogress") for file in folder.glob("app-*")]
        return cls(names[0] if names else "", events, cluster)

    def jobs(self, verb: str) -> Mapping[int, Json]:
        """The jobs of which calque says that they do this, by their numbers."""
        return {
            event["Job ID"]: event
            for event in self._of("JobStart")
            if str(event["Properties"].get("spark.job.description", "")).startswith(f"calque: {verb} ")
        }

    def running(self, verb: str) -> Sequence[int]:
        ended = {event["Job ID"] for event in self._of("JobEnd")}
        return [job for job in self.jobs(verb) if job not in ended]

    def succeeded(self, verb: str) -> Sequence[int]:
        ended = {event["Job ID"] for event in self._of("JobEnd") if event["Job Result"]["Result"] == "JobSucceeded"}
        return [job for job in self.jobs(verb) if job in ended]

    def seconds(self, verb: str) -> float:
        """From the beginning of the first of these jobs to the end of the last."""
        jobs = self.jobs(verb)
        ends = [event["Completion Time"] for event in self._of("JobEnd") if event["Job ID"] in jobs]
        return (max(ends) - min(event["Submission Time"] for event in jobs.values())) / 1000 if ends else 0.0

    def workers(self, verb: str) -> frozenset[int]:
        """The numbers of the workers on which tasks of such jobs came to their end."""
        stages = {stage for job in self.jobs(verb).values() for stage in job["Stage IDs"]}
        executors = {
            event["Task Info"]["Executor ID"]
            for event in self._of("TaskEnd")
            if event["Stage ID"] in stages and event["Task End Reason"]["Reason"] == "Success"
        }
        return frozenset(self.cluster.worker_of(self.application, executor) for executor in executors)

    def executors(self) -> frozenset[str]:
        """Those that are there."""
        removed = {event["Executor ID"] for event in self._of("ExecutorRemoved")}
        return frozenset(event["Executor ID"] for event in self._of("ExecutorAdded")) - removed

    def removed_while_running(self, verb: str) -> bool:
        """Whether an executor was lost while such a job ran."""
        jobs, running = self.jobs(verb), set[int]()
        for event in self.events:
            match event["Event"].removeprefix("SparkListener"):
                case "JobStart" if event["Job ID"] in jobs:
                    running.add(event["Job ID"])
                case "JobEnd":
                    running.discard(event["Job ID"])
                case "ExecutorRemoved" if running:
                    return True
        return False

    def _of(self, kind: str) -> Sequence[Json]:
        return [event for event in self.events if event["Event"] == f"SparkListener{kind}"]


def parsed(line: str) -> Json | None:
    """None for a line that is not complete yet."""
    try:
        event: Json = json.loads(line)
    except ValueError:
        return None
    return event
