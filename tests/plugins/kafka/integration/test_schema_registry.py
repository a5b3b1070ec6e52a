"""A journal whose events name their schema by a registry's id: on a real broker and a real registry."""

from __future__ import annotations

import io
import json
import pickle
import random
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Message
from fastavro import parse_schema, schemaless_reader

from calque.app import APP
from calque.cli import main
from calque.core.events.rows import rows_of_events
from calque.engine.check.findings import Findings
from calque.errors import Refused, Unavailable
from calque.model.files import Evidence, File, Listing
from calque.model.journal import Event
from calque.model.names import Span
from calque.model.secrets import FileSecret, VariableSecret
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.plugins.kafka.adapters.journal.registry import registry_of
from calque.plugins.kafka.checks.journals import check_journals
from calque.sandbox import Broker
from calque.wiring.journal_location import JournalAddress
from calque.wiring.wiring import Wiring
from support.judges.documents import read_document
from support.services.certificates import certified
from support.services.doors import basic, guarded
from support.services.kafkas import ends, reader
from support.services.registry import SchemaRegistry

NOWHERE = "http://127.0.0.1:1"
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "word", "type": "string"}]}
SECONDS = 30.0


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """Tests keep apart by topics, which make the subjects."""
    with SchemaRegistry.start(tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture
def topic(broker: Broker, registry: SchemaRegistry) -> Topic:
    return Topic(broker.address, f"{uuid4().hex}.events", registry=registry.url)


def event(number: int, message: str = "{}") -> Event:
    return Event(number, 1_700_000_000 + number, "ALTER_TABLE", "hive", "s", "t", "json-0.2", message)


def append(topic: Topic, *events: Event) -> None:
    journal = KafkaJournal(topic)
    journal.append(rows_of_events(events))
    journal.close()


def ids(topic: Topic) -> list[int]:
    journal = KafkaJournal(topic)
    last = journal.last()
    found = [] if last is None else journal.events(range(journal.oldest() or 0, last + 1))
    journal.close()
    return list(found)


def ask(url: str, method: str = "GET", body: object = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
        return json.loads(answer.read())


def records(topic: Topic) -> list[Message]:
    consumer, (begin, end) = reader(topic), ends(topic, topic.name)
    found = [consumer.poll(SECONDS) for _ in range(end - begin)]
    consumer.close()
    return [record for record in found if record is not None]


def by_the_registry(url: str, value: bytes) -> Any:
    """The value as Confluent's deserializers take it: nothing is known but the registry."""
    assert value[0] == 0
    found = ask(f"{url}/schemas/ids/{int.from_bytes(value[1:5], 'big')}")
    rest = io.BytesIO(value[5:])
    decoded = schemaless_reader(rest, parse_schema(json.loads(found["schema"])), None)
    assert rest.read() == b""
    return decoded


def occupy(registry: SchemaRegistry, subject: str) -> None:
    """The subject belongs to another schema, and only what fits it may follow."""
    ask(f"{registry.url}/subjects/{subject}/versions", "POST", {"schema": json.dumps(OTHER)})
    ask(f"{registry.url}/config/{subject}", "PUT", {"compatibility": "BACKWARD"})


def test_every_event_can_be_decoded_by_the_registry_alone(topic: Topic) -> None:
    append(topic, event(1), event(2, '{"a": "Straße"}'), event(3))
    found = [by_the_registry(topic.registry, record.value() or b"") for record in records(topic)]
    assert [(each["event_id"], each["message"]) for each in found] == [(1, "{}"), (2, '{"a": "Straße"}'), (3, "{}")]


def test_the_schema_is_registered_once_whoever_appends(topic: Topic) -> None:
    append(topic, event(1))
    append(topic, event(2))
    assert ask(f"{topic.registry}/subjects/{topic.name}-value/versions") == [1]
    assert ids(topic) == [1, 2]


def test_a_topic_goes_on_with_a_registry_and_without_and_all_is_read(topic: Topic) -> None:
    alone = replace(topic, registry="")
    append(alone, event(1))
    append(topic, event(2), event(3))
    append(alone, event(4))
    assert [(record.value() or b"")[:1] for record in records(topic)] == [b"\xc3", b"\0", b"\0", b"\xc3"]
    assert ids(topic) == ids(alone) == [1, 2, 3, 4]


def test_reading_needs_no_registry(topic: Topic) -> None:
    append(topic, event(1), event(2))
    away = KafkaJournal(replace(topic, registry=NOWHERE))
    assert [entry.event_id for entry in away.entries(Span(0, 2))] == [1, 2]
    assert away.events([2]) == {2: event(2)}
    away.close()


def test_a_value_that_is_cut_comes_back_whole(topic: Topic) -> None:
    large = event(2, random.Random(7).randbytes(2 << 20).hex())
    append(topic, event(1), large, event(3))
    assert len(records(topic)) > 3
    journal = KafkaJournal(topic)
    assert journal.events([1, 2, 3]) == {1: event(1), 2: large, 3: event(3)}
    journal.close()


def test_a_journal_that_begins_anew_leaves_no_value_that_is_no_event(topic: Topic) -> None:
    append(topic, event(1))
    journal = KafkaJournal(topic)
    journal.restart(20)
    journal.close()
    append(topic, event(21))
    assert [record.value() is None for record in records(topic)] == [False, True, False]
    assert ids(topic) == [21]


def test_evidence_is_not_for_others_and_stays_as_it_is(topic: Topic) -> None:
    found = Evidence(1, Listing("file:/t", (File("f", 1, 1),)))
    writer = KafkaEvidence(topic)
    append(topic, event(1))
    writer.append([found], 1)
    writer.close()
    reader = KafkaEvidence(replace(topic, registry=""))
    assert reader.evidence([1]) == {(1, "file:/t"): found.listing}
    reader.close()


def test_an_append_waits_for_a_registry_that_is_away_and_nothing_was_written(topic: Topic, tmp_path: Path) -> None:
    with SchemaRegistry.start(tmp_path) as own:
        topic = replace(topic, registry=own.url)
        journal = KafkaJournal(topic)
        rows = [rows_of_events([event(number)]) for number in (1, 2, 3)]
        own.stop()
        with pytest.raises(
            Unavailable, match=r"The schema registry at http://\S+ does not answer\. .*refused.* again\."
        ):
            journal.append(rows[0])
        assert journal.last() is None
        own.restart()
        journal.append(rows[0])
        own.stop()
        journal.append(rows[1])
        assert journal.last() == 2
        with pytest.raises(Unavailable, match="does not answer"):
            KafkaJournal(topic).append(rows[2])
        assert ids(topic) == [1, 2]
        journal.close()


def test_a_subject_that_belongs_to_another_schema_is_refused_and_says_so(
    topic: Topic, registry: SchemaRegistry
) -> None:
    occupy(registry, f"{topic.name}-value")
    with pytest.raises(Refused, match=rf"does not take the schema of events under {topic.name}-value\. .*ncompatible"):
        append(topic, event(1))
    assert ids(topic) == []


def test_an_address_where_no_registry_is_is_refused(topic: Topic, registry: SchemaRegistry) -> None:
    with pytest.raises(Refused, match=r"No schema registry answers at .* Write the root of its API"):
        append(replace(topic, registry=registry.url.removesuffix("/v7") + "/x"), event(1))


@pytest.fixture
def door(registry: SchemaRegistry) -> Iterator[str]:
    """The registry behind a door that asks for a user and a password."""
    with guarded(registry.url, basic("calque", "geh:eim")) as address:
        yield address


def test_a_registry_that_asks_for_a_password_gets_it(
    topic: Topic, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match=r"denies access to \S+\. Who are you\? Check \[journal\] registry_options"):
        append(replace(topic, registry=door), event(1))
    monkeypatch.setenv("REGISTRY_PASSWORD", "geh:eim")
    login = '{ user = "calque", password_env = "REGISTRY_PASSWORD" }'
    wiring = configured(topic, tmp_path, door, f"registry_options = {login}")
    opened = wiring.only_source().journal_opener(JournalAddress("kafka", topic.brokers, topic.name))
    carried = pickle.dumps(opened)
    assert b"geh:eim" not in carried
    journal, _ = pickle.loads(carried)()
    journal.append(rows_of_events([event(1)]))
    assert registry_of(topic).registered_id() is not None


def test_a_password_in_a_file_is_read_for_each_question_and_a_wrong_one_is_refused(
    topic: Topic, door: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    options = {"user": "calque", "password": FileSecret(str(file))}
    registry = registry_of(replace(topic, registry=door, registry_options=options))
    file.write_text("not-it-7f3a")
    with pytest.raises(Refused, match=r"denies access") as caught:
        registry.register()
    assert "not-it-7f3a" not in repr((caught.value, caught.value.__cause__, registry))
    file.write_text("geh:eim\n")
    assert registry.register() == registry.registered_id()


def test_a_token_is_shown_to_a_registry_that_asks_for_one(
    topic: Topic, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TOKEN", "tok-en")
    with guarded(registry.url, "Bearer tok-en") as door:
        asked = replace(topic, registry=door, registry_options={"token": VariableSecret("REGISTRY_TOKEN")})
        append(asked, event(1))
        monkeypatch.setenv("REGISTRY_TOKEN", "another")
        with pytest.raises(Refused, match="denies access"):
            registry_of(asked).registered_id()


def test_of_several_addresses_the_next_one_is_asked_where_one_is_away(topic: Topic) -> None:
    append(replace(topic, registry=f"{NOWHERE},{topic.registry}"), event(1))
    assert registry_of(topic).registered_id() is not None
    away = replace(topic, registry=f"{NOWHERE},{NOWHERE}/b")
    with pytest.raises(Unavailable, match=rf"The schema registry at {NOWHERE},{NOWHERE}/b does not answer"):
        registry_of(away).registered_id()


def test_a_registry_is_asked_by_tls_where_its_certificate_is_trusted(
    topic: Topic, registry: SchemaRegistry, tmp_path: Path
) -> None:
    files = certified("127.0.0.1", tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.certificate, files.key)
    with guarded(registry.url, basic("calque", "geh:eim"), tls) as door:
        (tmp_path / "password").write_text("geh:eim")
        login = {"user": "calque", "password": FileSecret(str(tmp_path / "password"))}
        unknown = replace(topic, registry=door, registry_options=login)
        with pytest.raises(Refused, match=r"The certificate of the schema registry at https://\S+ is not taken"):
            append(unknown, event(1))
        append(replace(unknown, registry_options={**login, "ssl.ca.location": files.certificate}), event(1))
    assert registry_of(topic).registered_id() is not None


def configured(topic: Topic, folder: Path, registry: str, login: str = "") -> Wiring:
    (folder / "calque.toml").write_text(
        f"""
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"

[journal]
format = "kafka"
brokers = "{topic.brokers}"
topic = "{topic.name}"
registry = "{registry}"
{login}

[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
"""
    )
    return APP.wiring(APP.load(folder / "calque.toml"))


def findings_of(wiring: Wiring) -> list[tuple[str, str]]:
    findings = Findings()
    check_journals(wiring, findings)
    return [(found.severity.value, found.what) for found in findings.entries if "registry" in found.what]


def test_check_says_what_is_missing_create_registers_it_and_check_is_content(
    topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring, subject = configured(topic, tmp_path, topic.registry), f"{topic.name}-value"
    missing = f"The schema registry at {topic.registry} has nothing under {subject} that events are written by"
    assert findings_of(wiring) == [("warning", missing)]
    assert main(["journal", "create", "-c", str(tmp_path / "calque.toml"), "--json"]) == 0
    made = read_document("journal create", capsys.readouterr().out)["schema"]
    assert made["subject"] == subject
    there = f"The schema registry has the schema of events, as id {made['id']} of {subject}"
    assert findings_of(wiring) == [("info", there)]


def test_check_says_when_the_schema_will_not_be_taken_and_when_nothing_answers(
    topic: Topic, registry: SchemaRegistry, tmp_path: Path
) -> None:
    occupy(registry, f"{topic.name}-value")
    what = f"The schema of events does not fit what the schema registry has under {topic.name}-value"
    assert findings_of(configured(topic, tmp_path, topic.registry)) == [("error", what)]
    away = f"The schema registry at {NOWHERE} does not answer"
    assert findings_of(configured(topic, tmp_path, NOWHERE)) == [("error", away)]
