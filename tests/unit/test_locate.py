"""What a target shows, in terms of the chain that its tables are on."""

from __future__ import annotations

from calque.core.fold import fold
from calque.core.locate import ObservedTable, observed_cells
from calque.model.names import TableName
from support.sources.logs import Log, plain

T, U = plain("t"), plain("u")


def test_a_table_read_at_another_table_s_event_is_not_taken_for_that_table() -> None:
    """`u` was read at 13, which is an insert into `t`; at 18 the source gives `t` the name that `u` had until 17."""
    log = Log().at(13).insert(T).insert(U).at(17).drop(U).rename(T, "u")
    t, u = TableName("d1", "t"), TableName("d1", "u")
    chain = fold(log.entries())
    cells = observed_cells(chain, {t: ObservedTable(10, "r10"), u: ObservedTable(13, "r13")}, lambda _: 10)
    assert (cells.names[t], cells.names[u]) == (chain.names[t], chain.names[u])
