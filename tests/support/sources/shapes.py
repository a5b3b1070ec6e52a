"""Shapes of tables that users have, as values: how a source makes each, what it changes it to, and the rows that the
table's engine reads then.

`SHAPES` are replicated, `ASIDE` are set aside with a reason. What nobody but `judges.engines` says is how an engine
reads a definition. A new shape is a line of one of the two, and its acts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.messages import ALTER_TABLE, Context
from calque.model.facets import ColumnStatistics, Doubles, StatisticsCounts, Strings
from calque.model.hive import Column, Partition, SerDe, Skew, Storage, Table, location_of
from calque.model.names import DEFAULT_PARTITION, TableName, table_name
from calque.model.policy import TargetCapabilities
from calque.ports.services import COLUMN_CHANGES
from calque.sandbox.writer import HiveClient
from support.sources.writers import INPUT, OUTPUT, SERDE

Row = tuple[str, ...]
Rows = tuple[Row, ...]
ID_NAME = (Column("id", "int"), Column("name", "string"))
KEYS = (Column("p", "string"),)
FIRST, SECOND = ("1", "fir"), ("2", "oak")
ORDERS, RETURNS = "orders", "returns"
"""Tables that views read."""
PROVIDER = "spark.sql.sources.provider"
AVRO = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
NAN = float("nan")


@dataclass
class Ground:
    """A source as writers of engines have it: its metastore, two databases, and a place for files."""

    client: HiveClient
    database: str
    other: str
    root: Path
    version: int
    files: int = field(default=0)

    def name(self, table: str) -> TableName:
        return table_name(self.database, table)

    def place(self, *names: str) -> str:
        return f"file:{self.root}/{'/'.join(names)}"

    def put(self, place: str, content: str) -> str:
        """A file in that place, complete before it has its name."""
        self.files += 1
        path = Path(place.removeprefix("file:")) / f"part-{self.files:04}"
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}")
        draft.write_text(content)
        draft.rename(path)
        return f"file:{path}"

    def write(self, place: str, *rows: Row, form: str = "hive") -> str:
        return self.put(place, "".join(f"{line_of(form, row)}\n" for row in rows))

    def table(self, table: str) -> Table:
        found = self.client.catalog.table(self.name(table))
        assert found is not None
        return found

    def location(self, table: str) -> str:
        return location_of(self.table(table)) or ""

    def create(self, table: str, storage: Storage, **more: Any) -> None:
        made = Table(table, self.database, "me", storage=storage, type=more.pop("type", "EXTERNAL_TABLE"))
        parameters = {"EXTERNAL": "TRUE"} if made.type == "EXTERNAL_TABLE" else {}
        self.client.create_table(replace(made, parameters=parameters | more.pop("parameters", {}), **more))

    def alter(self, table: str, **changes: Any) -> None:
        self.client.alter_table(self.name(table), replace(self.table(table), **changes))

    def rename(self, table: str, to: str) -> None:
        """As engines do. Spark writes the `path` of a managed table of its own behind the new directory."""
        self.alter(table, name=to)
        renamed = self.table(to)
        if renamed.type == "MANAGED_TABLE" and PROVIDER in (renamed.parameters or {}) and renamed.storage:
            serde = replace(renamed.storage.serde or SerDe(), parameters={"path": renamed.storage.location or ""})
            self.alter(to, storage=replace(renamed.storage, serde=serde))

    def add(self, table: str, value: str, place: str, **more: Any) -> None:
        self.add_values(table, (value,), replace(self.table(table).storage or Storage(), location=place), **more)

    def add_values(self, table: str, values: Row, storage: Storage | None, **more: Any) -> None:
        part = Partition(values, *self.name(table), storage=storage, parameters=more.pop("parameters", {}))
        self.client.add_partitions(self.name(table), [replace(part, **more)])


def line_of(form: str, row: Row) -> str:
    match form:
        case "json":
            return json.dumps({"id": int(row[0]), "name": row[1]})
        case "csv":
            return ",".join(row)
        case "text":
            return row[0]
    return "\x01".join(row)


Act = Callable[[Ground, str], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """`rows` are there when it is made, `after` when it was changed. `at_boot`: the versions of the source that tell of
    it by no event, so that only who reads the table exactly has it."""

    name: str
    make: Act
    rows: Rows
    change: Act
    after: Rows
    at_boot: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SetAside:
    """`reason` is a part of what is said; `only_renamed`: where the database has the source's name it is shown."""

    name: str
    make: Act
    reason: str
    only_renamed: bool = False


