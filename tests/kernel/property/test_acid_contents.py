"""One look into a directory of an insert-only table, and what it proves of all states before it: never a wrong one."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from calque.core.acid.contents import AcidLook, content_at
from calque.core.acid.directories import AcidDirectory, directory_of, readable
from calque.core.acid.write_ids import TableWriteIds, ValidWriteIds
from calque.model.files import File, Listing


@dataclass
class Written:
    """A table whose writers, compactor and cleaner take one step after the other. A directory's name leads to the write
    ids whose rows it has. `states` are the write ids that were seen after each commit, with the rows of readers."""

    ids: TableWriteIds = field(default_factory=TableWriteIds)
    overwrites: set[int] = field(default_factory=set)
    directories: dict[str, frozenset[int]] = field(default_factory=dict)
    compactions: dict[int, str] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    states: list[tuple[ValidWriteIds, frozenset[int]]] = field(default_factory=list)
    transaction: int = 100

    def begin(self, *, overwrites: bool) -> None:
        write_id = self.ids.high + 1
        self.ids = self.ids.allocated({write_id: write_id})
        if overwrites:
            self.overwrites.add(write_id)
        name = f"base_{write_id}" if overwrites else f"delta_{write_id}_{write_id}_0"
        self.directories[name] = frozenset({write_id})

    def end(self, number: int, *, is_committed: bool) -> None:
        if self.ids.open:
            write_id = sorted(self.ids.open)[number % len(self.ids.open)]
            self.ids = self.ids.ended(write_id, is_committed=is_committed)
            if is_committed:
                self.states.append((self.ids.valid(), self.rows(self.ids.valid())))

    def rows(self, valid: ValidWriteIds) -> frozenset[int]:
        first = max((one for one in self.overwrites if valid.holds(one)), default=0)
        return frozenset(one for one in range(max(first, 1), valid.high + 1) if valid.holds(one))

    def compact(self, *, major: bool) -> None:
        """Write what a compaction makes of all below the first open write id; it is committed later."""
        high = min(self.ids.open, default=self.ids.high + 1) - 1
        valid = ValidWriteIds(high, aborted=self.ids.aborted)
        read = readable(self.known(), valid, self.committed.__contains__)
        chosen = [one for one in read.all() if major or one is not read.base]
        if len(chosen) > 1:
            low = min(one.low for one in chosen)
            name = f"base_{high}" if major else f"delta_{low}_{high}"
            self.transaction += 1
            self.compactions[self.transaction] = name
            rows = frozenset(row for one in chosen for row in self.directories[one.name] if valid.holds(row))
            self.directories[f"{name}_v{self.transaction}"] = rows

    def finish_compaction(self) -> None:
        if self.compactions:
            transaction = min(self.compactions)
            del self.compactions[transaction]
            self.committed.add(transaction)

    def clean(self) -> None:
        """Remove what no reader of now or later needs, and what was aborted."""
        read = readable(self.known(), self.ids.valid(), self.committed.__contains__)
        for one in read.obsolete:
            del self.directories[one.name]
        for one in self.known():
            if one.low == one.high and one.high in self.ids.aborted:
                del self.directories[one.name]

    def known(self) -> list[AcidDirectory]:
        return [one for name in self.directories if (one := directory_of(name)) is not None]

    def look(self) -> AcidLook:
        files = tuple(sorted(File(f"{name}/0", 1, 1) for name in self.directories))
        return AcidLook(Listing("file:/t", files), frozenset(self.directories))


Step = st.sampled_from(
    [
        "insert",
        "overwrite",
        "commit",
        "inserted",
        "inserted",
        "overwritten",
        "abort",
        "minor",
        "major",
        "finish",
        "clean",
    ]
)


def taken(table: Written, step: str, number: int) -> None:
    match step:
        case "insert" | "overwrite":
            table.begin(overwrites=step == "overwrite")
        case "inserted" | "overwritten":
            table.begin(overwrites=step == "overwritten")
            table.end(len(table.ids.open) - 1, is_committed=True)
        case "commit" | "abort":
            table.end(number, is_committed=step == "commit")
        case "minor" | "major":
            table.compact(major=step == "major")
        case "finish":
            table.finish_compaction()
        case "clean":
            table.clean()


@given(st.lists(st.tuples(Step, st.integers(0, 3)), max_size=40))
def test_a_look_proves_only_what_readers_saw_and_the_newest_state_always(steps: list[tuple[str, int]]) -> None:
    table = Written()
    for step, number in steps:
        taken(table, step, number)
    look, latest = table.look(), table.ids.valid()
    for valid, rows in table.states:
        listing = content_at(look, valid, latest, table.committed.__contains__, table.committed.__contains__)
        if listing is not None:
            names = [file.path.split("/")[1] for file in listing.files if not file.path.endswith("/")]
            assert frozenset(row for name in names for row in table.directories[name]) == rows
        elif valid == latest:
            raise AssertionError("the newest state was not proven")


Steps = st.lists(st.tuples(Step, st.integers(0, 3)), max_size=12)


@given(st.lists(st.tuples(Step, st.integers(0, 3)), max_size=30), Steps, Steps, Steps)
@example([("inserted", 0), ("inserted", 0), ("minor", 0)], [("finish", 0), ("clean", 0)], [], [])
@example([("inserted", 0), ("inserted", 0), ("major", 0)], [], [("finish", 0), ("clean", 0)], [])
def test_a_look_proves_nothing_else_while_a_compactor_and_a_cleaner_go_on(
    before: list[tuple[str, int]],
    to_files: list[tuple[str, int]],
    to_names: list[tuple[str, int]],
    after: list[tuple[str, int]],
) -> None:
    """What is known of transactions is from before the look, whose files are older than its names."""
    table = Written()
    for step, number in before:
        taken(table, step, number)
    states, committed = list(table.states), set(table.committed)
    for step, number in to_files:
        taken(table, step, number)
    listing, rows_in = table.look().listing, dict(table.directories)
    for step, number in to_names:
        taken(table, step, number)
    look = AcidLook(listing, table.look().names)
    for step, number in after:
        taken(table, step, number)
    for valid, rows in states:
        found = content_at(look, valid, table.ids.valid(), committed.__contains__, table.committed.__contains__)
        if found is not None:
            names = [file.path.lstrip("/").split("/")[0] for file in found.files if not file.path.endswith("/")]
            assert frozenset(row for name in names for row in rows_in[name]) == rows


@given(st.lists(st.tuples(Step, st.integers(0, 3)), max_size=30))
def test_before_a_cleaner_every_state_is_proven_that_no_compaction_covers(steps: list[tuple[str, int]]) -> None:
    table = Written()
    for step, number in steps:
        if step in ("insert", "commit", "abort"):
            taken(table, step, number)
    for valid, _ in table.states:
        assert content_at(table.look(), valid, table.ids.valid(), lambda _: True, lambda _: True) is not None
