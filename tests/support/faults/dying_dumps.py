"""A bootstrap and an increment that die at each effect they have, in a process of their own for each, and what the next
dump makes of it: one line of JSON for each death.

`python -m support.faults.dying_dumps FOLDER`
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from calque.engine.failpoints import FailpointGuard, Hit, passing
from calque.model.names import EventId
from calque.plugins.dumps.core.options import dump_options, known_options
from calque.plugins.dumps.engine.dump import DumpPlace, dump
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from support.storages import any_storage
from support.worlds.dumpworlds import EVERYTHING, DumpWorld

FIRST = ("create_database", *["create_table"] * 4, *["add_partitions"] * 3)
THEN = ("insert_partition", "add_partitions", "alter_table", "overwrite_partition")


def dying_at(number: int) -> Hit:
    """The process ends at that hit, as by `kill -9`."""
    hits = count()

    def hit(_name: str) -> None:
        if next(hits) == number:
            os._exit(9)

    return hit


def survived(action: Callable[[], object]) -> bool:
    """Whether the action came to its end, in a process of its own."""
    child = os.fork()
    if not child:
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def contents(folder: Path) -> dict[str, str]:
    """The dump's files, without its own name."""
    return {
        str(path.relative_to(folder)): path.read_text(errors="replace").replace(folder.name, "")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def main(folder: Path) -> None:
    world = DumpWorld(3, folder, ())
    for operation in FIRST:
        world.writer.run(operation)
    middle = world.source.current()
    for operation in THEN:
        world.writer.run(operation)
    world.capture_all()

    def dumped(place: Path, from_event: EventId | None, hit: Hit = passing) -> FinishedDump:
        storage = FailpointGuard(hit).storage(any_storage())
        request = DumpRequest(
            EVERYTHING,
            dump_options(known_options({}, ())),
            from_event=from_event,
            change_root="file:/cmroot",
            keeps_files=True,
        )
        return dump(world.source_side, DumpPlace(storage, str(place / "dumps"), place / "own", 0, 1e9), request)

    for from_event in (None, middle):
        whole = Path(dumped(folder / f"whole{from_event}", from_event).directory.directory)
        for number in count():
            place = folder / f"{from_event}.{number}"
            if survived(partial(dumped, place, from_event, dying_at(number))):
                break
            left = [path for path in place.glob("dumps/*/*") if list(path.rglob("_finished_dump"))]
            found = Path(dumped(place, from_event).directory.directory)
            told = {
                "increment": from_event is not None,
                "left": [contents(path) == contents(whole) for path in left],
                "directories": len([*place.glob("dumps/*/*")]),
                "under_way": len([*place.glob("own/*")]),
                "whole": contents(found) == contents(whole),
            }
            print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
