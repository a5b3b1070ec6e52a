"""What differs between the metastores that `MemoryMetastore` can be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerHabits:
    """`bulk_events`: a call for many partitions is one event, not one for each. `table_ids`: tables carry `id`.
    `compare_and_swap`: an expected event is looked at. `write_ids`: messages of alterations carry `writeId`.
    `spelled_names`: CREATE_TABLE is logged with names as the client spelled them. `truncate_pairs`: truncating writes
    a second, ordinary alteration behind each. `empty_truncate`: truncating a plain table with an empty list of
    partitions is logged. `own_managed_place`: managed tables lie in the warehouse wherever their database does.
    `lists_external`: CREATE_TABLE and ADD_PARTITION have lists of files for external tables too.
    `facet_events`: column statistics, defaults and checks are logged. `statistics_follow`: column statistics of
    partitions stay when their table is renamed. `any_names`: names of objects are not looked at.
    `counts_renamed`: the files of a partition are counted when it is renamed, not only where its counts are altered.
    `described_databases`: an alteration of a database is logged too where its parameters and its owner stay.
    `fixed_columns`: columns are not altered to ones of other types at their places.
    `any_write_id`: a replicated transaction gets any write id, not only the next one; an ended one may be committed
    again; and a commit sets a mark. `kept_write_ids`: those of a table that is dropped without its data stay under its
    name. `lowest_invalid`: where no write id has a committed transaction, readers are told of the lowest one alone.
    `transaction_details`: messages about ends of transactions have write ids and databases, their rows have no names,
    a replicated transaction is aborted under its number, and compactions are logged."""

    bulk_events: bool
    table_ids: bool
    compare_and_swap: bool
    write_ids: bool
    spelled_names: bool
    truncate_pairs: bool
    empty_truncate: bool
    own_managed_place: bool
    lists_external: bool
    facet_events: bool
    statistics_follow: bool
    counts_renamed: bool
    described_databases: bool
    any_write_id: bool
    kept_write_ids: bool
    lowest_invalid: bool
    transaction_details: bool
    any_names: bool = False
    fixed_columns: bool = False


HIVE_3 = ServerHabits(
    bulk_events=False,
    table_ids=False,
    compare_and_swap=False,
    write_ids=False,
    spelled_names=True,
    truncate_pairs=True,
    empty_truncate=False,
    own_managed_place=False,
    lists_external=True,
    facet_events=False,
    statistics_follow=False,
    counts_renamed=False,
    described_databases=True,
    any_write_id=False,
    kept_write_ids=False,
    lowest_invalid=False,
    transaction_details=False,
)
HIVE_4 = ServerHabits(
    bulk_events=True,
    table_ids=True,
    compare_and_swap=True,
    write_ids=True,
    spelled_names=False,
    truncate_pairs=False,
    empty_truncate=True,
    own_managed_place=True,
    lists_external=False,
    facet_events=True,
    statistics_follow=True,
    counts_renamed=True,
    described_databases=False,
    any_write_id=True,
    kept_write_ids=True,
    lowest_invalid=True,
    transaction_details=True,
)
