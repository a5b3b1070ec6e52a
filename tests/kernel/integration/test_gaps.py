"""Gaps in the logs of real metastores: purged by their cleaner, deleted, repeated, gone back with a backup."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calque.adapters.control import ControlGaps, ControlStore
from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.app import APP
from calque.cli import main
from calque.control.identity import RunIdentity
from calque.core.records.lifecycle import State
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity
from calque.engine.capture.gap_guard import fenced
from calque.engine.replica.replica import Replica
from calque.engine.source.evidence import EvidenceGatherer
from calque.errors import CalqueError
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.streams.beginning import beginning_of
from support.judges.documents import read_document
from support.runs.proofs import is_proving
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.worlds.worlds import INPUT, OUTPUT, SERDE

SERVERS = {
    "source": MetastoreSettings(version="3.1.3"),
    "cleaned": MetastoreSettings(version="4.2.0", event_ttl=1, cleaner_interval=0.2),
}
TODAY = [name for name in SERVERS if name != "cleaned" or is_proving()]
"""Those of tests that this run has."""
SAVE = """
DROP SCHEMA IF EXISTS saved CASCADE; CREATE SCHEMA saved;
DO $$ DECLARE one text; BEGIN FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
EXECUTE format('CREATE TABLE saved.%I AS TABLE public.%I', one, one); END LOOP; END $$
"""
RESTORE = """
DO $$ DECLARE one text; BEGIN SET LOCAL session_replication_role = replica;
FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
EXECUTE format('DELETE FROM public.%I', one); END LOOP;
FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
EXECUTE format('INSERT INTO public.%I SELECT * FROM saved.%I', one, one); END LOOP; END $$
"""
REPEAT = """
INSERT INTO "NOTIFICATION_LOG" SELECT (json_populate_record(l, json_build_object('NL_ID', -%(id)s))).*
FROM "NOTIFICATION_LOG" l WHERE "EVENT_ID" = %(id)s
"""
Deploy = Callable[..., Deployment]


@pytest.fixture(scope="module")
def servers(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    """Sources of this file's own, whose logs it changes."""
    root = tmp_path_factory.mktemp("servers")
    with ThreadPoolExecutor(len(TODAY)) as pool:
        started = pool.map(lambda name: Metastore.start(SERVERS[name], root / name), TODAY)
        found = dict(zip(TODAY, started, strict=True))
    yield {"target": shared("target-4")["target-4"], **found}
    for server in found.values():
        server.stop()


@pytest.fixture
def deploy(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deploy]:
    made: list[Deployment] = []

    def deployed(source: str, **others: str) -> Deployment:
        targets = {name: servers[server] for name, server in {"dr": "target", **others}.items()}
        made.append(Deployment(tmp_path, next(NUMBERS), servers[source], targets, seed=1))
        return made[-1]

    yield deployed
    for deployment in made:
        deployment.close()


def create(deployment: Deployment, tables: int) -> None:
    """An event for each, and a file in each."""
    database = deployment.databases[0]
    if database not in deployment.source.databases():
        deployment.source.create_database(Database(database))
    for _ in range(tables):
        name = f"t{deployment.source.current()}"
        location = f"file:{deployment.root}/data/{name}"
        deployment.files.write(f"{location}/f", name.encode())
        storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(SERDE, parameters={}))
        deployment.source.create_table(Table(name, database, storage=storage, type="EXTERNAL_TABLE", parameters={}))


def last(deployment: Deployment) -> int | None:
    """The journal's."""
    return DeltaJournal(str(deployment.root / "state" / "journal")).last()


def found(deployment: Deployment) -> list[Gap]:
    return list(ControlGaps(ControlStore(deployment.root / "state" / "control")).recorded())


def wait_until(deployment: Deployment, reached: Callable[[], object], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.1)


def wait_for_gaps(deployment: Deployment, number: int) -> tuple[int, int, GapCause]:
    """The newest gap, when there are so many and capture has gone on behind it."""
    wait_until(deployment, lambda: len(found(deployment)) >= number and last(deployment) == found(deployment)[-1].at)
    assert len(found(deployment)) == number
    create(deployment, 2)
    wait_until(deployment, lambda: last(deployment) == deployment.source.current())
    return *found(deployment)[-1].span, found(deployment)[-1].cause


