"""A running system is operated, and what it keeps is put back as it was or lost: on real metastores, with real
processes, while the source is written to and readers look at the target."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.runs.proofs import one_a_day, one_a_day_or_all
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment, Target
from support.worlds.worlds import INPUT, OUTPUT, SERDE

STOP_SECONDS, AT_ONCE_SECONDS = 10.0, 4.0
MEGABYTES = 64


class Operated(Deployment):
    """One target. Bridges of ledgers that were replaced are remembered."""

    remembered: tuple[tuple[frozenset[TableName], float, float], ...] = ()

    def bridges(self, target: Target) -> list[tuple[frozenset[TableName], float, float]]:
        return [*self.remembered, *super().bridges(target)]

    def ask(self, *arguments: str, code: int = 0) -> str:
        """What a command that ends with the code says."""
        found = self.calque(*arguments)
        assert found.returncode == code, f"{arguments}: {found.stdout}{found.stderr}{self.tail()}"
        return found.stdout + found.stderr

    def reach(self, code: int = 0) -> str:
        """What `calque wait` says of the source's newest event."""
        return self.ask(
            "wait", "--target", "dr", "--event-id", str(self.source.current()), "--timeout", "120s", code=code
        )

    def happen(self, events: int, pause: float = 0.0) -> None:
        """So many events at the source, about."""
        end = self.source.current() + events
        while self.source.current() < end:
            self.write(1, pause)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Meanwhile the source is written to."""
        enough = threading.Event()

        def write() -> None:
            while not enough.is_set():
                self.write(1, pause=0.05)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            yield
        finally:
            enough.set()
            writer.join(60)

    def check(self) -> None:
        self.settle()
        self.check_equal()
        self.ask("verify", "--data", "checksum")

    def check_readers(self) -> None:
        [target] = self.targets
        deadline = time.monotonic() + 60
        while target.proof.observations <= 50:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert not (problems := self.problems()), "\n".join([problems[0], *self.writer.done])


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Operated]:
    found = Operated(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, 1)
    yield found
    found.close()


def test_a_running_system_is_paused_replayed_reloaded_and_waited_for(deployment: Operated) -> None:
    deployment.happen(20)
    begun, tables = deployment.source.current(), f"{deployment.databases[0]}.*"
    deployment.watch()
    deployment.start()
    deployment.settle()
    ledger = APP.wiring(APP.load(deployment.config)).ledger("dr")
    with deployment.writing():
        deployment.ask("pause")
        time.sleep(2)
        epoch, head = ledger.last_epoch(), deployment.source.current()
        deployment.ask("reload")
        assert "paused" in deployment.reach(75)
        until(deployment, lambda: deployment.source.current() > head)
        assert ledger.last_epoch() == epoch
        deployment.wait_for(lambda status: status["state"] == "paused", 10)
        deployment.ask("resume")
        deployment.reach()

        deployment.ask("pause", "--tables", tables)
        head = deployment.source.current()
        deployment.wait_for(lambda status: status["position"] > head)
        assert "set aside" in deployment.reach(75)
        deployment.ask("resume", "--tables", "*.*")
        deployment.reach()

        assert "Name an earlier event" in deployment.ask("replay", "--target", "dr", "--from", "1000000000", code=65)
        assert "`calque bootstrap`" in deployment.ask("replay", "--target", "dr", "--from", "0", code=65)
        deployment.ask("replay", "--target", "dr", "--from", str(begun))
        deployment.reach()
    deployment.check()
    deployment.check_readers()


@pytest.mark.prove
def test_a_process_that_is_killed_with_a_request_at_hand_or_ends_while_it_is_paused_goes_on_with_that(
    deployment: Operated,
) -> None:
    deployment.happen(20)
    begun = deployment.source.current()
    deployment.watch()
    deployment.start()
    deployment.settle()
    deployment.happen(10)
    deployment.settle()
    ledger = APP.wiring(APP.load(deployment.config)).ledger("dr")
    with deployment.writing():
        deployment.ask("replay", "--target", "dr", "--from", str(begun))
        assert deployment.end(signal.SIGKILL) == -signal.SIGKILL
        deployment.start()
        deployment.reach()
    until(deployment, lambda: not APP.wiring(APP.load(deployment.config)).control.names("requests/"))
    deployment.check()
    deployment.ask("pause")
    assert deployment.end(signal.SIGTERM) == 0
    epoch = ledger.last_epoch()
    deployment.happen(3)
    assert "paused" in deployment.ask("run", "--until", "head", code=75)
    assert ledger.last_epoch() == epoch
    deployment.ask("resume")
    deployment.ask("run", "--until", "head")
    deployment.check_equal()
    deployment.check_readers()


LOSSES = ("ledgers", "journal", "state", "everything")
"""What a running system is put back from an older copy to, or loses."""


@pytest.mark.parametrize("losses", one_a_day_or_all(LOSSES, seed()))
def test_whatever_is_put_back_from_an_older_copy_or_lost_readers_see_states_of_the_source_that_advance(
    losses: Sequence[str], deployment: Operated
) -> None:
    """One loss a day; `make prove` has them all, one after the other."""
    root = deployment.root

    def live(events: int) -> None:
        """A process takes up what is there, while the source is written to."""
        deployment.start()
        deployment.happen(events, pause=0.02)
        deployment.settle()
        deployment.happen(events, pause=0.02)
        deployment.check()
        assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
        deployment.remembered = tuple(deployment.bridges(deployment.targets[0]))

    def put_back(*folders: str) -> None:
        for folder in folders:
            shutil.rmtree(root / folder)
            shutil.copytree(root / "copies" / folder, root / folder)

    deployment.happen(20)
    deployment.watch()
    live(3)
    for folder in ("state", "checkpoints"):
        # Spark's Java process may still clear its scratch files away.
        shutil.copytree(root / folder, root / "copies" / folder, ignore=shutil.ignore_patterns("spark"))
    live(10)
    for loss in losses:
        match loss:
            case "ledgers":
                put_back("state/ledgers")
                shutil.rmtree(root / "checkpoints")
            case "journal":
                put_back("state/journal", "state/evidence", "checkpoints")
            case "state":
                put_back("state")
            case _:
                shutil.rmtree(root / "state", ignore_errors=True)
        live(3)
    deployment.check_readers()


@pytest.mark.parametrize("asked", one_a_day(["once", "twice"], seed()))
def test_a_process_that_copies_a_large_file_ends_in_time_and_the_next_one_has_it(
    deployment: Operated, asked: str
) -> None:
    database, place = deployment.databases[0], deployment.root / "large"
    place.mkdir()
    (place / "file").write_bytes(bytes(MEGABYTES << 20))
    deployment.source.client.create_database(Database(database, location=f"file:{deployment.root}/{database}"))
    storage = Storage(
        (Column("x", "int"),), f"file:{place}", INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={})
    )
    deployment.source.client.create_table(
        Table("large", database, storage=storage, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE")
    )
    fast = deployment.config.read_text()
    deployment.config.write_text(f'{fast}\nbandwidth = "1MB"\n')

    def copy() -> None:
        deployment.start()
        deployment.wait_for(lambda status: status["state"] == "bootstrapping" and is_copying(status), 180)

    copy()
    if asked == "twice":
        assert deployment.process is not None
        deployment.process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code = deployment.end(signal.SIGTERM)
    took = time.monotonic() - began
    assert code == (0 if asked == "once" else 128 + signal.SIGTERM), deployment.tail()
    assert took < (STOP_SECONDS if asked == "once" else AT_ONCE_SECONDS)
    assert "large" not in deployment.targets[0].catalog.tables(database)
    deployment.config.write_text(fast)
    deployment.ask("run", "--until", "head")
    deployment.ask("verify", "--data", "checksum")


def is_copying(status: Mapping[str, Any]) -> bool:
    return bool((status["copying"] or {"bytes": 0})["bytes"])


def until(deployment: Deployment, reached: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.05)
