"""A history of a database that Hive writes by its own statements, in parts; and databases as readers have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from zipfile import ZipFile

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.model.hive import Partition, Table, is_view
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.hive_driver import Hive

FILE = "@"
"""Stands in a statement for a new file."""
CSV = "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','"
BEFORE = (
    "CREATE DATABASE src COMMENT 'exchange' WITH DBPROPERTIES ('repl.source.for' = '1,2', 'team' = 'x')",
    f"CREATE TABLE src.plain (id INT, name STRING COMMENT 'the name') COMMENT 'unpartitioned' {CSV}",
    "LOAD DATA LOCAL INPATH '@1,one|2,two' INTO TABLE src.plain",
    f"CREATE TABLE src.part (id INT, v DECIMAL(10,2)) PARTITIONED BY (ds STRING, hr INT) {CSV} TBLPROPERTIES ('k'='0')",
    "LOAD DATA LOCAL INPATH '@1,1.50' INTO TABLE src.part PARTITION (ds='2024-01-01', hr=0)",
    "LOAD DATA LOCAL INPATH '@2,2.50' INTO TABLE src.part PARTITION (ds='2024-01-01', hr=1)",
    "LOAD DATA LOCAL INPATH '@3,3.50' INTO TABLE src.part PARTITION (ds='2024-01-02', hr=0)",
    "LOAD DATA LOCAL INPATH '@4,4.50' INTO TABLE src.part PARTITION (ds='a b/c=d#e%', hr=7)",
    "CREATE TABLE src.pq (id BIGINT, s STRUCT<a:INT,b:ARRAY<STRING>>) PARTITIONED BY (d DATE) STORED AS PARQUET",
    "ALTER TABLE src.pq ADD PARTITION (d='2024-02-01')",
    "CREATE TABLE src.parent (id INT, code STRING, CONSTRAINT pk_p PRIMARY KEY (id) DISABLE NOVALIDATE)",
    "CREATE TABLE src.child (id INT, pid INT)",
    "ALTER TABLE src.child ADD CONSTRAINT fk_c FOREIGN KEY (pid) REFERENCES src.parent (id) DISABLE NOVALIDATE",
    "CREATE VIEW src.v_plain AS SELECT id, name FROM src.plain WHERE id > 0",
    "CREATE TABLE src.todrop (a INT)",
    "CREATE TABLE src.torename (a INT) PARTITIONED BY (p STRING)",
    "LOAD DATA LOCAL INPATH '@5' INTO TABLE src.torename PARTITION (p='x')",
    "CREATE FUNCTION src.f_boot AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs' USING JAR '{jar}'",
)
# No file is replaced in the part that brought it: a disk has no checksums, by which the change manager would keep it.
INCREMENTS = (
    (
        f"CREATE TABLE src.n1 (a INT, b STRING) PARTITIONED BY (p STRING) {CSV}",
        "ALTER TABLE src.n1 ADD PARTITION (p='1') PARTITION (p='2')",
        "LOAD DATA LOCAL INPATH '@1,a' INTO TABLE src.n1 PARTITION (p='1')",
        "LOAD DATA LOCAL INPATH '@2,b|3,c' INTO TABLE src.n1 PARTITION (p='3')",
        "LOAD DATA LOCAL INPATH '@3,three' INTO TABLE src.plain",
        "ALTER TABLE src.plain ADD COLUMNS (extra DOUBLE COMMENT 'added')",
        "ALTER TABLE src.part SET TBLPROPERTIES ('k'='1', 'new'='1')",
    ),
    (
        "ALTER TABLE src.part PARTITION (ds='2024-01-01', hr=0) RENAME TO PARTITION (ds='2024-01-09', hr=9)",
        "ALTER TABLE src.part DROP PARTITION (ds='2024-01-02')",
        "TRUNCATE TABLE src.part PARTITION (ds='2024-01-01', hr=1)",
        "LOAD DATA LOCAL INPATH '@9,z' OVERWRITE INTO TABLE src.n1 PARTITION (p='1')",
        "ALTER TABLE src.torename RENAME TO src.renamed",
        "LOAD DATA LOCAL INPATH '@6' INTO TABLE src.renamed PARTITION (p='x')",
        "CREATE TABLE src.torename (z STRING)",
        "DROP TABLE src.todrop",
    ),
    (
        "ALTER TABLE src.n1 ADD CONSTRAINT pk_n1 PRIMARY KEY (a) DISABLE NOVALIDATE",
        "CREATE VIEW src.v2 AS SELECT a FROM src.n1",
        "DROP VIEW src.v2",
        "CREATE FUNCTION src.f_inc AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs' USING JAR '{jar}'",
        "DROP FUNCTION src.f_boot",
        "ALTER DATABASE src SET DBPROPERTIES ('team' = 'y')",
        "LOAD DATA LOCAL INPATH '@8,eight,8.5' OVERWRITE INTO TABLE src.plain",
        "INSERT INTO src.torename VALUES ('inserted')",
    ),
)
DROPPED_CONSTRAINT = ("ALTER TABLE src.child DROP CONSTRAINT fk_c",)
"""A metastore drops all constraints of that name, in whichever database: beside its source, a replica has lost it by
then, which Hive's own load takes for a failure."""
LATER = (
    "LOAD DATA LOCAL INPATH '@5,e' INTO TABLE src.n1 PARTITION (p='2')",
    "ALTER TABLE src.n1 DROP PARTITION (p='3')",
    "LOAD DATA LOCAL INPATH '@7,seven,7.5' INTO TABLE src.plain",
    "CREATE TABLE src.last (a INT)",
)