def text_storage(location: str | None, columns: Sequence[Column] = ID_NAME, **serde: str) -> Storage:
    return Storage(tuple(columns), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters=serde))


def begin(ground: Ground) -> None:
    """The tables that views read, in both databases."""
    for database in (ground.database, ground.other):
        near = replace(ground, database=database)
        for table, row in ((ORDERS, FIRST), (RETURNS, SECOND)):
            near.create(table, text_storage(ground.place(database, table)))
            near.write(ground.place(database, table), row)


# Tables of Spark's data sources


def schema_of(form: str, keys: Sequence[Column]) -> str:
    columns = (Column("value", "string"),) if form == "text" else ID_NAME
    names = {"int": "integer"}
    fields = [
        {"name": column.name, "type": names.get(column.type, column.type), "nullable": True, "metadata": {}}
        for column in (*columns, *keys)
    ]
    return json.dumps({"type": "struct", "fields": fields})


def of_spark(form: str, path: str, location: str, keys: Sequence[Column] = ()) -> dict[str, Any]:
    """What Spark writes of a table in a format that Hive can't read."""
    storage = text_storage(location, (Column("col", "array<string>", "from deserializer"),), path=path)
    parameters = {PROVIDER: form, "spark.sql.sources.schema": schema_of(form, keys)}
    parameters["spark.sql.create.version"] = "4.2.0"
    if keys:
        parameters |= {"spark.sql.partitionProvider": "catalog", "spark.sql.sources.schema.numPartCols": "1"}
        parameters["spark.sql.sources.schema.partCol.0"] = "p"
    return {"storage": storage, "parameters": parameters, "partition_keys": tuple(keys)}


def placeholder(ground: Ground, table: str) -> str:
    return ground.place(f"{ground.database}.db", f"{table}-__PLACEHOLDER__")


def spark_plain(ground: Ground, table: str, form: str) -> None:
    path = ground.place(table)
    ground.write(path, FIRST, form=form)
    ground.create(table, **of_spark(form, path, placeholder(ground, table)))


def spark_insert(ground: Ground, table: str, form: str) -> None:
    ground.client.insert(ground.name(table), [ground.write(ground.place(table), SECOND, form=form)])


def spark_parts(ground: Ground, table: str, form: str) -> None:
    ground.create(table, **of_spark(form, ground.place(table), placeholder(ground, table), KEYS))
    add_part(ground, table, "a", FIRST, form)


def add_part(ground: Ground, table: str, value: str, row: Row, form: str = "hive") -> None:
    place = ground.place(table, f"p={value}")
    ground.write(place, row, form=form)
    ground.add(table, value, place)


def change_parts(ground: Ground, table: str, form: str = "hive") -> None:
    add_part(ground, table, "b", SECOND, form)


def spark_located(ground: Ground, table: str) -> None:
    """A table whose path and location are one, as long as nobody changes either."""
    path = ground.place(table)
    ground.write(path, FIRST, form="json")
    ground.create(table, **of_spark("json", path, path))


def move_location(ground: Ground, table: str) -> None:
    """Hive's SET LOCATION knows no `path`: Spark goes on reading there."""
    elsewhere = ground.place(f"{table}_elsewhere")
    ground.write(elsewhere, ("3", "not Spark's"), form="json")
    storage = ground.table(table).storage or Storage()
    ground.alter(table, storage=replace(storage, location=elsewhere))


def move_both(ground: Ground, table: str) -> None:
    elsewhere = ground.place(f"{table}_elsewhere")
    ground.write(elsewhere, SECOND, form="json")
    ground.alter(table, storage=of_spark("json", elsewhere, placeholder(ground, table))["storage"])


def spark_managed(ground: Ground, table: str) -> None:
    database = ground.client.catalog.database(ground.database)
    assert database is not None
    path = f"{(database.managed_location or database.location or '').rstrip('/')}/{table}"
    ground.create(table, **of_spark("json", path, path), type="MANAGED_TABLE")
    ground.write(path, FIRST, form="json")
    ground.client.insert(ground.name(table), [f"{path}/part-{ground.files:04}"])


