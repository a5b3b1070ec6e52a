"""`calque journal` and `calque check` on both journals; and a deployment that moves there and back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from calque.adapters.control import ControlStore
from calque.app import APP
from calque.cli import main
from calque.commands.check import look_at_journal
from calque.core.events.rows import rows_of_events
from calque.engine.check.findings import Findings
from calque.model.files import Evidence, File, Listing
from calque.model.names import EventId, Span
from calque.plugins.kafka.checks.journals import check_journals
from calque.ports import EvidenceStore, Journal
from calque.sandbox import Broker, Metastore
from calque.wiring.journal_location import JournalAddress
from calque.wiring.wiring import Wiring
from support.judges.documents import command_of, read_document
from support.runs.proofs import one_a_day_or_all
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment
from support.sources.logs import Log, plain

PASSWORD = "geheim"
DELTA = JournalAddress("delta")
Say = Callable[..., Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that asks for a password."""
    with Broker.start(tmp_path_factory.mktemp("broker"), password=PASSWORD) as broker:
        yield broker


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    return tmp_path


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Says a command in JSON, and gives its document."""

    def run(*words: str, code: int = 0) -> Any:
        found = main([*words, "--json"])
        said = capsys.readouterr()
        assert found == code, said.err
        document = read_document(command_of(words), said.out) if said.out else None
        return said.err if code else document

    return run


def configure(broker: Broker, journal: str, *, topic: str = "hq.events") -> Wiring:
    """Writes the configuration, in the present folder, of a journal in that format."""
    options = {key: value for key, value in broker.options.items() if key != "sasl.password"}
    settings = "\n".join(f'"{key}" = "{value}"' for key, value in options.items())
    Path("calque.toml").write_text(
        f"""
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"

[journal]
format = "{journal}"
brokers = "{broker.address}"
topic = "{topic}"

[journal.options]
{settings}
"sasl.password_env" = "KAFKA_PASSWORD"

