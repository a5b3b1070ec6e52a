"""The entry points in jobs/ under spark-submit: capture and replicate as two processes over one state folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from calque.demo.source import Source
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.judges.documents import read_document
from support.places import ROOT

SUBMIT = Path(sys.executable).with_name("spark-submit")
BLAH = TableName("submitted", "blah")
SMALL = ("spark.ui.enabled=false", "spark.driver.bindAddress=127.0.0.1", "spark.driver.host=127.0.0.1")

pytestmark = pytest.mark.skipif(not SUBMIT.exists(), reason=f"there is no {SUBMIT}")


@pytest.fixture
def config(servers: Mapping[str, Metastore], tmp_path: Path) -> Path:
    """A target that starts empty, where the log is now."""
    source, target = servers["source"], servers["target"]
    file = tmp_path / "calque.toml"
    file.write_text(
        f"""
        [source]
        name = "hq"
        metastore = "{source.uri}"
        [targets.dr]
        metastore = "{target.uri}"
        warehouse = "file://{tmp_path}/dr"
        include = ["{BLAH.database}.*"]
        start = {HiveClient(source.uri).current()}
        """
    )
    return file


def submit(job: str, config: Path, *arguments: str) -> subprocess.Popen[str]:
    """A job under spark-submit, in a process group of its own."""
    settings = [word for setting in SMALL for word in ("--conf", setting)]
    command = [str(SUBMIT), "--master", "local[1]", *settings, str(ROOT / "jobs" / job), "-c", str(config), *arguments]
    with config.with_name(f"{job}.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            text=True,
            cwd=config.parent,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )


def end(job: subprocess.Popen[str], driver: Path) -> int:
    """Ask the Python process, whose number stands in the lock of its role: spark-submit's own ends it in mid-call."""
    os.kill(int(driver.read_text()), signal.SIGTERM)
    return job.wait(60)


def log_of(config: Path, job: str) -> str:
    return config.with_name(f"{job}.log").read_text()


def write_example(client: HiveClient, root: Path) -> None:
    """A table, a file in each of two partitions, and another file in the first."""
    source = Source(client, root)
    source.create_database(BLAH.database)
    source.create_table(BLAH, (Column("a", "bigint"),), (Column("p", "string"),), external=True)
    source.add_partitions(BLAH, [["a"]])
    source.add_partitions(BLAH, [["b"]])
    source.insert(BLAH, "p=a")


def test_capture_and_replicate_are_two_processes_that_share_a_state_folder(
    servers: Mapping[str, Metastore], config: Path
) -> None:
    client = HiveClient(servers["source"].uri)
    write_example(client, config.parent / "data")
    capture = submit("capture.py", config)
    replicate = submit("replicate.py", config, "--target", "dr", "--until", "head")
    try:
        reached = replicate.wait(200)
        another = run_here("jobs/capture.py", "-c", str(config))
        verified = run_here("-m", "calque.cli", "verify", "--json", "-c", str(config))
        ended = end(capture, config.parent / "state" / "locks" / "capture.lock")
    finally:
        for job in (capture, replicate):
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait(60)
        client.close()
    assert reached == 0, log_of(config, "replicate.py")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    compared = read_document("verify", verified.stdout)["compared"]
    assert (compared["tables"], compared["partitions"], compared["files"]) == (1, 2, 3)
    assert (another.returncode, another.stderr.count("Another process runs capture on ")) == (75, 1)
    assert ended == 0, log_of(config, "capture.py")


def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
