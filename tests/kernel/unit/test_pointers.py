"""The places that a definition names: which are followed, and how they go along."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.core.events.kinds import database_obstacle, kind_of, obstacle, partition_obstacle
from calque.core.formats.pointers import PointerKind, leading_back, notes, pointers_of, relocated
from calque.core.images.image import ImageBuilder, Marks, same_definition
from calque.core.policy.admit import Admission
from calque.core.policy.subset import Subset
from calque.errors import Refused
from calque.model.hive import (
    Column,
    Database,
    Partition,
    SerDe,
    Skew,
    Storage,
    Table,
    is_partitioned,
    is_view,
    projects_partitions,
)
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.delta_replicas.core.fit import reasons
from calque.plugins.dumps.core.event_contents import reason_against

HERE, THERE = "hdfs://hq/data/t", "s3a://dr/w/t"
IMAGING = ImageBuilder(Admission(Policy("dr", "hq", include=("*.*",), warehouse="s3a://dr/w")))
MARKS = Marks(1, "r1")
TABLE = TableName("d", "t")


def table(parameters: dict[str, str] | None = None, serde: dict[str, str] | None = None, location: str = HERE) -> Table:
    storage = Storage((), location, serde=SerDe(parameters=serde or {}), parameters={})
    return Table("t", "d", storage=storage, parameters=parameters or {}, type="EXTERNAL_TABLE")


def kinds(thing: Table | Partition) -> list[PointerKind]:
    return [pointer.kind for pointer in pointers_of(thing)]


def test_a_plain_table_has_one_place() -> None:
    assert kinds(table({"comment": "a/b", "k": "v", "wiki": "https://wiki/t"})) == [PointerKind.LOCATION]


def test_a_view_names_no_place() -> None:
    view = replace(table({"x": HERE}), type="VIRTUAL_VIEW")
    assert is_view(view)
    assert kinds(view) == []
    assert kind_of(view) == ""


def test_a_path_is_a_place_whatever_its_case_and_a_schema_is_one_too() -> None:
    found = table({"avro.schema.url": f"{HERE}/a.avsc", "spark.sql.sources.provider": "csv"}, {"PATH": HERE})
    assert kinds(found) == [PointerKind.LOCATION, PointerKind.SCHEMA, PointerKind.PATH]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (HERE, THERE),
        (f"{HERE}/", THERE),
        (f"{HERE}/p=%2F/x", f"{THERE}/p=%2F/x"),
        (f"{HERE}/${{day}}", f"{THERE}/${{day}}"),
        (f"{HERE}s", f"{HERE}s"),
        ("hdfs://other/data/t/x", "hdfs://other/data/t/x"),
        ("/data/t/x", f"{THERE}/x"),
        ("/data/tx/y", "/data/tx/y"),
        ("file:/data/t/x", "file:/data/t/x"),
        ("https://hq/data/t", "https://hq/data/t"),
        (f'["{HERE}/x", "{HERE}"]', f'["{THERE}/x", "{THERE}"]'),
        (f"{HERE}/x,{HERE}/y,hdfs://hq/u", f"{THERE}/x,{THERE}/y,hdfs://hq/u"),
    ],
)
def test_a_value_below_the_object_s_place_goes_along_and_no_other(value: str, shown: str) -> None:
    found = relocated(table({"k": value}, {"k": value}), THERE)
    assert found.storage is not None
    assert found.storage.serde is not None
    assert (found.storage.location, found.parameters, found.storage.serde.parameters) == (
        THERE,
        {"k": shown},
        {"k": shown},
    )


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=5).filter(
    lambda name: not name.startswith((".", "_")) and name.strip()
)
KEYS = st.text("abc.XYZ", min_size=1, max_size=6)
VALUES = st.lists(NAMES, max_size=3).map(lambda names: "/".join((HERE, *names)))


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4), st.booleans())
def test_what_lies_below_a_place_is_at_the_target_a_place_of_the_target_s(
    parameters: dict[str, str], serde: dict[str, str], partitioned: bool
) -> None:
    found: Table | Partition = table(parameters, serde)
    image: Table | Partition
    if partitioned:
        found = Partition(("1",), "d", "t", storage=table({}, serde).storage, parameters=parameters)
        image = IMAGING.partition(found, TABLE, MARKS, THERE)
        without_place = IMAGING.partition(found, TABLE, MARKS, None)
    else:
        source = table(parameters, serde)
        image, without_place = IMAGING.table(source, MARKS, THERE), IMAGING.table(source, MARKS, None)
    assert "hdfs://hq" not in str(image)
    assert list(leading_back(found, image)) == []
    assert same_definition(image, without_place)
    assert same_definition(image, relocated(image, f"{THERE}/_calque/2"))


def test_an_archived_partition_is_an_obstacle() -> None:
    storage = Storage((), f"har:{HERE}/p=1")
    assert partition_obstacle(Partition(("1",), "d", "t", storage=storage, parameters={})) == ""
    archived = Partition(("1",), "d", "t", storage=storage, parameters={"original_location": f"{HERE}/p=1"})
    assert "goes on naming" in partition_obstacle(archived)


@pytest.mark.parametrize(
    ("template", "is_below"),
    [
        ("", True),
        (f"{HERE}/${{p}}/", True),
        (f"{HERE}/p=${{p}}", True),
        (f"{HERE}-${{p}}", False),
        (f"s3://hq/${{p}}?at={HERE}", False),
        ("${p}", False),
        (f"{HERE}/../u/${{p}}", False),
    ],
)
def test_a_projection_below_the_table_is_followed_and_its_template_moves(template: str, is_below: bool) -> None:
    texts = {"storage.location.template": template} if template else {}
    found = replace(table({"projection.enabled": "TRUE", **texts}), partition_keys=(Column("p", "string"),))
    assert (kind_of(found) == "") == is_below
    assert (projects_partitions(found), is_partitioned(found)) == (True, False)
    if is_below and template:
        moved = (relocated(found, THERE).parameters or {})["storage.location.template"]
        assert moved == template.replace(HERE, THERE)


def test_what_asks_for_partitions_refuses_a_projection() -> None:
    found = replace(table({"projection.enabled": "true"}), partition_keys=(Column("p", "string"),))
    assert "made up by query engines" in reason_against(found)
    assert "its partitions are made up by query engines (projection.enabled)" in list(reasons(found))
    policy = Policy("dr", "hq", partitions={"d.*": "p > '1'"})
    with pytest.raises(Refused, match="does not fit the table"):
        Subset(policy).require(TableName("d", "t"), found)


DELTA = {"spark.sql.sources.provider": "delta"}
ICEBERG = {"table_type": "ICEBERG", "metadata_location": f"{HERE}/metadata/1.json"}


@pytest.mark.parametrize("kind", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_parameters_of_lake_tables_are_looked_into(kind: dict[str, str]) -> None:
    found = table({**kind, "k": f"{HERE}/x", "list": f"a={HERE}/y,b", "wiki": "https://wiki/t"})
    assert kind_of(found) == ""
    moved = IMAGING.table(found, MARKS, THERE)
    assert {key: (moved.parameters or {})[key] for key in ("k", "list", "wiki")} == {
        "k": f"{THERE}/x", "list": f"a={THERE}/y,b", "wiki": "https://wiki/t"
    }  # fmt: skip
    assert [pointer.key for pointer in notes(found)] == ["parameters.wiki"]
    encoded = table({**kind, "k": b64encode(f"{HERE}/x".encode()).decode()})
    assert kind_of(encoded) == "tables with places in parameters that can't follow"


def test_places_for_new_files_of_an_iceberg_table_are_its_own_or_left_out() -> None:
    places = {"write.data.path": f"{HERE}/d", "write.metadata.path": "hdfs://hq/data/other"}
    found = table({**ICEBERG, **places, "k": "v"}, location=HERE)
    assert kind_of(found) == ""
    parameters = IMAGING.table(found, MARKS, THERE).parameters or {}
    assert {key: parameters.get(key) for key in places} == {
        "write.data.path": f"{THERE}/d", "write.metadata.path": None
    }  # fmt: skip
    beside = table({**ICEBERG, "write.data.path": "hdfs://hq/w/d.db/other"}, location="hdfs://hq/w/d.db/t")
    assert kind_of(beside) == ""
    none = ImageBuilder(Admission(Policy("dr", "hq", include=("*.*",), warehouse="s3a://dr/w", data="none")))
    assert (none.table(found, MARKS, HERE).parameters or {})["write.metadata.path"] == places["write.metadata.path"]


def test_a_page_of_a_wiki_is_a_note_and_a_pointer_is_none() -> None:
    found = table({"wiki": "https://me:word@wiki/t?token=x", "own": f"{HERE}/x", "calque.source": "hq://d"})
    assert [(pointer.key, pointer.value) for pointer in notes(found)] == [("parameters.wiki", "https://wiki/t")]


def test_a_place_of_its_database_that_is_another_table_s_is_refused() -> None:
    natural = table({"k": "hdfs://hq/w/d.db/u/x"}, location="hdfs://hq/w/d.db/t")
    assert kind_of(natural) == "tables with places in parameters that can't follow"
    assert [pointer.key for pointer in leading_back(natural, relocated(natural, THERE))] == ["parameters.k"]


def test_a_database_of_a_connector_alone_is_refused() -> None:
    assert database_obstacle(Database("d", database_type=1)) == ""
    assert "(pg)" in database_obstacle(Database("d", database_type=2, connector="pg"))


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: quote(text, safe=""),
        lambda text: text.encode().hex(),
        lambda text: b64encode(text.encode()).decode(),
        lambda text: b64encode(json.dumps({"path": text}).encode()).decode(),
        lambda text: json.dumps({"path": text}).replace("/", "\\/"),
    ],
    ids=["URL's form", "hex", "Base64", "JSON in Base64", "JSON with escapes"],
)
def test_an_encoded_place_of_its_own_has_the_table_set_aside(encode: Callable[[str], str]) -> None:
    found = table({"k": encode(f"{HERE}/x")})
    assert kind_of(found) == "tables with places in parameters that can't follow"
    assert "in a form in which it is not rewritten (parameters.k = " in obstacle(found)
    assert kind_of(table({"k": encode("hdfs://hq/data/other/x")})) == ""


def test_a_hidden_place_or_one_of_another_table_in_a_list_has_the_table_set_aside() -> None:
    here = "hdfs://hq/w/d.db/t"
    for value in (f"{here}/x,{here}/_hidden/y", f'["{here}/x", "hdfs://hq/w/d.db/u"]'):
        assert kind_of(table({"k": value}, location=here)) == "tables with places in parameters that can't follow"


def test_what_names_a_place_for_people_stays_and_sets_nothing_aside() -> None:
    texts = {"comment": f"was at {HERE}", "spark.sql.sources.schema": f'{{"comment":"see {HERE}"}}'}
    assert relocated(table(texts), THERE).parameters == texts
    assert kind_of(table(texts)) == ""


def test_other_values_set_nothing_aside() -> None:
    harmless = {
        "uuid": "550e8400-e29b-41d4-a716-446655440000",
        "checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "token": b64encode(bytes(range(256))).decode(),
        "regex": "([^ ]*) /data/(t|u)/%{x} \\d+",
        "stats": '{"BASIC_STATS":"true","COLUMN_STATS":{"data/t":"true"}}',
    }
    assert kind_of(table(harmless)) == ""
    assert relocated(table(harmless), THERE).parameters == harmless


def test_the_places_of_skewed_values_go_along() -> None:
    skew = Skew(("c",), (("1",),), {("1",): f"{HERE}/c=1"})
    found = table()
    found = replace(found, storage=replace(found.storage or Storage(), skew=skew))
    image = IMAGING.table(found, MARKS, THERE)
    assert image.storage is not None
    assert image.storage.skew == replace(skew, locations={("1",): f"{THERE}/c=1"})
    assert same_definition(image, relocated(image, f"{THERE}/_calque/2"))


def test_what_a_target_has_of_the_source_s_inside_a_text_leads_back() -> None:
    found = table({"k": "x"})
    image = replace(IMAGING.table(found, MARKS, THERE), parameters={"k": b64encode(f"{HERE}/x".encode()).decode()})
    assert [pointer.key for pointer in leading_back(found, image)] == ["parameters.k"]
    assert list(leading_back(found, replace(image, parameters={"k": f"[{THERE}/x]"}))) == []