def told(deployment: Deployment) -> list[tuple[int, int, str]]:
    """The gaps that the status tells of."""
    gaps = json.loads(deployment.calque("status", "--json").stdout)["journal"]["gaps"]
    return [(gap["from"], gap["to"], gap["state"]) for gap in gaps]


def check_repaired(deployment: Deployment) -> None:
    """The target has dealt with every gap, and shows what the source has."""
    deployment.settle(300)
    spans = [gap.span for gap in found(deployment)]
    repaired = [(min(span), max(span), "repaired") for span in spans]
    wait_until(deployment, lambda: told(deployment) == repaired, 60)
    deployment.check_equal()
    verified = deployment.calque("verify", "--data", "checksum")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_log_that_loses_rows_repeats_an_id_and_goes_back_with_a_backup_is_captured_on(
    deploy: Deploy, servers: Mapping[str, Metastore]
) -> None:
    deployment, server = deploy("source"), servers["source"]
    create(deployment, 5)
    first = deployment.calque("run", "--until", "head", timeout=300)
    assert first.returncode == 0, first.stderr
    server.sql(SAVE)
    shown = deployment.source.current()
    create(deployment, 5)
    head = deployment.source.current()
    server.sql('DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" BETWEEN %s AND %s', (shown + 2, shown + 3))

    text = deployment.config.read_text()
    deployment.config.write_text(text.replace("[targets.", 'gap = "stop"\n[targets.', 1))
    stopped = deployment.calque("run", "--until", "head", timeout=300)
    assert stopped.returncode == 65, stopped.stderr
    errors = [line for line in stopped.stderr.splitlines() if line.startswith("calque: ")]
    assert len(errors) == 1
    assert f"events {shown + 2} to {shown + 3} are missing" in errors[0]
    assert "when_needed" in errors[0]
    assert (last(deployment) or shown, found(deployment)) == (shown, [])

    deployment.config.write_text(text)
    deployment.start()
    assert wait_for_gaps(deployment, 1) == (shown + 1, head, GapCause.PURGED)
    newest = deployment.source.current()
    server.sql(REPEAT % {"id": newest})
    assert wait_for_gaps(deployment, 2)[2] is GapCause.REPEATED
    deployment.settle()
    newest = deployment.source.current()
    server.kill()
    server.sql(RESTORE)
    server.restart()
    assert deployment.source.current() == shown
    assert wait_for_gaps(deployment, 3) == (shown + 1, newest, GapCause.WENT_BACK)
    assert deployment.process is not None
    assert deployment.process.poll() is None
    # A log that went back may be another metastore's: what would be dropped waits for a person.
    wait_until(deployment, lambda: "held: " in deployment.calque("quarantine", "list").stdout)
    released = deployment.calque("release-drops", "--target", "dr")
    assert released.returncode == 0, released.stderr
    check_repaired(deployment)
    assert deployment.end(signal.SIGTERM) == 0


@pytest.mark.prove
def test_a_purged_log_is_a_gap_when_events_were_lost_and_none_when_the_source_was_idle(
    deploy: Deploy, servers: Mapping[str, Metastore]
) -> None:
    deployment, server = deploy("cleaned"), servers["cleaned"]

    def is_purged() -> bool:
        return server.sql('SELECT count(*) FROM "NOTIFICATION_LOG"') == [(0,)]

    create(deployment, 5)
    first = deployment.calque("run", "--until", "head", timeout=300)
    assert first.returncode == 0, first.stderr
    shown = deployment.source.current()
    wait_until(deployment, is_purged)
    idle = deployment.calque("run", "--until", "head", timeout=300)
    assert (idle.returncode, found(deployment)) == (0, []), idle.stderr
    create(deployment, 8)
    head = deployment.source.current()
    wait_until(deployment, is_purged)
    deployment.start()
    wait_until(deployment, lambda: found(deployment))
    assert (found(deployment)[0].span, found(deployment)[0].cause) == ((shown + 1, head), GapCause.PURGED)
    create(deployment, 2)
    check_repaired(deployment)
    assert deployment.end(signal.SIGTERM) == 0


