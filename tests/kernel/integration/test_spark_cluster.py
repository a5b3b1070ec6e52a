"""The jobs on a standalone cluster of Spark's: a master, and two workers to which the Python environment is shipped.

`prove/test_spark_cluster_deaths.py` kills drivers too, and has a large window prepared. Other runs than proofs have
this test where what it is about was changed; `test_jobs.py` always has the jobs under `spark-submit` without a cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import ROOT
from support.runs.changes import changed_files
from support.runs.proofs import is_proving
from support.runs.selection import chosen
from support.services.cluster_worlds import CAPTURE, ClusterWorld, cluster_world, shown_files
from support.services.servers import Shared

FILE_BYTES = 32 << 10
"""The files of an INSERT take five seconds at the bandwidth of the target."""
BOTH_EXECUTORS_FIRST = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
"""No task begins before both workers have their executor."""


def is_unchanged() -> bool:
    """As it is on the default branch, as far as git can tell: where it can't, the cluster is tried."""
    changed = changed_files(ROOT)
    return changed is not None and "spark_cluster" not in chosen(ROOT, changed)


pytestmark = [pytest.mark.prove] if is_proving() or is_unchanged() else []


@pytest.fixture
def world(shared: Shared, tmp_path: Path) -> Iterator[ClusterWorld]:
    with cluster_world(shared, tmp_path) as made:
        yield made


@pytest.mark.timeout(700)
def test_both_workers_read_and_copy_and_one_that_dies_loses_nothing(world: ClusterWorld) -> None:
    """Each kind of work comes alone, and its two tasks last far longer than Spark needs to begin both of them."""
    world.submit(CAPTURE)
    world.create()
    reader = threading.Thread(target=world.read_on)
    reader.start()
    driver = world.replicate(settings=BOTH_EXECUTORS_FIRST)
    world.until(lambda: len(driver.history().workers("list")) == 2, driver)
    first_files = world.insert_files(FILE_BYTES)
    world.until(lambda: shown_files(world.target) == first_files, driver)
    assert len(driver.history().workers("copy")) == 2
    all_files = world.insert_files(FILE_BYTES)
    world.kill_worker(driver, "copy")
    world.until(lambda: shown_files(world.target) == all_files, driver)
    verified = world.calque("verify", "--json", "--data", "checksum")
    world.ending.set()
    reader.join()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert world.shown == [frozenset(), first_files, all_files]