@dataclass
class HiveSource:
    """Hive's session on a metastore, and files that it loads; they lie in the folder."""

    hive: Hive
    metastore: Metastore
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.reader = HiveReader(Client(self.metastore.uri))

    def play(self, statements: tuple[str, ...]) -> None:
        for statement in statements:
            self.hive.run(self.with_file(statement))

    def with_file(self, statement: str) -> str:
        """With the file that a statement names by its lines. Functions get a jar, and find their classes in Hive's."""
        statement = statement.replace("{jar}", self.jar())
        if FILE not in statement:
            return statement
        before, _, after = statement.partition(FILE)
        lines, _, after = after.partition("'")
        file = self.folder / f"rows-{next(self.numbers)}.txt"
        file.write_text(lines.replace("|", "\n") + "\n")
        return f"{before}{file.as_uri()}'{after}"

    def jar(self) -> str:
        file = self.folder / "functions.jar"
        if not file.exists():
            with ZipFile(file, "w") as jar:
                jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        return file.as_uri()

    def state(self, database: str, view: str = "") -> Mapping[str, object]:
        """All that readers have of a database, by object: definitions without the database's name and what loaders note
        for themselves, and the rows as Hive reads them. `view`: the database that views speak of, by default its own.
        """
        names = [TableName(database, table) for table in self.reader.tables(database)]
        tables = {name.table: self.table(name, view or database) for name in names}
        found = self.reader.database(database)
        assert found is not None
        described = {"": (found.description, (found.parameters or {}).get("team"))}
        functions = {}
        for function in self.reader.functions(database):
            made = self.reader.function(TableName(database, function))
            assert made is not None
            functions[f"{function}()"] = made.class_name
        return {**described, **functions, **tables}

    def table(self, name: TableName, view: str) -> object:
        table = self.reader.table(name)
        assert table is not None
        if is_view(table):
            return (table.view_expanded_text or "").replace(f"`{view}`", "`_`")
        partitions = self.reader.partitions(name, self.reader.partition_names(name))
        constraints = sorted((type(one).__name__, one.name) for one in self.reader.constraints(name))
        own = {key: value for key, value in (table.parameters or {}).items() if key in ("k", "new", "comment")}
        rows = sorted(self.hive.run(f"SELECT * FROM {name}"))
        described = {each: definition(one) for each, one in partitions.items()}
        return definition(table), table.partition_keys, own, constraints, described, rows


def definition(of: Table | Partition) -> object:
    storage = of.storage
    assert storage is not None
    serde = storage.serde
    return (
        storage.columns,
        storage.input_format,
        storage.output_format,
        *((serde.class_name, serde.parameters) if serde is not None else ()),
    )