class Engine:
    """Calque's engine in this process, as a deployment's configuration wires it. Nothing goes on by itself."""

    def __init__(self, deployment: Deployment) -> None:
        self.wiring = APP.wiring(APP.load(str(deployment.config)))
        self.beginning = beginning_of(self.wiring, "hq")
        source, begun = self.wiring.only_source().side(), self.beginning.event()
        self.gatherer = EvidenceGatherer(source, lambda _: True)
        self.capturing = Capture(source, begun, self.gatherer, Continuity(source, begun))
        self.gatherer.resume(begun, self.capturing.last())
        self.replicas: dict[str, Replica] = {}
        self.lost: list[CalqueError] = []
        """Why a lease can't be kept."""

    def capture(self) -> int:
        """The journal's last event, which is the log's."""
        self.capturing.take(self.wiring.only_source().side().log.current())
        self.gatherer.run_once()
        return self.capturing.last()

    def settle(self, target: str) -> None:
        """Until the target shows what the source has now, and nothing is compared any more."""
        if target not in self.replicas:
            lease, identity = self.wiring.target(target).lease(), RunIdentity(self.wiring.target(target))
            identity.begin()
            assert lease.attempt(self.wiring.target(target).writer("")) is None
            identity.settle(lease)
            lease.keep(self.lost.append)
            source, side = fenced(self.wiring.only_source().side()), self.wiring.target(target).side()
            self.replicas[target] = Replica(source, side, self.beginning.event, lambda: None)
            self.replicas[target].open()
        replica, deadline = self.replicas[target], time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, replica.tables.rows
            last = self.capture()
            replica.window(last)
            out = replica.tables.in_state(*set(State) - {State.LIVE})
            if (
                not out
                and replica.epochs.position() == last
                and not replica.tables.positions
                and replica.comparing.is_done()
            ):
                return
            time.sleep(0.05)

    def close(self) -> None:
        for target, replica in self.replicas.items():
            replica.close()
            self.wiring.target(target).lease().release()
        assert self.lost == []


def late_log(engine: Engine) -> HiveLog:
    return HiveLog(Client(engine.wiring.config.targets["late"].keys.metastore[0]))


@pytest.mark.prove
def test_the_journal_waits_for_no_target_for_longer_than_its_retention_and_who_comes_late_compares(
    deploy: Deploy, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deploy("source", late="cleaned")
    text = deployment.config.read_text().replace("warehouse =", 'lease = "600s"\nwarehouse =')
    deployment.config.write_text(f'{text}\n[journal]\nretention = "1s"\n')
    create(deployment, 5)
    engine = Engine(deployment)
    for target in ("dr", "late"):
        engine.settle(target)
    first, there = deployment.source.current() + 1, engine.wiring.target("late").side().catalog
    create(deployment, 3)
    deployment.source.drop_table(TableName(deployment.databases[0], f"t{first - 2}"))
    engine.settle("dr")
    head = deployment.source.current()

    def is_forgotten() -> bool:
        assert main(["sweep", "-c", str(deployment.config)]) == 0
        return engine.wiring.only_source().side().journal.oldest() is None

    wait_until(deployment, is_forgotten, 30)
    seen = late_log(engine).current()  # a sweep asks the metastore for its time, which makes events
    capsys.readouterr()
    assert main(["status", "--json", "-c", str(deployment.config)]) == 0
    assert read_document("status", capsys.readouterr().out)["journal"]["gaps"] == []
    create(deployment, 1)
    for target in ("late", "dr"):
        engine.settle(target)
    calls = late_log(engine).current() - seen
    assert main(["status", "--json", "-c", str(deployment.config)]) == 0
    (gap,) = read_document("status", capsys.readouterr().out)["journal"]["gaps"]
    assert (gap["target"], gap["from"], gap["to"]) == ("late", first, head)
    assert (gap["cause"], gap["state"]) == ("forgotten", "repaired")
    ledgers = {name: engine.wiring.ledger(name).epochs() for name in engine.replicas}
    assert [(epoch.kind, epoch.gap) for epoch in ledgers["late"] if epoch.gap] == [("repair", (first, head))]
    assert {epoch.kind for epoch in ledgers["dr"]} == {"bootstrap", "window"}
    assert found(deployment) == []
    assert calls <= 6, "four tables were made and one was dropped"
    assert len(there.tables(deployment.databases[0])) == 8
    deployment.check_equal()
    engine.close()
