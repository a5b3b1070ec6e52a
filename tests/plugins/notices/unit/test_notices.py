"""Notices as texts, their topics, keys and selection."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from calque.errors import Refused, Unavailable
from calque.model.journal import Entry, EventKind, Keys
from calque.model.ledger import ObjectRow
from calque.model.names import TableName
from calque.plugins.marks.model import Mark
from calque.plugins.notices.core.calque_json import record_of
from calque.plugins.notices.core.channel import Channel
from calque.plugins.notices.core.from_ledger import ShownTables
from calque.plugins.notices.core.notice import (
    HistoryGap,
    Notice,
    Occasion,
    PartitionsAdded,
    PartitionsAltered,
    PartitionsDropped,
    RowsInserted,
    SetDone,
    TableAltered,
    TableCreated,
    TableDropped,
    shares,
    type_of,
    type_text,
)
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.core.table_keys import TableKeys
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.engine.ordered_publisher import MESSAGES_AT_ONCE, OrderedPublisher
from calque.resources import cache_folder, schemas_folder
from calque.sandbox.artifacts import Artifact, installed
from calque.sandbox.java import java_17
from support.memory.notices import MemoryNoticeBroker

ORDERS = TableName("sales", "orders")
OCCASION = Occasion("hq:812.0", ORDERS, "700", 812, 812, "2026-11-24T12:00:00.000+00:00")
NOWHERE = replace(OCCASION, table=TableName(""), key="")
MARK = Mark(3, ORDERS, "r812", {"ds": "2024/01", "region": "us"}, 812, 10**18, 2 * 10**18)
PARTITION = "region=us/ds=2024%2F01"
NOTICES: tuple[Notice, ...] = (
    TableCreated(OCCASION),
    TableAltered(OCCASION),
    TableAltered(OCCASION, TableName("sales", "old")),
    TableDropped(OCCASION),
    PartitionsAdded(OCCASION, (PARTITION,)),
    PartitionsAltered(OCCASION, (PARTITION,)),
    PartitionsDropped(OCCASION, (PARTITION,)),
    RowsInserted(OCCASION),
    RowsInserted(replace(OCCASION, found=True), (PARTITION,)),
    SetDone(OCCASION, MARK),
    HistoryGap(NOWHERE, 5, 9, "purged"),
)
ALL = (
    "create_table",
    "alter_table",
    "drop_table",
    "add_partition",
    "alter_partition",
    "drop_partition",
    "insert",
    "done",
)


def at_target(table: TableName) -> TableName:
    return TableName("sales_dr", table.table)


def schema() -> Draft202012Validator:
    found = json.loads((schemas_folder() / "notice-1.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def channel(**changes: Any) -> Channel:
    topics = TopicTemplate("{source}.{database}.{table}", "hq")
    selection = Selection.of(ALL, ("*.*",), ())
    return replace(
        Channel("bus", "hq", "source", topics, selection, "calque", "thrift://hq:9083", lambda t: t), **changes
    )


@pytest.mark.parametrize("notice", NOTICES, ids=lambda notice: type_of(notice).value)
def test_every_notice_is_what_the_schema_says(notice: Notice) -> None:
    for name_at_target in (at_target, lambda table: table):
        schema().validate(record_of(notice, "hq", "dr", name_at_target))


def test_every_kind_of_notice_has_one_text_for_its_type() -> None:
    assert [type_text(notice) for notice in NOTICES] == [type_of(notice).value for notice in NOTICES]


def test_the_schema_takes_nothing_else() -> None:
    record = record_of(NOTICES[0], "hq", "source", at_target)
    for wrong in ({**record, "more": 1}, {**record, "type": "done"}, {**record, "table": None}):
        assert not schema().is_valid(wrong)


def test_the_partition_keys_of_a_notice_are_in_lexical_order() -> None:
    added = record_of(NOTICES[4], "hq", "source", at_target)
    assert json.dumps(added["partitions"]) == '[{"ds": "2024/01", "region": "us"}]'
    done = record_of(
        SetDone(OCCASION, replace(MARK, partition={"region": "us", "ds": "2024/01"})), "hq", "dr", at_target
    )
    assert (list(done["partition"]), done["condition"]) == (["ds", "region"], "ds=2024%2F01/region=us")


def test_a_notice_of_many_partitions_is_sent_in_several() -> None:
    names = tuple(f"ds={number}" for number in range(1001))
    assert [len(share) for share in shares(names)] == [500, 500, 1]
    assert shares(()) == [()]


# Topics


@pytest.mark.parametrize(
    ("template", "topic"),
    [
        ("{source}.{database}.{table}", "hq.sales.orders"),
        ("{source}.{database}", "hq.sales"),
        ("warehouse-{source}", "warehouse-hq"),
    ],
)
def test_a_topic_follows_from_the_table(template: str, topic: str) -> None:
    assert TopicTemplate(template, "hq").topic(ORDERS) == topic


def test_characters_that_no_topic_has_are_written_otherwise() -> None:
    assert TopicTemplate("{database}.{table}", "hq").topic(TableName("d", "zoë/1")) == "d.zo_u00eb_u002f1"


@pytest.mark.parametrize("template", ["", "{source}.{tabel}", "a b", "{table}", "{source"])
def test_what_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(Refused):
        TopicTemplate(template, "hq")


def test_a_gap_is_told_to_the_topic_of_each_table_that_the_channel_sends() -> None:
    selection = Selection.of(("add_partition",), ("sales.*",), ())
    tables = [ORDERS, TableName("sales", "items"), TableName("hr", "staff")]
    messages = list(channel(selection=selection).messages([NOTICES[-1]], lambda: tables))
    assert [message.topic for message in messages] == ["hq.sales.items", "hq.sales.orders"]
    one = channel(topics=TopicTemplate("{source}", "hq"))
    assert [message.topic for message in one.messages([NOTICES[-1]], list)] == ["hq"]


# Selection


def test_a_channel_sends_its_types_of_its_tables() -> None:
    selection = Selection.of(("add_partition", "alter_table"), ("sales.*",), ("*.tmp*",))
    sent = [type_of(notice).value for notice in NOTICES if selection.takes(notice)]
    assert sent == ["alter_table", "alter_table", "add_partition", "gap"]
    other = replace(OCCASION, table=TableName("sales", "tmp_1"))
    assert not selection.takes(PartitionsAdded(other, (PARTITION,)))


def test_a_table_that_is_renamed_out_of_a_channel_is_told_of_once_more() -> None:
    selection = Selection.of(("alter_table",), ("sales.*",), ())
    left = replace(OCCASION, table=TableName("hr", "orders"))
    assert selection.takes(TableAltered(left, ORDERS))
    assert not selection.takes(TableAltered(left))


# Keys


def entry(event_id: int, kind: EventKind, table: str, other: str | None = None) -> Entry:
    before = TableName("d", other) if other else None
    return Entry(event_id, 0, "", Keys(kind, TableName("d", table), before))


HISTORY = (
    entry(11, EventKind.RENAME_TABLE, "b", "a"),
    entry(12, EventKind.CREATE_TABLE, "a"),
    entry(13, EventKind.RENAME_TABLE, "c", "a"),
    entry(14, EventKind.DROP_TABLE, "b"),
    entry(15, EventKind.CREATE_TABLE, "b"),
)


def test_a_key_is_the_event_of_the_create_or_the_first_name_and_goes_with_renames() -> None:
    keys = TableKeys.of(10, HISTORY)
    a, b, c = (TableName("d", name) for name in "abc")
    assert [keys.key(a, event_id) for event_id in (10, 12)] == ["d.a", "12"]
    assert [keys.key(b, event_id) for event_id in (11, 13, 15)] == ["d.a", "d.a", "15"]
    assert [keys.key(c, event_id) for event_id in (13, 20)] == ["12", "12"]
    assert keys.key_before(b, 14) == "d.a"


@pytest.mark.parametrize("cut", range(10, 16))
def test_keys_that_were_recorded_go_on_as_if_they_had_not_been(cut: int) -> None:
    whole = TableKeys.of(10, HISTORY)
    part = TableKeys.of(10, [one for one in HISTORY if one.event_id <= cut])
    part.pass_over(cut)
    part.forget(cut)
    restored = TableKeys.restored(json.loads(json.dumps(part.record())))
    for one in HISTORY:
        restored.take(one)
    alive = {13: "bc", 14: "c", 15: "bc"}.get(cut, "abc")
    names = [TableName("d", name) for name in alive]
    events = range(cut, 20)
    assert [restored.key(name, event) for name in names for event in events] == [
        whole.key(name, event) for name in names for event in events
    ]


# HCatalog

JARS = tuple(
    Artifact.parse(text)
    for text in (
        "org.apache.hive.hcatalog:hive-hcatalog-server-extensions:3.1.3",
        "org.codehaus.jackson:jackson-core-asl:1.9.13",
        "org.codehaus.jackson:jackson-mapper-asl:1.9.13",
    )
)
READER = """
import java.nio.file.*;
import org.apache.hive.hcatalog.messaging.*;
import org.apache.hive.hcatalog.messaging.json.JSONMessageDeserializer;

