"""Two deployments of one target, each with a state folder of its own, as real processes on real metastores."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from calque.demo.source import Source
from calque.engine.sides.log_reads import events_after
from calque.model.hive import Column
from calque.model.names import OURS, TableName
from calque.sandbox import Metastore
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared

COLUMNS = (Column("id", "bigint"), Column("name", "string"))
MANY = 60


@pytest.fixture
def servers(shared: Shared) -> Mapping[str, Metastore]:
    return dict(zip(("source", "3.1.3", "4.2.0"), shared("source-3", "target-3", "target-4").values(), strict=True))


@pytest.fixture
def pair(
    request: pytest.FixtureRequest, servers: Mapping[str, Metastore], tmp_path: Path
) -> Iterator[tuple[Deployment, Deployment]]:
    """Two that differ in their state folders alone."""
    version = request.param
    number = next(NUMBERS)
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found.append(Deployment(tmp_path / name, number, servers["source"], {"dr": servers[version]}, seed=1))
    one, two = found
    configured(one, two, "5s")
    yield one, two
    one.close()
    two.close()


def configured(one: Deployment, two: Deployment, lease: str) -> None:
    text = one.config.read_text().partition("lease =")[0].rstrip()
    for deployment in (one, two):
        deployment.config.write_text(f'{text}\nlease = "{lease}"\ngrace = "0s"\n')


def until(done: Callable[[], bool], deployment: Deployment, seconds: float = 400) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.02)


def source_of(deployment: Deployment, tmp_path: Path) -> Source:
    found = Source(deployment.source.client, tmp_path / "data")
    found.create_database(deployment.databases[0])
    return found


def tables(deployment: Deployment, source: Source, numbers: range) -> None:
    for number in numbers:
        source.create_table(TableName(deployment.databases[0], f"t{number}"), COLUMNS, form="text")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("pair", one_a_day(["3.1.3", "4.2.0"], seed()), indirect=True)
def test_a_second_writer_is_refused_and_replaces_a_suspended_one_which_makes_no_call_when_it_wakes_up(
    pair: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    one, two = pair
    source, target, database = source_of(one, tmp_path), one.targets[0], one.databases[0]
    one.start()
    assert one.process is not None
    until(lambda: target.catalog.database(database) is not None, one)
    refused = two.calque("run", timeout=400)
    assert refused.returncode == 75
    assert f"The lease on dr is of process {one.process.pid} on " in refused.stderr
    assert f"It is process {one.process.pid} on " in refused.stderr.splitlines()[-1]

    tables(one, source, range(MANY))
    until(lambda: len(target.catalog.tables(database)) > 5, one)
    one.process.send_signal(signal.SIGSTOP)
    assert len(target.catalog.tables(database)) < MANY
    two.start()
    assert two.process is not None
    two.settle(400)
    assert len(target.catalog.tables(database)) == MANY
    before = target.log.current()
    one.process.send_signal(signal.SIGCONT)
    assert one.process.wait(120) == 70
    assert f"The lease on dr is lost. It was taken by process {two.process.pid} on " in one.tail()
    assert {event.database for event in events_after(target.log, before, target.log.current())} <= {OURS}
    tables(one, source, range(MANY, MANY + 1))
    two.settle(400)
    assert two.calque("verify").returncode == 0


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pair", ["3.1.3"], indirect=True)
def test_a_suspended_process_is_replaced_over_the_same_state_folder_and_writes_nothing_when_it_wakes_up(
    pair: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    one, _ = pair
    source, target, database = source_of(one, tmp_path), one.targets[0], one.databases[0]
    one.start()
    suspended = one.process
    assert suspended is not None
    tables(one, source, range(MANY))
    until(lambda: target.catalog.database(database) is not None and len(target.catalog.tables(database)) > 5, one)
    suspended.send_signal(signal.SIGSTOP)
    assert len(target.catalog.tables(database)) < MANY
    try:
        one.start()
        one.settle(400)
        tables(one, source, range(MANY, MANY + 2))
        one.settle(400)
        assert one.end(signal.SIGTERM) == 0, one.tail()
        before = state_of(one), target.log.current()
    finally:
        suspended.send_signal(signal.SIGCONT)
    assert suspended.wait(120) == 70, one.tail()
    assert " in " + str(one.root / "state") + " is lost. It was taken by process " in one.tail().splitlines()[-1]
    state, event_id = before
    after = state_of(one)
    assert ({name: after.get(name) for name in state}, target.log.current()) == (state, event_id)
    assert [name for name in after.keys() - state.keys() if not is_unsaid(name)] == []
    assert len(target.catalog.tables(database)) == MANY + 2
    assert one.calque("verify").returncode == 0


PARQUET_ENDS = b"PAR1"


def state_of(deployment: Deployment) -> Mapping[str, bytes]:
    """What the state folder holds, without what processes say of themselves, and data files that are half written."""
    places = ("journal", "evidence", "ledgers", "control", "locks")
    files = (path for place in places for path in (deployment.root / "state" / place).rglob("*") if path.is_file())
    named = {str(path.relative_to(deployment.root)): path.read_bytes() for path in files}
    return {
        name: content
        for name, content in named.items()
        if "/processes/" not in name and not (is_unsaid(name) and not content.endswith(PARQUET_ENDS))
    }


def is_unsaid(new_file: str) -> bool:
    """Whether it is a data file: while no log changes none names it. Its write may have been suspended half-way."""
    return new_file.endswith(".parquet") and "/_delta_log/" not in new_file


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pair", ["3.1.3"], indirect=True)
def test_neither_a_killed_process_over_the_same_state_folder_nor_one_that_ended_is_waited_for(
    pair: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    one, two = pair
    configured(one, two, "600s")
    source, target, database = source_of(one, tmp_path), one.targets[0], one.databases[0]
    one.start()
    until(lambda: target.catalog.database(database) is not None, one)
    assert one.end(signal.SIGKILL) == -signal.SIGKILL
    tables(one, source, range(2))
    again = one.calque("run", "--until", "head", timeout=400)
    assert again.returncode == 0, again.stderr
    source.drop_table(TableName(database, "t0"))
    other = two.calque("run", "--until", "head", timeout=400)
    assert other.returncode == 0, other.stderr
    assert target.catalog.tables(database) == ("t1",)
    stale = one.calque("sweep")
    assert (stale.returncode, "last written from another state folder" in stale.stderr) == (65, True), stale.stderr
    swept = two.calque("sweep")
    assert swept.returncode == 0, swept.stderr