def insert_managed(ground: Ground, table: str) -> None:
    ground.client.insert(ground.name(table), [ground.write(ground.location(table), SECOND, form="json")])


# Names with capitals


def capitals(ground: Ground, table: str) -> None:
    """A table and its partition, of which a client writes every name with capitals."""
    written = replace(ground, database=ground.database.upper())
    storage = text_storage(ground.place(table), (Column("Id", "int"), Column("NAME", "string")))
    made = Table(table.title(), written.database, "me", storage=storage, type="EXTERNAL_TABLE")
    keys = (Column("P", "string"),)
    ground.client.create_table(replace(made, parameters={"EXTERNAL": "TRUE"}, partition_keys=keys))
    place = ground.place(table, "p=a")
    ground.write(place, FIRST)
    part = Partition(("a",), written.database, table.title(), storage=replace(storage, location=place), parameters={})
    ground.client.add_partitions(TableName(written.database, table.title()), [part])


# Views


def view(ground: Ground, table: str, text: str, parameters: Mapping[str, str], **more: Any) -> None:
    both = {"view_original_text": text, "view_expanded_text": text}
    storage = text_storage(None, ID_NAME)
    ground.create(table, storage, type="VIRTUAL_VIEW", parameters=dict(parameters), **both, **more)


def hive_text(ground: Ground, table: str) -> str:
    return f"SELECT `{table}`.`id`, `{table}`.`name` FROM `{ground.database}`.`{table}`"


def hive_view(ground: Ground, table: str) -> None:
    view(ground, table, hive_text(ground, ORDERS), {})


def change_hive_view(ground: Ground, table: str) -> None:
    text = hive_text(ground, RETURNS)
    ground.alter(table, view_original_text=text, view_expanded_text=text)


def spark_view(ground: Ground, table: str, kind: str) -> None:
    """`USE …; CREATE VIEW`: the text as it was written, and the current database beside it."""
    database = ground.other if kind == "other" else ground.database
    parameters = {"view.default.database": database}
    if kind != "spark_2":
        parameters = {
            "view.catalogAndNamespace.numParts": "2",
            "view.catalogAndNamespace.part.0": "spark_catalog",
            "view.catalogAndNamespace.part.1": database,
            "view.sqlConfig.spark.sql.ansi.enabled": "true",
        }
    if kind == "spark_4":
        parameters["view.schemaMode"] = "COMPENSATION"
    names = ["id", "name"]
    columns = {f"view.query.out.col.{number}": name for number, name in enumerate(names)}
    parameters |= {"view.query.out.numCols": str(len(names)), **columns}
    parameters["spark.sql.sources.schema"] = schema_of("json", ())
    view(ground, table, f"SELECT id, name FROM {ORDERS}", parameters)


def change_spark_view(ground: Ground, table: str) -> None:
    text = f"SELECT id, name FROM {RETURNS}"
    ground.alter(table, view_original_text=text, view_expanded_text=text)


def view_with_partitions(ground: Ground, table: str) -> None:
    view(ground, table, hive_text(ground, ORDERS), {}, partition_keys=KEYS)
    ground.add_values(table, ("a",), ground.table(table).storage)


def change_view_with_partitions(ground: Ground, table: str) -> None:
    ground.add_values(table, ("b",), ground.table(table).storage)
    change_hive_view(ground, table)


# Columns, keys, statistics


def plain(ground: Ground, table: str, columns: Sequence[Column] = ID_NAME, rows: Rows = (FIRST,), **more: Any) -> None:
    """A table of Hive's."""
    changes = more.pop("changes", {})
    ground.write(ground.place(table), *rows)
    ground.create(table, replace(text_storage(ground.place(table), columns), **changes), **more)


def insert(ground: Ground, table: str) -> None:
    ground.client.insert(ground.name(table), [ground.write(ground.place(table), SECOND)])


THREE = (Column("a", "int"), Column("b", "bigint"), Column("c", "string"))


def three_columns(ground: Ground, table: str, keys: Sequence[Column]) -> None:
    row = ("1", "2", "oak")
    if not keys:
        plain(ground, table, THREE, (row,))
        return
    ground.create(table, text_storage(ground.place(table), THREE), partition_keys=tuple(keys))
    add_part(ground, table, "a", row)


