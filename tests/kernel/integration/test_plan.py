"""`calque plan` on real metastores: before the first run, while one runs and after it, and what the next one makes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment

SECONDS = 90


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path, next(NUMBERS), servers["source"], {"three": servers["target"]}, seed=6)
    yield made
    made.close()


def plan(deployment: Deployment) -> dict[str, Any]:
    found = deployment.calque("plan", "--json")
    assert found.returncode == 0, found.stderr
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def settled_plan(deployment: Deployment) -> dict[str, Any]:
    """The plan to the source's newest event, when all is captured and evidence has nothing to add."""
    deadline, before = time.monotonic() + SECONDS, None
    while True:
        found = plan(deployment)
        whole = all(group["reads"] or group["complete"] for group in found["groups"])
        if found["upto"] == deployment.source.current() and whole and found == before:
            return found
        assert time.monotonic() < deadline, f"{found}\n{deployment.tail()}"
        before = found
        time.sleep(0.5)


def tables_of(deployment: Deployment) -> list[str]:
    source = deployment.source
    return sorted(f"{database}.{table}" for database in source.databases() for table in source.tables(database))


def test_the_next_run_makes_the_hops_that_the_plan_says(deployment: Deployment) -> None:
    while len(tables_of(deployment)) < 3:
        deployment.write(1)
    first = plan(deployment)
    assert [group["tables"] for group in first["groups"]] == [[name] for name in tables_of(deployment)]
    assert {group["reads"][0]["reason"] for group in first["groups"]} == {"bootstrap"}
    assert not (deployment.root / "state").exists()
    deployment.start()
    deployment.settle()

    assert deployment.calque("pause", "--target", "three").returncode == 0
    deployment.wait_for(lambda status: status["state"] == "paused")
    deployment.write(30, pause=0.1)
    running = settled_plan(deployment)
    assert deployment.end(signal.SIGTERM) == 0
    assert plan(deployment) == running
    told = deployment.calque("plan")
    assert "it is paused" in told.stdout, told.stdout + told.stderr

    epochs = json.loads(deployment.calque("epochs", "list", "--json").stdout)
    assert deployment.calque("resume", "--target", "three").returncode == 0
    done = deployment.calque("run", "--until", "head")
    assert done.returncode == 0, done.stderr
    made = json.loads(deployment.calque("epochs", "list", "--json").stdout)[len(epochs) :]
    assert running["hops"] > 0
    assert [(epoch["from_event_id"], epoch["event_id"]) for epoch in made] == [(running["from"], running["upto"])]
    for number in ("hops", "files", "bytes"):
        foreseen = running["hops"] if number == "hops" else sum(group[number] for group in running["groups"])
        assert made[0][number] == foreseen, number
    after = plan(deployment)
    assert (after["events"], after["groups"], after["hops"], after["calls"]) == (0, [], 0, 0)