public class ReadNotices {
    public static void main(String[] arguments) throws Exception {
        MessageDeserializer reader = new JSONMessageDeserializer();
        for (String line : Files.readAllLines(Paths.get(arguments[0]))) {
            String[] parts = line.split("\\t", 2);
            HCatEventMessage it = reader.getHCatEventMessage(parts[0], parts[1]);
            String what = "";
            if (it instanceof AddPartitionMessage m) what = m.getTable() + " " + m.getPartitions();
            if (it instanceof DropPartitionMessage m) what = m.getTable() + " " + m.getPartitions();
            if (it instanceof AlterPartitionMessage m) what = m.getTable() + " " + m.getKeyValues();
            if (it instanceof InsertMessage m) what = m.getTable() + " " + m.getPartitionKeyValues();
            if (it instanceof CreateTableMessage m) what = m.getTable();
            if (it instanceof DropTableMessage m) what = m.getTable();
            if (it instanceof AlterTableMessage m) what = m.getTable();
            System.out.println(it.getEventType() + " " + it.getDB() + " " + what + " " + it.getTimestamp());
        }
    }
}
"""


def test_hcatalog_s_own_classes_read_what_a_channel_sends(tmp_path: Path) -> None:
    notices = [notice for notice in NOTICES if not isinstance(notice, SetDone | HistoryGap)]
    messages = list(channel(format="hcatalog").messages(notices, list))
    lines = [f"{message.headers['HCAT_EVENT']}\t{message.body.decode()}" for message in messages]
    assert {(m.headers["HCAT_MESSAGE_VERSION"], m.headers["HCAT_MESSAGE_FORMAT"]) for m in messages} == {
        ("0.1", "json")
    }
    (tmp_path / "notices").write_text("\n".join(lines))
    (tmp_path / "ReadNotices.java").write_text(READER)
    path = ":".join(map(str, installed(JARS, cache_folder())))
    program = [str(java_17()), "-cp", path, str(tmp_path / "ReadNotices.java"), str(tmp_path / "notices")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    values = "{ds=2024/01, region=us}"
    assert done.stdout.splitlines() == [
        "CREATE_TABLE sales orders 1795521600",
        "ALTER_TABLE sales orders 1795521600",
        "ALTER_TABLE sales orders 1795521600",
        "DROP_TABLE sales orders 1795521600",
        f"ADD_PARTITION sales orders [{values}] 1795521600",
        f"ALTER_PARTITION sales orders {values} 1795521600",
        f"DROP_PARTITION sales orders [{values}] 1795521600",
        "INSERT sales orders {} 1795521600",
        f"INSERT sales orders {values} 1795521600",
    ], done.stderr


def test_what_hcatalog_has_no_message_for_is_calque_s_own_json() -> None:
    (done,) = channel(format="hcatalog").messages([SetDone(OCCASION, MARK)], list)
    assert done.headers == {
        "HCAT_EVENT": "PARTITION_DONE",
        "HCAT_MESSAGE_VERSION": "0.1",
        "HCAT_MESSAGE_FORMAT": "json",
        "CALQUE_ID": "hq:812.0",
    }
    schema().validate(json.loads(done.body))


def test_a_table_leaves_its_name_before_another_one_takes_it() -> None:
    """In whatever order the rows of an epoch come to speak of them."""
    rows = [
        ObjectRow("sales", "c", "ds=1", "11", 13, "append", step=0),
        ObjectRow("sales", "b", "", "2", 14, "drop_table", step=1),
        ObjectRow("sales", "c", "", "3", 17, "rename_away", step=2),
        ObjectRow("sales", "b", "", "3", 17, "rename_table", step=3),
        ObjectRow("sales", "d", "", "4", 18, "rename_away", step=4),
        ObjectRow("sales", "c", "", "4", 18, "rename_table", step=5),
    ]
    shown = ShownTables({TableName("sales", name): number for name, number in (("b", "2"), ("c", "3"), ("d", "4"))})
    changes = shown.changes(rows, {})
    names = [(change.was and change.was.table, change.name and change.name.table) for change in changes]
    assert names == [("b", None), ("c", "b"), ("d", "c")]
    assert shown.incarnations == {TableName("sales", "b"): "3", TableName("sales", "c"): "4"}


# Sending again what is not known to have arrived


def sends(publisher: OrderedPublisher, count: int) -> None:
    notices = [TableAltered(replace(OCCASION, id=f"hq:{number}.0", event_id=number)) for number in range(count)]
    publisher.send(notices)


def test_what_the_broker_has_taken_is_sent_once_though_the_position_is_not_recorded() -> None:
    broker = MemoryNoticeBroker()
    publisher = OrderedPublisher(channel(), broker, lambda: ())
    sends(publisher, 3)
    sends(publisher, 5)
    publisher.recorded()
    assert [len(messages) for messages in broker.topics.values()] == [5]


@pytest.mark.parametrize("taken", [0, 1, MESSAGES_AT_ONCE - 1, MESSAGES_AT_ONCE, MESSAGES_AT_ONCE + 1])
def test_a_broker_that_goes_away_in_the_middle_gets_the_rest_when_it_is_back(taken: int) -> None:
    broker = MemoryNoticeBroker()
    publisher = OrderedPublisher(channel(), broker, lambda: ())
    broker.switch(dies_after=taken)
    with pytest.raises(Unavailable):
        sends(publisher, 2 * MESSAGES_AT_ONCE)
    broker.switch(away=False)
    sends(publisher, 2 * MESSAGES_AT_ONCE + 1)
    (messages,) = broker.topics.values()
    events = [json.loads(message.body)["event_id"] for message in messages]
    assert events == list(range(2 * MESSAGES_AT_ONCE + 1))


def test_a_broker_that_answers_nothing_gets_nothing_twice() -> None:
    broker = MemoryNoticeBroker()
    publisher = OrderedPublisher(channel(), broker, lambda: ())
    broker.switch(silent=True)
    for _ in range(3):
        with pytest.raises(Unavailable):
            sends(publisher, 4)
    broker.switch(silent=False)
    sends(publisher, 4)
    assert [len(messages) for messages in broker.topics.values()] == [4]