[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
"""
    )
    return APP.wiring(APP.load("calque.toml"))


@pytest.fixture
def name() -> str:
    """A topic of the test's own."""
    return f"t{uuid4().hex}"


def fill(kept: tuple[Journal, EvidenceStore], first: EventId, last: EventId, considered: EventId) -> None:
    """Events from `first` to `last`, with evidence up to `considered`."""
    journal, evidence = kept
    log = Log().at(first)
    for event_id in range(first, last + 1):
        log.create(plain(f"t{event_id}"))
    journal.append(rows_of_events(log.events))
    found = [
        Evidence(event_id, Listing(f"file:/t{event_id}", (File("f", event_id, 1),)))
        for event_id in range(first, considered + 1)
    ]
    evidence.append(found, considered)


def said(kept: tuple[Journal, EvidenceStore], first: EventId, last: EventId) -> object:
    journal, evidence = kept
    ids = range(first, last + 1)
    return (
        journal.entries(Span(first - 1, last)),
        journal.events(ids),
        evidence.evidence(ids),
        evidence.considered(),
        (journal.oldest(), journal.last()),
    )


def begun(where: Mapping[str, str] | None = None) -> None:
    """The state folder as the first `calque run` leaves it; without a place as versions before Kafka left it."""
    ControlStore("state/control").put("journal", {"source": "hq", "after": 0, **(where or {})})


@pytest.mark.usefixtures("folder")
def test_events_on_kafka_are_shown_as_those_in_delta(broker: Broker, say: Say, name: str) -> None:
    on_kafka = configure(broker, "kafka", topic=name)
    assert "The journal has no events yet" in say("journal", "tail", code=65)
    shown = []
    for wiring, place in (
        (on_kafka, on_kafka.only_source().journal_location.place()),
        (configure(broker, "delta"), DELTA),
    ):
        fill(wiring.only_source().open_journal(place), 5, 9, 7)
        configure(broker, place.format, topic=name)
        shown.append((say("journal", "tail", "-n", "3"), say("journal", "show", "6")))
    assert shown[0] == shown[1]
    assert [row["table"] for row in shown[0][0]] == ["d1.t7", "d1.t8", "d1.t9"]
    assert shown[0][1]["message"]["tableObjJson"]["1"] == {"str": "t6"}
    configure(broker, "kafka", topic=name)
    assert "Event 4 is not in the journal any more. It has events 5 to 9" in say("journal", "show", "4", code=65)


def findings_of(wiring: Wiring) -> list[tuple[str, str, str]]:
    findings = Findings()
    look_at_journal(wiring.only_source(), findings)
    check_journals(wiring, findings)
    assert {finding.where for finding in findings.entries} == {"journal"}
    return [(finding.severity.value, finding.what, finding.todo) for finding in findings.entries]


@pytest.mark.usefixtures("folder")
def test_check_says_what_is_missing_create_makes_it_and_check_is_content(broker: Broker, say: Say, name: str) -> None:
    wiring = configure(broker, "kafka", topic=name)
    names = [name, f"{name}.evidence", f"{name}.positions"]
    found = findings_of(wiring)
    assert found[0][:2] == ("info", "Kafka answers; it has 1 broker")
    assert found[1:] == [
        ("warning", f"There is no topic {each}", "Say `calque journal create` to make it now") for each in names
    ]
    assert say("journal", "create") == {"made": names}
    assert say("journal", "create") == {"made": []}
    assert findings_of(wiring)[1:] == [("info", f"Topic {each} has one copy", "Give it three") for each in names]


@pytest.mark.usefixtures("folder")
def test_check_says_what_is_wrong_with_a_topic_and_how_to_mend_it(broker: Broker, name: str) -> None:
    settings = {
        "cleanup.policy": "compact,delete",
        "retention.ms": "3600000",
        "retention.bytes": "1000000",
        "min.insync.replicas": "2",
        "max.message.bytes": "20000",
        "unclean.leader.election.enable": "true",
    }
    admin = AdminClient({"bootstrap.servers": broker.address, **broker.options})
    admin.create_topics([NewTopic(name, 3, config=settings)])[name].result(60)
    alter = f"Run `kafka-configs.sh --alter --topic {name} --add-config "
    found = [finding for finding in findings_of(configure(broker, "kafka", topic=name)) if f" {name} " in finding[1]]
    assert [(severity, what) for severity, what, _ in found] == [
        ("error", f"Topic {name} has 3 partitions instead of 1"),
        ("error", f"Topic {name} has cleanup.policy = compact,delete"),
        ("error", f"Topic {name} keeps records for 1 h, and [journal] retention is 7 days"),
        ("warning", f"Topic {name} keeps at most 1000000 bytes"),
        ("error", f"Topic {name} has 1 copy, and min.insync.replicas is 2"),
        ("warning", f"Topic {name} has unclean.leader.election.enable = true"),
        ("warning", f"Topic {name} takes messages of at most 20000 bytes"),
    ]
    assert [todo for _, _, todo in found if not todo.startswith(alter)] == [found[0][2]]


@pytest.mark.usefixtures("folder")
def test_a_broker_that_does_not_know_us_is_a_finding(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "another")
    assert findings_of(configure(broker, "kafka")) == [
        (
            "error",
            "Kafka denies that its topics be listed",
            "Check [journal] options, and what the user may do there",
        )
    ]


@pytest.mark.usefixtures("folder")
def test_a_delta_journal_has_no_topics_to_make(broker: Broker, say: Say) -> None:
    configure(broker, "delta")
    assert "There are no topics to make" in say("journal", "create", code=65)


@pytest.mark.usefixtures("folder")
@pytest.mark.prove
def test_a_journal_goes_to_kafka_and_back_with_all_that_came_meanwhile(broker: Broker, say: Say, name: str) -> None:
    wiring = configure(broker, "delta", topic=name)
    begun()
    delta = wiring.only_source().journal_opener(DELTA)
    fill(delta(), 3, 40, 35)
    assert say("journal", "move") == {"from": "the Delta table", "to": "the Delta table", "moved": None}

    wiring = configure(broker, "kafka", topic=name)
    there = f"topic {name} on {broker.address}"
    kafka = wiring.only_source().journal_opener(JournalAddress("kafka", broker.address, name))
    refused = say("run", code=65)
    assert refused.startswith(f"calque: [journal] names {there}, and what was captured is in the Delta table. ")
    assert "calque journal move" in refused
    assert say("journal", "show", "3")["event_id"] == 3
    moved = {"events": 38, "listings": 33, "last": 40}
    assert say("journal", "move") == {"from": "the Delta table", "to": there, "moved": moved}
    assert said(kafka(), 3, 40) == said(delta(), 3, 40)
    assert say("journal", "move")["moved"] is None

    fill(kafka(), 41, 50, 45)
    configure(broker, "delta", topic=name)
    assert say("journal", "move")["moved"] == {"events": 10, "listings": 5, "last": 50}
    assert said(delta(), 3, 50) == said(kafka(), 3, 50)

    # The topic was left at event 50, and nobody wrote to it since: it is ours, whatever is forgotten meanwhile.
    fill(delta(), 51, 60, 60)
    delta()[0].forget(55)
    delta()[1].forget(55)
    configure(broker, "kafka", topic=name)
    assert say("journal", "move")["moved"] == {"events": 5, "listings": 5, "last": 60}
    assert said(kafka(), 56, 60) == said(delta(), 56, 60)


@pytest.mark.usefixtures("folder")
def test_a_topic_of_another_log_is_refused(broker: Broker, say: Say, name: str) -> None:
    wiring = configure(broker, "kafka", topic=name)
    fill(wiring.only_source().open_journal(wiring.only_source().journal_location.place()), 100, 110, 110)
    begun(DELTA.record())
    fill(wiring.only_source().open_journal(DELTA), 3, 40, 35)
    error = say("journal", "move", code=65)
    assert (
        f"topic {name} on {broker.address} has events 100 to 110, and events 3 to 40 of the Delta table do not" in error
    )
    assert "Name another topic" in error
    severity, what, todo = findings_of(wiring)[0]
    assert (severity, what.startswith("[journal] names topic "), "calque journal move" in todo) == ("error", True, True)
    assert say("journal", "tail")[-1]["event_id"] == 40


DEATHS = ("evidence.restart.after", "journal.append.after@2", "evidence.append.before@2")
"""Failpoints of a move."""


@pytest.mark.parametrize("deaths", one_a_day_or_all(DEATHS, seed()))
def test_a_killed_move_goes_on(deaths: Sequence[str], folder: Path, broker: Broker, say: Say, name: str) -> None:
    wiring = configure(broker, "kafka", topic=name)
    begun(DELTA.record())
    delta = wiring.only_source().journal_opener(DELTA)
    fill(delta(), 3, 700, 650)
    command = [sys.executable, "-m", "calque.cli", "journal", "move"]
    for failpoint in deaths:
        environment = {**os.environ, "CALQUE_FAILPOINT": failpoint}
        killed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert "calque journal move" in say("run", code=65)
    assert say("journal", "move")["moved"]["last"] == 700
    kafka = wiring.only_source().journal_opener(wiring.only_source().journal_location.place())
    assert said(kafka(), 3, 700) == said(delta(), 3, 700)


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], folder: Path) -> Iterator[Deployment]:
    deployment = Deployment(folder, next(NUMBERS), servers["source"], {"dr": servers["target"]}, 7)
    yield deployment
    deployment.close()


