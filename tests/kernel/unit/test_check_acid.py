"""What `check` says of ACID tables at a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from calque.core.events.kinds import obstacle
from calque.core.policy.admit import natively
from calque.engine.check.check_acid import check_native
from calque.engine.check.findings import Findings
from calque.engine.check.sides import Target
from calque.model.hive import Table
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.ports import Catalog, Storage
from calque.ports.services import MetastoreInfo

FULL = Table("full", "d", parameters={"transactional": "true"}, type="MANAGED_TABLE")
ADDED = Table("added", "d", parameters={"transactional": "true", "transactional_properties": "insert_only"})
PLAIN = Table("plain", "d")
TABLES = {TableName("d", table.name): table for table in (FULL, ADDED, PLAIN)}


def told(acid: str | Mapping[str, str], why: str) -> list[str]:
    policy = Policy("dr", "hq", warehouse="file:/target", acid=acid)
    nothing = (cast("MetastoreInfo", None), cast("Catalog", None), cast("Storage", None))
    findings = Findings()
    check_native(Target(policy, *nothing, lambda _: None, why_not_native=lambda: why), TABLES, findings)
    return [f"{one.severity} {one.what}: {one.why}" for one in findings.entries if not one.expected]


@pytest.mark.parametrize("acid", ["native", "auto", {"d.full": "auto", "d.added": "native"}])
def test_tables_that_become_native_are_named_with_who_reads_them(acid: str | Mapping[str, str]) -> None:
    (only,) = told(acid, "")
    assert "d.full, d.added" in only
    assert "Hive 4 alone" in only


def test_a_target_that_can_not_have_native_replicas_sets_tables_aside_that_are_to_be_some() -> None:
    (only,) = told({"d.full": "native", "d.added": "auto"}, "no ids")
    assert only.startswith("warning")
    assert "d.full:" in only
    assert "no ids" in only
    assert told("auto", "no ids") == []


def test_auto_is_native_where_the_target_can_and_else_what_the_kind_permits() -> None:
    assert natively(Policy("dr", "hq", acid="auto")).acid == "native"
    assert natively(Policy("dr", "hq", acid={"a.*": "auto", "b.*": "skip"})).acid == {"a.*": "native", "b.*": "skip"}
    assert obstacle(ADDED, "auto") == ""
    assert "ACID tables" in obstacle(FULL, "auto")
