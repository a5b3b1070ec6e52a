"""What a target shows, in terms of the chain that its tables are on."""

from __future__ import annotations

from calque.core.states.fold import fold
from calque.core.states.locate import LocatedState, ObservedTable, locate, observed_state
from calque.core.states.state import stages_of
from calque.model.names import TableName
from calque.model.plan import Data
from support.sources.logs import Log, plain

T, U = plain("t"), plain("u")


def test_a_table_read_at_another_table_s_event_is_not_taken_for_that_table() -> None:
    """`u` was read at 13, which is an insert into `t`; at 18 the source gives `t` the name that `u` had until 17."""
    log = Log().at(13).insert(T).insert(U).at(17).drop(U).rename(T, "u")
    t, u = TableName("d1", "t"), TableName("d1", "u")
    chain = fold(log.entries())
    values = observed_state(chain, {t: ObservedTable(10, "r10"), u: ObservedTable(13, "r13")}, lambda _: 10)
    assert (values.names[t], values.names[u]) == (chain.names[t], chain.names[u])


def located(content: str) -> LocatedState:
    """Where a target is that created `t` of event 11 and shows these files: 11 has `a`, 12 `ab`, and 13 `c` alone."""
    contents = {11: "a", 12: "ab", 13: "c"}
    log = Log().at(11).create(T).insert(T).insert(T)
    chain = fold(log.entries())

    def content_of(_lineage: int, _partition: str, data: Data | None) -> tuple[str, int]:
        return (contents[data.event_id], 0) if data is not None else ("", 0)

    observed = {TableName("d1", "t"): ObservedTable(11, "11", content)}
    first, stages = stages_of(chain, lambda _: True, content_of)
    values = observed_state(chain, observed, lambda _: 10)
    return locate(values, first, stages, observed, lambda _: 10, lambda one, other: set(one) <= set(other))


def test_a_state_on_which_an_append_began_is_not_shown_again() -> None:
    assert [located(content) for content in ("a", "ab", "c")] == [LocatedState(index, 1) for index in (1, 2, 3)]
    assert located("ax") == LocatedState(None, 2)
    assert located("x") == LocatedState(None, 1)
