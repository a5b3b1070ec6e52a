"""`calque check` says of which tables no mark can be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.app import APP
from calque.engine.check.findings import Finding, Findings, Severity
from calque.errors import Refused
from calque.model.hive import Column, Table
from calque.model.names import TableName
from calque.plugins.marks.api.sets import RETENTION, DoneSets
from calque.plugins.marks.checks import check_marks

TEXT = """
[source]
name = "hq"
metastore = "thrift://hq:1"
[done]
retention = "2d"
retentions = { "logs.*" = "7d", "logs.raw" = "1h" }
[targets.dr]
metastore = "thrift://dr:1"
warehouse = "dr"
"""


@pytest.fixture
def sets(tmp_path: Path) -> DoneSets:
    (tmp_path / "calque.toml").write_text(TEXT)
    return DoneSets(APP.wiring(APP.load(tmp_path / "calque.toml")))


def table(name: str, keys: tuple[str, ...] = ("ds",), **parameters: str) -> Table:
    database, _, table_name = name.partition(".")
    columns = tuple(Column(key, "string") for key in keys)
    return Table(table_name, database, partition_keys=columns, parameters=parameters)


def test_a_table_s_own_word_comes_first_then_the_longest_pattern(sets: DoneSets) -> None:
    assert sets.lifetime(table("sales.t")) == 2 * 86400
    assert sets.lifetime(table("logs.t")) == 7 * 86400
    assert sets.lifetime(table("logs.raw")) == 3600
    assert sets.lifetime(table("logs.raw", **{RETENTION: "90s"})) == 90
    with pytest.raises(Refused, match=r"sales\.t can't be marked\. The parameter calque\.done\.retention says no dur"):
        sets.lifetime(table("sales.t", **{RETENTION: "soon"}))


def test_tables_whose_word_is_no_duration_are_named_unless_they_have_no_partitions(sets: DoneSets) -> None:
    wrong = {RETENTION: "soon"}
    tables = {
        TableName("sales", "good"): table("sales.good"),
        TableName("sales", "t"): table("sales.t", **wrong),
        TableName("sales", "u"): table("sales.u", **wrong),
        TableName("sales", "plain"): table("sales.plain", (), **wrong),
    }
    findings = Findings()
    check_marks(tables, sets.why_no_lifetime, findings)
    why = 'The parameter calque.done.retention says no duration: "soon" is not a duration'
    todo = "Set the parameter to a duration such as '7d', or remove it"
    assert findings.entries == [
        Finding("sales.t, sales.u can't be marked as done", why, todo, Severity.WARNING, "source")
    ]
