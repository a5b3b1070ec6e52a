"""A real warehouse is bootstrapped while several writers change it as fast as its metastore takes it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calque.model.hive import Database
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.sources.stampede import Onlooker, Past, Stampeder

TABLES = 15
"""Of each of four writers."""
SECONDS = 3.0
"""How long calque goes on under load before it is killed, and after while everything is compared."""


@pytest.mark.prove
def test_a_warehouse_that_changes_all_the_time_is_bootstrapped_killed_verified_and_shows_nothing_it_never_was(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
    first, second = deployment.databases
    for database in deployment.databases:
        deployment.source.client.create_database(Database(database, location=f"file:{tmp_path}/none/{database}"))
    past, stop = Past(), threading.Event()
    uri, data = servers["source"].uri, tmp_path / "data"
    writers = [Stampeder(uri, number, [first], data, past) for number in range(3)]
    writers.append(Stampeder(uri, 3, [first, second, second], data, past, dropped=second))
    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(lambda writer: writer.fill(TABLES), writers))
    watched = threading.Event()
    onlooker = threading.Thread(target=Onlooker(servers["target"].uri, past).run, args=[watched], daemon=True)
    threads = [threading.Thread(target=writer.run, args=[stop], daemon=True) for writer in writers]
    begun, filled = time.monotonic(), sum(writer.calls for writer in writers)
    try:
        for thread in (onlooker, *threads):
            thread.start()
        deployment.start()
        wait_until_listed(deployment)
        time.sleep(SECONDS / 3)
        assert deployment.end(signal.SIGKILL) == -signal.SIGKILL
        deployment.start()
        wait_until_listed(deployment, times=2)
        with ThreadPoolExecutor(1) as pool:
            verifying = pool.submit(deployment.alone, "verify", "--json", timeout=180)
            time.sleep(SECONDS)
            stop.set()
            under_load = verifying.result(180)
        for thread in threads:
            thread.join(60)
        calls, seconds = sum(writer.calls for writer in writers) - filled, time.monotonic() - begun
        print(f"{calls} calls of the writers in {seconds:.0f} s, {past.seen} looks at the target")
        assert [writer.failed for writer in writers if writer.failed] == []
        deployment.settle()
        watched.set()
        onlooker.join(60)
        assert past.problems == [], deployment.tail()
        assert past.seen > 100
        reader = Onlooker(servers["target"].uri, past)
        newest = past.newest()
        assert {name: reader.state(name) for name in newest} == newest
        verified = deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert under_load.returncode in (0, 75), under_load.stdout + under_load.stderr
        if under_load.stdout:
            assert json.loads(under_load.stdout)["differences"] == []
        assert deployment.end(signal.SIGTERM) == 0
    finally:
        stop.set()
        watched.set()
        deployment.close()


def wait_until_listed(deployment: Deployment, times: int = 1, seconds: float = 60) -> None:
    """Until the target's replica was opened that often."""
    deadline = time.monotonic() + seconds
    while deployment.log.read_text().count(" opens at event ") < times:
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.05)
