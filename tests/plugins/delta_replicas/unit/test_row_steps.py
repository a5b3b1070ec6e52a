"""Which directories of an ACID table have to be read for a step from one state to another."""

from __future__ import annotations

import pytest

from calque.model.files import File
from calque.plugins.delta_replicas.core.row_steps import Covered, RowStep, by_directory

INSERTS = [f"delta_{number:07d}_{number:07d}_0000" for number in range(9)]
DELETES = [f"delete_{name}" for name in INSERTS]
MINOR, MAJOR = "delta_0000001_0000003", "base_0000003"


def step(before: list[str], after: list[str], times: dict[str, int] | None = None) -> RowStep:
    """From directories with a file each to others; in `times` those that were written later under the same name."""

    def files(names: list[str], modified_ns: dict[str, int]) -> list[File]:
        return [File(f"{name}~000000_0" if name else "000000_0", 5, modified_ns.get(name, 1)) for name in names]

    return RowStep(by_directory(files(before, {})), by_directory(files(after, times or {})))


@pytest.mark.parametrize(
    ("before", "after", "unknown"),
    [
        ([], [INSERTS[1]], [INSERTS[1]]),
        ([INSERTS[1]], [INSERTS[1], INSERTS[2], DELETES[2]], [DELETES[2], INSERTS[2]]),
        (INSERTS[1:4], [MINOR], []),
        (INSERTS[1:4], [MINOR, INSERTS[4]], [INSERTS[4]]),
        ([INSERTS[1], INSERTS[3]], [MINOR], [MINOR]),
        (INSERTS[1:3], [MINOR], None),
        (INSERTS[1:4], [MAJOR], []),
        (["", *INSERTS[1:4]], [MAJOR], []),
        ([MAJOR], [MAJOR, INSERTS[5]], [INSERTS[5]]),
        ([MAJOR, INSERTS[4]], ["base_0000004"], []),
        ([], [""], [""]),
        ([], [MAJOR], None),
        ([INSERTS[1], INSERTS[3]], [MAJOR], None),
        ([INSERTS[1]], ["base_0000002"], None),
        ([INSERTS[1]], [], None),
        ([INSERTS[1], INSERTS[2]], [INSERTS[2]], None),
    ],
)
def test_what_may_have_unknown_events_is_read(before: list[str], after: list[str], unknown: list[str] | None) -> None:
    """None: rows may be gone without an event."""
    found = step(before, after)
    assert (None if found.is_whole else found.unknown) == unknown


def test_a_directory_with_other_files_under_the_same_name_is_another_one() -> None:
    assert step(INSERTS[1:4], INSERTS[1:4], {INSERTS[2]: 7}).is_whole


def test_write_ids_of_neighbours_are_joined() -> None:
    known = Covered([(1, 2), (3, 3), (5, 9), (6, 7)])
    assert known.joined == [(1, 3), (5, 9)]
    assert known.holds_all((0, 3))
    assert not known.holds_all((3, 5))
    assert not known.holds(4)
