"""The operation prepare, flip, sweep: the rows of new, changed and doomed partitions change in one call.

A partition that is listed before or after its rows lies in the empty directory, which belongs to no object, and says so
in `calque.state`. Listed early it carries event 0, because it shows no event's rows. Listed late it keeps its event, at
which it was there, and `calque.dropped` names the event that took its rows away, so that no later hop puts them back.
"""

from __future__ import annotations

from calque.core.images.image import DROPPED, STATE
from calque.engine.apply.context import LATE, HopContext, emptied
from calque.engine.apply.facets import statistics_of_others, write_kept
from calque.engine.apply.partitions import (
    altered_partitions,
    definitions,
    forget,
    new_partitions,
    other_files,
    remember,
)
from calque.engine.apply.tables import alter_table
from calque.model.hive import Partition
from calque.model.names import EventId
from calque.model.plan import PrepareFlipSweep


def flip(context: HopContext, operation: PrepareFlipSweep, event_id: EventId) -> None:
    table, target_name = operation.table, context.name_at_target(operation.table)
    if operation.header is not None:
        alter_table(context, operation.header)
    shown = context.shown_table(table)
    empty = context.empty_directory
    context.side.storage.make_directories([empty])
    added = new_partitions(context, table, shown, operation.added)
    different = other_files(context, shown, operation.changed)
    changed = altered_partitions(context, table, shown, operation.changed, different)
    kept_statistics = statistics_of_others(context, table, (*operation.added, *operation.changed))
    late = {name: dropped(shown.partitions[name], empty, event_id) for name in operation.doomed}
    context.list_early(target_name, definitions(added))
    context.alter_partitions(target_name, [*definitions(added), *definitions(changed), *late.values()])
    remember(context, table, added)
    remember(context, table, changed)
    context.parts_announcement = None  # what is dropped has no rows any more
    context.drop_partitions(target_name, operation.doomed)
    forget(context, table, operation.doomed, event_id)
    write_kept(context, table, kept_statistics)


def dropped(partition: Partition, empty: str, event_id: EventId) -> Partition:
    """Return the partition without rows, which event `event_id` took away; one that had none yet stays early."""
    state = (partition.parameters or {}).get(STATE, LATE)
    return emptied(partition, empty, {STATE: state, DROPPED: str(event_id)})