def change_columns(ground: Ground, table: str) -> None:
    """The first column goes, then the type of another narrows: the source permits both."""
    for columns in (THREE[1:], (Column("b", "int"), THREE[2])):
        found = ground.table(table)
        changed = replace(found, storage=replace(found.storage or Storage(), columns=columns))
        cascade = Context({"CASCADE": "true"} if found.partition_keys else {})
        ground.client.client.call(ALTER_TABLE, *ground.name(table), changed, cascade, setting=(COLUMN_CHANGES, "false"))


def not_a_number(ground: Ground, table: str) -> None:
    plain(ground, table, (Column("id", "double"), Column("name", "string")))
    doubles = StatisticsCounts(doubles=Doubles(NAN, NAN, 0, 1))
    strings = StatisticsCounts(strings=Strings(3, NAN, 0, 1))
    statistics = {
        "id": ColumnStatistics("id", "double", doubles),
        "name": ColumnStatistics("name", "string", strings),
    }
    HiveCatalog(ground.client.client, TargetCapabilities()).put_statistics(ground.name(table), {"": statistics})


def buckets(ground: Ground, table: str, version: str) -> None:
    parameters = {"bucketing_version": version} if version else {}
    plain(ground, table, changes={"buckets": 1, "bucket_columns": ("Id",)}, parameters=parameters)


def change_buckets(ground: Ground, table: str) -> None:
    insert(ground, table)
    parameters = ground.table(table).parameters or {}
    ground.alter(table, parameters={**parameters, "bucketing_version": "2"})


ODD = {"t": "timestamp", "d": "date", "n": "decimal(10,2)", "b": "boolean", "c": "char(3)"}
ODD_VALUES = ("2024-01-31 10:00:00.5", "2024-01-31", "1.50", "true", "ab")
ODD_LATER = (*ODD_VALUES[:4], DEFAULT_PARTITION)


def odd_keys(ground: Ground, table: str) -> None:
    keys = tuple(Column(name, kind) for name, kind in ODD.items())
    ground.create(table, text_storage(ground.place(table)), partition_keys=keys)
    add_odd(ground, table, ODD_VALUES, FIRST)


def add_odd(ground: Ground, table: str, values: Row, row: Row) -> None:
    place = ground.place(table, f"odd-{len(set(values) & {DEFAULT_PARTITION})}")
    ground.write(place, row)
    ground.add_values(table, values, text_storage(place))


def change_odd(ground: Ground, table: str) -> None:
    add_odd(ground, table, ODD_LATER, SECOND)


def another_kind(ground: Ground, table: str) -> None:
    """The external table goes, and a managed one with keys comes under its name."""
    ground.client.drop_table(ground.name(table), delete_data=False)
    ground.create(table, text_storage(None), type="MANAGED_TABLE", partition_keys=(Column("q", "int"),))
    place = f"{ground.location(table)}/q=7"
    ground.write(place, SECOND)
    ground.add(table, "7", place)


def with_parts(ground: Ground, table: str) -> None:
    ground.create(table, text_storage(ground.place(table)), partition_keys=KEYS)
    add_part(ground, table, "a", FIRST)


def scattered(ground: Ground, table: str) -> None:
    """A partition elsewhere, and one below the table that is not called as Hive would."""
    with_parts(ground, table)
    for value, place in (("far", ground.place(f"{table}_far", "x")), ("odd", ground.place(table, "2024", "01"))):
        ground.write(place, SECOND)
        ground.add(table, value, place)


def move_partition(ground: Ground, table: str) -> None:
    place = ground.place(f"{table}_moved")
    ground.write(place, ("3", "elm"))
    part = ground.client.catalog.partitions(ground.name(table), ["p=far"])["p=far"]
    storage = replace(part.storage or Storage(), location=place)
    ground.client.alter_partition(ground.name(table), replace(part, storage=storage))


def default_part(ground: Ground, table: str) -> None:
    with_parts(ground, table)
    add_part(ground, table, DEFAULT_PARTITION, SECOND)


def change_key(ground: Ground, table: str) -> None:
    ground.alter(table, partition_keys=(Column("p", "varchar(20)"),))


# Values that name a place, and files beside the rows


def listed(ground: Ground, table: str) -> None:
    """A parameter lists files of the table's own, as JSON; another names their place, and one a page of a wiki."""
    file = ground.write(ground.place(table), FIRST)
    ground.create(table, text_storage(ground.place(table)), parameters=list_of(ground, table, [file]))


