"""The keys of tables, kept for channels that need them after the events are gone."""

from __future__ import annotations

from calque.engine.sides.journal_reads import begin_of, newest, reach
from calque.engine.sides.sides import SourceSide
from calque.engine.sweep.retention import last_before
from calque.model.names import EventId
from calque.plugins.notices.core.table_keys import TableKeys
from calque.plugins.notices.engine.positions import KeyRecords
from calque.ports.records import Records


def retain_keys(source: SourceSide, records: Records, name: str, begin: EventId, retention: float) -> None:
    """Record the keys of tables as they were half a retention ago, under `name` in the state folder. Channels of
    notices that begin later, or stay away for long, take them from there, because the journal no longer has the events
    that tell them. `begin` is the event after which the journal began; `retention` is in seconds."""
    last, gap = source.journal.last(), newest(source.gaps)
    if last is None:
        return
    kept_keys = KeyRecords(records, name, name)
    known = kept_keys.newest(gap, last)
    upto = (known or TableKeys(begin_of(source.gaps, begin))).upto
    seconds = source.clock.now_ns() / 1e9 - retention / 2
    upto = last_before(source.journal, max(upto, reach(source.journal)) + 1, last, seconds)
    if known is None or upto > known.upto:
        keys = kept_keys.keys(source.journal, gap, begin_of(source.gaps, begin), upto)
        keys.forget(upto)
        kept_keys.put(gap, keys)
