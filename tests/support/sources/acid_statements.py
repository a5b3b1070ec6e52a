"""Statements by which Hive changes ACID tables of each kind, in rounds; all in the session's current database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.sources.acid_files import rows_file
from support.sources.acid_writer import COLUMNS

FULL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
PLAIN = "STORED AS ORC TBLPROPERTIES ('transactional'='false')"
TWO = "(id INT, v STRING)"
TABLES = (
    f"CREATE TABLE f {TWO} {FULL}",
    f"CREATE TABLE p {TWO} PARTITIONED BY (d STRING) {FULL}",
    f"CREATE TABLE b {TWO} CLUSTERED BY (id) INTO 2 BUCKETS {FULL}",
    f"CREATE TABLE m {TWO} {INSERT_ONLY}",
    f"CREATE TABLE q {TWO} PARTITIONED BY (d STRING) STORED AS ORC {INSERT_ONLY}",
    f"CREATE TABLE c {TWO} {PLAIN}",
    "INSERT INTO c VALUES (1, 'plain'), (2, 'plain')",
)
MERGED = """MERGE INTO f t USING (SELECT id, v FROM p) s ON t.id = s.id
    WHEN MATCHED AND s.id = {id} THEN UPDATE SET v = 'merged'
    WHEN MATCHED THEN DELETE
    WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"""
INSERT_ONLY_TABLES = ("m", "q")


@dataclass(frozen=True, slots=True)
class Fails:
    """A statement whose transaction is aborted."""

    text: str


@dataclass(frozen=True, slots=True)
class Compact:
    """A compaction of a table, or of a partition."""

    table: str
    partition: str = ""
    is_major: bool = False


Step = str | Fails | Compact


def steps_of_round(n: int, folder: Path) -> tuple[Step, ...]:
    """What changes tables in the round, whose ids begin at 10 * n. Files that statements load lie in the folder."""
    first, second, third = 10 * n, 10 * n + 1, 10 * n + 2
    added = ", ".join(f"c{each}" for each in range(1, n + 1))
    return (
        f"INSERT INTO f VALUES ({first}, 'a'), ({second}, 'b'), ({third}, 'c')",
        f"INSERT INTO p VALUES ({first}, 'x', 'one{n}'), ({second}, 'y', 'two{n}'), ({third}, 'z', 'all')",
        f"INSERT INTO b (id, v) VALUES ({first}, 'p'), ({second}, 'q'), ({third}, 'r')",
        f"UPDATE f SET v = 'changed' WHERE id = {second}",
        f"DELETE FROM p WHERE id = {first}",
        MERGED.format(id=second),
        f"FROM f INSERT INTO m SELECT id, v INSERT INTO p PARTITION (d) SELECT id, v, 'copy{n}'",
        Fails(f"INSERT INTO f SELECT id, assert_true(id <> {second}) FROM f"),
        "INSERT INTO q PARTITION (d) (id, v, d) SELECT id, v, d FROM p",
        f"LOAD DATA LOCAL INPATH '{loaded(n, folder)}' INTO TABLE f",
        f"UPDATE b SET v = 'new' WHERE id < {second}",
        Compact("f", is_major=True),
        Compact("p", "d=all"),
        f"DELETE FROM f WHERE id IN ({first + 5}, {third})",
        f"INSERT INTO m VALUES ({first}, 'm')",
        Compact("m"),
        f"INSERT INTO m VALUES ({second}, 'n')",
        f"ALTER TABLE b ADD COLUMNS (c{n} INT)",
        f"UPDATE b SET c{n} = id WHERE id > {first}",
        f"ALTER TABLE q ADD COLUMNS (c{n} INT)",
        f"INSERT INTO q PARTITION (d) (id, c{n}, d) VALUES ({first}, {n}, 'added{n}')",
        f"ALTER TABLE p PARTITION (d = 'two{n}') RENAME TO PARTITION (d = 'renamed{n}')",
        f"UPDATE p SET v = 'there' WHERE d = 'renamed{n}'",
        f"ALTER TABLE p DROP PARTITION (d = 'copy{n}')",
        f"INSERT OVERWRITE TABLE f SELECT id, v FROM f WHERE id > {first - 5}",
        f"INSERT OVERWRITE TABLE q PARTITION (d) SELECT id, 'over', {added}, d FROM q WHERE id = {first}",
        f"TRUNCATE TABLE p PARTITION (d = 'one{n}')",
        "TRUNCATE TABLE m",
        f"CREATE TABLE s{n} {FULL} AS SELECT id, v FROM f",
        f"ALTER TABLE s{n} RENAME TO r{n}",
        f"INSERT INTO r{n} VALUES ({first}, 'renamed')",
        f"DROP TABLE r{n - 1}" if n > 1 else "ALTER TABLE c SET TBLPROPERTIES ('transactional'='true')",
        f"INSERT INTO c VALUES ({first}, 'acid')",
        f"DELETE FROM c WHERE id < {n + 1}",
    )


def loaded(n: int, folder: Path) -> str:
    file = folder / f"loaded{n}" / "000000_0"
    file.parent.mkdir()
    file.write_bytes(rows_file([(10 * n + 5, "loaded"), (10 * n + 6, "loaded")], COLUMNS, "orc"))
    return file.as_uri()


AFTER_TAKEOVER = (
    "INSERT INTO f VALUES (1000, 'own'), (1001, 'own')",
    "UPDATE f SET v = 'own too' WHERE id = 1000",
    "DELETE FROM f WHERE id < 1000",
    "INSERT INTO p VALUES (1000, 'own', 'own'), (1001, 'own', 'all')",
    "DELETE FROM p WHERE d = 'all' AND id < 1000",
    "UPDATE b SET v = 'own'",
    "MERGE INTO b t USING f s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "INSERT INTO m VALUES (1000, 'own')",
    "INSERT INTO q PARTITION (d) (id, v, d) VALUES (1000, 'own', 'all')",
    "INSERT OVERWRITE TABLE m SELECT id, v FROM f",
    "DELETE FROM c WHERE id = 10",
)
"""What Hive does to a replica once calque has stopped for good."""