def list_of(ground: Ground, table: str, files: Sequence[str]) -> dict[str, str]:
    return {"files": json.dumps(files), "root": ground.place(table), "wiki": "https://wiki.example.org/shapes"}


def change_listed(ground: Ground, table: str) -> None:
    before = json.loads((ground.table(table).parameters or {})["files"])
    file = ground.write(ground.place(table), SECOND)
    ground.client.insert(ground.name(table), [file])
    parameters = ground.table(table).parameters or {}
    ground.alter(table, parameters={**parameters, **list_of(ground, table, [*before, file])})


def skewed(ground: Ground, table: str) -> None:
    """List bucketing: the rows of a frequent value lie in a directory of their own, which the storage names."""
    place = ground.place(table, "id=1")
    ground.write(place, FIRST)
    skew = Skew(("id",), (("1",),), {("1",): place})
    storage = replace(text_storage(ground.place(table)), skew=skew, sub_directories=True)
    ground.create(table, storage)


def insert_skewed(ground: Ground, table: str) -> None:
    ground.client.insert(ground.name(table), [ground.write(ground.place(table, "id=1"), SECOND)])


def avro_file(ground: Ground, table: str, row: Row) -> str:
    return ground.put(ground.place(f"{table}_schemas"), avro_schema(row))


def avro_schema(row: Row) -> str:
    fields = [{"name": "name", "type": "string", "doc": row[1]}]
    return json.dumps({"type": "record", "name": "tree", "fields": fields}) + "\n"


def avro_parts(ground: Ground, table: str) -> None:
    """The schema's place stands in parameters of the table and of its partition's SerDe, there without a scheme."""
    url = avro_file(ground, table, FIRST)
    storage = replace(text_storage(ground.place(table)), serde=SerDe(class_name=AVRO, parameters={}))
    ground.create(table, storage, partition_keys=KEYS, parameters={"avro.schema.url": url})
    add_avro_part(ground, table, "a", FIRST, url)


def add_avro_part(ground: Ground, table: str, value: str, row: Row, url: str) -> None:
    place = ground.place(table, f"p={value}")
    ground.write(place, row)
    serde = SerDe(class_name=AVRO, parameters={"avro.schema.url": url.removeprefix("file:")})
    ground.add_values(table, (value,), replace(text_storage(place), serde=serde))


def change_avro(ground: Ground, table: str) -> None:
    url = avro_file(ground, table, SECOND)
    parameters = ground.table(table).parameters or {}
    ground.alter(table, parameters={**parameters, "avro.schema.url": url})
    add_avro_part(ground, table, "b", SECOND, url)


FORMS = ("json", "csv", "text")


def in_form(form: str, *rows: Row) -> Rows:
    return tuple(row[:1] if form == "text" else row for row in rows)


def parted(form: str, *rows: Row) -> Rows:
    """With the values of the partitions that they are in."""
    return tuple((*row, value) for row, value in zip(in_form(form, *rows), "ab", strict=False))


def of_form(form: str) -> tuple[Shape, Shape]:
    insert, add = partial(spark_insert, form=form), partial(change_parts, form=form)
    made, made_parts = partial(spark_plain, form=form), partial(spark_parts, form=form)
    return (
        Shape(form, made, in_form(form, FIRST), insert, in_form(form, FIRST, SECOND)),
        Shape(f"{form}_parts", made_parts, parted(form, FIRST), add, parted(form, FIRST, SECOND)),
    )


def schemas(row: Row) -> Row:
    """What a table is read by beside its rows."""
    return ("schema", avro_schema(row))


