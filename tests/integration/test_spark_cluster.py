"""The jobs on a standalone cluster of Spark's: a master, and two workers to which the Python environment is shipped.

`prove/test_spark_cluster_deaths.py` kills drivers too, and has a large window prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.services.cluster_worlds import CAPTURE, SECONDS, ClusterWorld, cluster_world, log_of
from support.services.servers import Shared


@pytest.fixture
def world(shared: Shared, tmp_path: Path) -> Iterator[ClusterWorld]:
    with cluster_world(shared, tmp_path) as made:
        yield made


@pytest.mark.timeout(400)
def test_both_workers_read_and_copy_and_one_that_dies_loses_nothing(world: ClusterWorld) -> None:
    world.submit(CAPTURE)
    world.create()
    files = world.insert_files()
    reader = threading.Thread(target=world.read_on)
    reader.start()
    driver = world.replicate("--until", "head")
    world.until(lambda: len(driver.history().workers("list")) == 2, driver)
    world.until(lambda: len(driver.history().workers("copy")) == 2, driver)
    world.kill_worker(driver, "copy")
    assert driver.process.wait(SECONDS) == 0, log_of(driver)
    verified = world.calque("verify", "--json", "--data", "checksum")
    world.ending.set()
    reader.join()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert world.shown == [frozenset(), files]
