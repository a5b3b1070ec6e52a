"""Clusters: their statements parse, and a query runs where all of its tables are."""

from __future__ import annotations

import pytest

from calque.app import APP
from calque.errors import Refused
from plugins.clusters.unit.test_clusters import T11_AT_C2, WITHOUT_SECONDARIES, run


def test_it_works_at_all() -> None:
    APP.language().parse("SHOW CLUSTERS")
    APP.language().parse("ALTER TABLE sales.orders ADD SECONDARY CLUSTER C2")
    assert run("SELECT * FROM T21", WITHOUT_SECONDARIES).cluster == "C2"
    joined = "SELECT * FROM T11 JOIN T21 ON T11.x = T21.x"
    assert run(joined, T11_AT_C2).cluster == "C2"
    with pytest.raises(Refused):
        run("SELEC", WITHOUT_SECONDARIES)