SHAPES = (
    *(shape for form in FORMS for shape in of_form(form)),
    Shape("located", spark_located, (FIRST,), move_location, (FIRST,)),
    Shape("moved", spark_located, (FIRST,), move_both, (SECOND,)),
    Shape("managed", spark_managed, (FIRST,), insert_managed, (FIRST, SECOND)),
    Shape("capitals", capitals, parted("hive", FIRST), change_parts, parted("hive", FIRST, SECOND)),
    Shape("view_hive", hive_view, (FIRST,), change_hive_view, (SECOND,)),
    *(
        Shape(f"view_{kind}", partial(spark_view, kind=kind), (FIRST,), change_spark_view, (SECOND,))
        for kind in ("spark_2", "spark_3", "spark_4", "other")
    ),
    Shape("view_parts", view_with_partitions, (("a",), FIRST), change_view_with_partitions, (("a",), ("b",), SECOND)),
    Shape("columns", partial(three_columns, keys=()), (("1", "2", "oak"),), change_columns, (("1", "2"),)),
    Shape(
        "columns_parts",
        partial(three_columns, keys=KEYS),
        (("1", "2", "oak", "a"),),
        change_columns,
        (("1", "2", "a"),),
    ),
    Shape("nan", not_a_number, (FIRST,), insert, (FIRST, SECOND), at_boot=frozenset({3})),
    *(
        Shape(f"buckets_{said or 'none'}", partial(buckets, version=said), (FIRST,), change_buckets, (FIRST, SECOND))
        for said in ("", "1", "2")
    ),
    Shape("odd_keys", odd_keys, ((*FIRST, *ODD_VALUES),), change_odd, ((*FIRST, *ODD_VALUES), (*SECOND, *ODD_LATER))),
    Shape("another_kind", plain, (FIRST,), another_kind, ((*SECOND, "7"),)),
    Shape(
        "scattered",
        scattered,
        ((*FIRST, "a"), (*SECOND, "far"), (*SECOND, "odd")),
        move_partition,
        ((*FIRST, "a"), ("3", "elm", "far"), (*SECOND, "odd")),
    ),
    Shape(
        "key_type",
        default_part,
        ((*FIRST, "a"), (*SECOND, DEFAULT_PARTITION)),
        change_key,
        ((*FIRST, "a"), (*SECOND, DEFAULT_PARTITION)),
    ),
    Shape("listed", listed, (FIRST, FIRST), change_listed, (FIRST, FIRST, SECOND, SECOND)),
    Shape("skewed", skewed, (FIRST,), insert_skewed, (FIRST, SECOND)),
    Shape(
        "avro",
        avro_parts,
        (schemas(FIRST), schemas(FIRST), (*FIRST, "a")),
        change_avro,
        (schemas(SECOND), schemas(FIRST), schemas(SECOND), (*FIRST, "a"), (*SECOND, "b")),
    ),
)


# What is set aside


def with_parameters(ground: Ground, table: str, **parameters: str) -> None:
    """`{place}` and `{database}` in them are the table's own place and its database's."""
    own = ground.place(f"{ground.database}.db", table)
    said = {
        key.replace("__", "."): value.replace("{place}", own).replace("{database}", own.rpartition("/")[0])
        for key, value in parameters.items()
    }
    ground.create(table, text_storage(own), parameters=said)


def encoded(ground: Ground, table: str) -> None:
    own = ground.place(table)
    ground.create(table, text_storage(own), parameters={"manifest": base64.b64encode(own.encode()).decode()})


def unlisted(ground: Ground, table: str) -> None:
    made = of_spark("json", ground.place(table), placeholder(ground, table), KEYS)
    made["parameters"]["spark.sql.partitionProvider"] = "filesystem"
    ground.create(table, **made)


def archived(ground: Ground, table: str) -> None:
    with_parts(ground, table)
    place = ground.place(table, "p=b")
    ground.add(table, "b", place, parameters={"is_archived": "true", "original_location": place})


def presto_view(ground: Ground, table: str) -> None:
    said = {"originalSql": f"SELECT id FROM {ORDERS}", "schema": ground.database, "catalog": "hive", "columns": []}
    text = base64.b64encode(json.dumps(said).encode()).decode()
    view(ground, table, f"/* Presto View: {text} */", {"presto_view": "true"})


ASIDE = (
    SetAside("flink", partial(with_parameters, is_generic="true", flink__path="hdfs://hq/t"), "Flink alone"),
    SetAside("jdbc", partial(with_parameters, spark__sql__sources__provider="jdbc"), "in another system"),
    SetAside("hidden", partial(with_parameters, index="{place}/_index"), "hidden place"),
    SetAside("elsewhere", partial(with_parameters, rest="{database}/rest"), "not the object's own"),
    SetAside("encoded", encoded, "in a form in which it is not rewritten"),
    SetAside("unlisted", unlisted, "looking at directories"),
    SetAside("archived", archived, "goes on naming the place"),
    SetAside("presto", presto_view, "Presto and Trino keep its text encoded", only_renamed=True),
)