@pytest.mark.parametrize("back", [False, pytest.param(True, marks=pytest.mark.prove)], ids=["there", "and back"])
def test_a_running_deployment_moves_to_kafka_and_back_and_its_target_goes_on_where_it_was(
    deployment: Deployment, broker: Broker, name: str, back: bool
) -> None:
    def move_to(journal: str) -> None:
        """Stands in the configuration from now on, and the deployment moves there."""
        deployment.config.write_text(
            f'{text}\n[journal]\nformat = "{journal}"\nbrokers = "{broker.address}"\ntopic = "{name}"\n'
            '[journal.options]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"\n'
            '"sasl.username" = "calque"\n"sasl.password_env" = "KAFKA_PASSWORD"\n'
        )
        refused = deployment.calque("run", "--until", "head")
        assert (refused.returncode, "calque journal move" in refused.stderr) == (65, True), refused.stderr
        moved = deployment.calque("journal", "move", "--json")
        assert moved.returncode == 0, moved.stderr
        assert read_document("journal move", moved.stdout)["moved"]["events"] > 0

    text = deployment.config.read_text()
    while len(deployment.source.databases()) < len(deployment.databases):
        deployment.writer.create_database()
    deployment.write(30)
    deployment.start()
    deployment.settle()
    deployment.write(12)
    deployment.settle()
    assert deployment.end(signal.SIGTERM) == 0
    deployment.write(6)
    move_to("kafka")
    deployment.start()
    deployment.write(12, pause=0.1)
    deployment.settle()
    busy = deployment.calque("journal", "move")
    assert (busy.returncode, "Another process runs capture" in busy.stderr) == (75, True), busy.stderr
    assert deployment.end(signal.SIGTERM) == 0
    if back:
        deployment.write(6)
        move_to("delta")
        last = deployment.calque("run", "--until", "head", timeout=240)
        assert last.returncode == 0, last.stderr
    deployment.check_equal()
    assert deployment.source.current() > 30
    epochs = json.loads(deployment.calque("epochs", "list", "--json").stdout)
    assert {epoch["kind"] for epoch in epochs[1:]} == {"window"}
    assert all(one["event_id"] == other["from_event_id"] for one, other in pairwise(epochs))
    status = json.loads(deployment.calque("status", "--json").stdout)
    assert (status["journal"]["gaps"], status["journal"]["last"]) == ([], deployment.source.current())
