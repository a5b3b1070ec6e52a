"""The jobs on a standalone cluster of Spark's, with deaths in the middle of all kinds of work.

One deployment lives through it all: its tables are read exactly, files of an INSERT are copied, and a window of 50,000
events is prepared. In the middle of each a worker is killed with its executors, and then the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.services.cluster_worlds import (
    CAPTURE,
    SECONDS,
    ClusterWorld,
    cluster_world,
    log_of,
    newest_captured,
    shown_files,
)
from support.services.servers import shared_servers


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[ClusterWorld]:
    with shared_servers(tmp_path_factory.mktemp) as shared, cluster_world(shared, tmp_path) as made:
        yield made


@pytest.mark.timeout(600)
def test_workers_and_drivers_that_die_in_the_middle_of_their_work_lose_nothing(world: ClusterWorld) -> None:
    capture = world.submit(CAPTURE)
    world.create()
    first_files = world.insert_files()
    reader = threading.Thread(target=world.read_on)
    reader.start()
    reads = world.kill_in_the_middle(world.replicate(), "copy")
    driver = world.replicate()
    world.until(lambda: shown_files(world.target) == first_files, driver)
    all_files = world.insert_files()
    copies = world.kill_in_the_middle(driver, "copy")
    world.change_many_times()
    newest = world.source.current()
    world.until(lambda: newest_captured(world) == newest, capture)
    windows = world.kill_in_the_middle(world.replicate(), "prepare")
    last = world.replicate("--until", "head")
    assert last.process.wait(2 * SECONDS) == 0, log_of(last)
    verified = world.calque("verify", "--json", "--data", "checksum")
    world.ending.set()
    reader.join()
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert world.shown == [frozenset(), first_files, all_files]
    # Tasks of every kind came to their end on two workers, and what was killed was in the middle of such work.
    whole = last.history()
    assert [len(of.workers(verb)) for of, verb in ((copies, "list"), (copies, "copy"), (whole, "prepare"))] == [2, 2, 2]
    deaths = ((reads, "copy"), (copies, "copy"), (windows, "prepare"))
    assert all(of.removed_while_running(verb) and of.running(verb) for of, verb in deaths)
    assert whole.succeeded("prepare")
