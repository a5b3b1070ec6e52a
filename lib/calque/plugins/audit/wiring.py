"""The live objects of the audit: the ledgers, journals and histories of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from calque.engine.sides.journal_reads import newest
from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId
from calque.plugins.audit.adapters.history import EventHistory, TargetHistory
from calque.wiring.retention_kinds import RetentionKind
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def ask_audit(
    wiring: Wiring, text: str, parameters: Sequence[object], relations: Collection[str], target: str | None
) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
    """Return the columns and the rows of a statement over these relations, of the target `target` or of all (None).
    Raises as `relations.query` does, and `Refused` for an unknown target. Needs the extra `audit`."""
    from calque.plugins.audit.adapters.relations import AuditedSource, AuditedTarget, query

    names = wiring.config.own_targets() if target is None else (target,)
    targets = [wiring.target(name) for name in names]
    sources = {one.plug.source: one.source for one in targets}
    return query(
        text,
        parameters,
        relations,
        [AuditedTarget(one.plug.name, one.plug.source, one.ledger(), history_of_target(one)) for one in targets],
        [
            AuditedSource(name, one.journal(), history_of_source(one), newest(one.gaps()))
            for name, one in sources.items()
        ],
    )


def history_of_source(source: SourceWiring) -> EventHistory:
    """Return the history of the source's events, which keeps rows of those that the journal forgets."""
    return EventHistory(source.folder.table(source.places.history), source.folder.table_options)


def history_of_target(target: TargetWiring) -> TargetHistory:
    """Return the history of the target's epochs and hops, which keeps rows of those that the ledger forgets."""
    return TargetHistory(target.folder.table(target.places.ledger), target.folder.table_options)


def keep_events(source: SourceWiring, side: SourceSide, _begin: EventId) -> None:
    """Keep rows of all events that the journal has, and remove those that are older than the configuration says."""
    history, seconds = history_of_source(source), source.folder.section.history
    if seconds:
        journal = source.journal()
        history.keep(journal, journal.rows, newest(source.gaps()))
    history.expire(int(side.clock.now_ns() / 1e9 - seconds))


def keep_epochs(target: TargetWiring, before: int, now_ns: int) -> None:
    """Keep rows of the epochs below number `before`, which the ledger is going to forget, and remove those that are
    older than the configuration says."""
    history, seconds = history_of_target(target), target.folder.section.history
    if seconds:
        history.keep(target.ledger(), before)
    history.expire(datetime.fromtimestamp(now_ns / 1e9 - seconds, UTC).isoformat())


RETENTION = RetentionKind(before_events=keep_events, before_epochs=keep_epochs)
