"""Dying at every failpoint of the engine, and not hearing of every effect, twice in a row, on real directories."""

from __future__ import annotations

import os
import pickle
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings

from calque.engine.failpoints import EFFECT_NAMES, EFFECTS, LOST, NAMES
from support.faults.crashes import HISTORIES, STEP, Play, hidden, litter, played
from support.runs.seeds import seed
from support.worlds.disks import Death, DiskWorld
from support.worlds.histories import differences

SEED = seed()
ALL = bool(os.environ.get("CALQUE_HISTORIES"))
BRIEF = settings.get_current_profile_name() == "check"
SAMPLE = 12
"""Of so many that another history passes too, one is tried there."""
PART = 4
"""`make check` tries one of so many failpoints, others each day."""
ENGINE = tuple(name for name in EFFECT_NAMES if name.partition(".")[0] in EFFECTS)
"""Effects of ports. Records of the state folder are for real processes."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Passed = tuple[str, bytes]
"""A failpoint, and all that the effects before it have left."""


# What effects leave


def left(world: DiskWorld) -> bytes:
    """All that calque has left behind."""
    stores: list[Any] = [
        world.target_store,
        world.ledger,
        world.journal,
        world.evidence,
        world.gaps,
        world.scans,
        world.commits,
        world.target_store.transactions,
        world.marks,
        world.partition_events,
    ]
    held = [{name: kept for name, kept in vars(one).items() if is_content(kept)} for one in stores if one is not None]
    disk = world.root.removeprefix("file:")
    files = [
        (path, os.lstat(path).st_mtime_ns, os.lstat(path).st_ino, os.lstat(path).st_mode)
        for part in ("target", "pins", "handmade")
        for at, directories, names in os.walk(f"{disk}/{part}")
        for path in (os.path.join(at, name) for name in (*directories, *names))
    ]
    return pickle.dumps((repr(held), sorted(files)))


def is_content(kept: object) -> bool:
    return isinstance(kept, dict | list | tuple | int) or type(kept).__module__.startswith(
        ("calque.core", "calque.model")
    )


@dataclass
class Alive:
    """A history in which nobody dies: the failpoints that it passes, and what was copied."""

    hits: list[str]
    copied: Counter[str]
    passed: list[Passed]


@dataclass
class Watch:
    """Remembers what was left at each failpoint, and behind each step of the history."""

    passed: list[Passed] = field(default_factory=list)
    world: DiskWorld | None = None

    def __call__(self, name: str) -> None:
        if self.world is not None and name in (*NAMES, STEP):
            self.passed.append((name, left(self.world)))


@cache
def alive(history: str) -> Alive:
    with TemporaryDirectory() as root:
        watch = Watch()
        death = Death(watch=watch)
        play = Play(DiskWorld(Path(root), death, **HISTORIES[history].world))
        watch.world = play.world
        play.run(HISTORIES[history])
        hits, copied = list(death.hits), copies(play.world)
        check(play)
        return Alive(hits, copied, watch.passed)


def copies(world: DiskWorld) -> Counter[str]:
    """How often each file was copied; names that a table's writer draws are all one."""
    return Counter(UUID.sub("", path.rsplit("/", 1)[1]) for path, _ in world.disk.moved)


def unseen(passed: Sequence[Passed]) -> Iterator[str]:
    """Between which failpoints something was done that passed none."""
    for (before, then), (after, now) in pairwise(passed):
        inside = before.endswith(".before") and after == before.replace(".before", ".after")
        if then != now and not inside and after != STEP:
            yield f"between {before} and {after}"


def test_nothing_is_done_that_passes_no_failpoint_and_every_failpoint_is_passed() -> None:
    found = {history: alive(history) for history in HISTORIES}
    assert {history: list(unseen(one.passed)) for history, one in found.items()} == {
        history: [] for history in HISTORIES
    }
    assert {name.rpartition(".")[0] for one in found.values() for name, _ in one.passed} - {""} == set(ENGINE)


def test_an_effect_without_a_failpoint_is_noticed() -> None:
    """Whichever of them it is."""
    for effect in ENGINE:
        bare = [[passed for passed in alive(one).passed if passed[0].rpartition(".")[0] != effect] for one in HISTORIES]
        assert any(list(unseen(passed)) for passed in bare), effect


# Dying


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the hit number `skip` of a failpoint, and at its next one."""

    history: str
    name: str
    skip: int


def faults_of(history: str) -> list[Fault]:
    """At each failpoint of it, and at each effect whose answer is lost, the first and the last time."""
    hits = alive(history).hits
    often = Counter(hits)
    lost = {name.replace(".after", f".{LOST}"): often[name] for name in often if name.endswith(".after")}
    return [
        Fault(history, name, skip)
        for name, times in sorted((often | Counter(lost)).items())
        for skip in (range(times) if ALL else sorted({0, times - 1}))
    ]


def chosen() -> list[Fault]:
    """Every failpoint in the first history that passes it, and a sample of the others; in `make check` a part of it."""
    found = [fault for history in HISTORIES for fault in faults_of(history)]
    if ALL:
        return found
    first: Mapping[str, str] = {fault.name: fault.history for fault in reversed(found)}
    certain = [fault for fault in found if first[fault.name] == fault.history]
    others = [fault for fault in found if first[fault.name] != fault.history]
    if BRIEF:
        return [fault for fault in certain if not fault.skip][SEED % PART :: PART]
    return certain + random.Random(SEED).sample(others, len(others) // SAMPLE)


def check(play: Play) -> None:
    """Equal, nothing seen that the source never had, nothing gone back, and nothing left behind."""
    world = play.world
    assert differences(world) == []
    assert world.problems == []
    assert world.went_back == []
    assert play.undone() == []
    shown = world.target_states()
    with world.uninterrupted():
        play.sweep()
        play.sweep()
        play.let_go()
    assert play.noted == {}
    assert (litter(world), hidden(world)) == ([], [])
    assert world.pins is None or list(world.pins.events()) == []
    assert world.target_states() == shown


@pytest.mark.timeout(0 if ALL else 900)
def test_whoever_dies_or_hears_nothing_twice_anywhere_goes_on_copies_nothing_twice_and_leaves_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Between two files of a copy or a publication, too."""
    happened: Counter[str] = Counter()
    faults = chosen()
    record_property(
        "chosen", f"Deaths in memory: at {len(faults)} places, {len({fault.name for fault in faults})} failpoints"
    )
    for number, fault in enumerate(faults):
        root = tmp_path / str(number)
        death = Death(fault.name, fault.skip, times=2)
        try:
            play = played(fault.history, root, death)
            again = copies(play.world) - alive(fault.history).copied
            assert not again, f"copied twice: {again}"
            check(play)
        except Exception as error:
            raise AssertionError(f"{fault}, {death.happened} times") from error
        happened[fault.name] += death.happened
        shutil.rmtree(root, ignore_errors=True)
    everything = {f"{effect}.{side}" for effect in ENGINE for side in ("before", "after", LOST)}
    assert BRIEF or everything <= happened.keys()
    assert all(happened.values()), sorted(happened)


def test_an_epoch_whose_answer_was_lost_is_taken_up_by_the_process_that_published_it(tmp_path: Path) -> None:
    play = played("files", tmp_path, Death("ledger.publish.lost", 3, times=2))
    epochs = play.world.ledger.epochs()
    assert play.world.starts == 1
    assert [epoch.epoch for epoch in epochs] == list(range(1, len(epochs) + 1))
    check(play)


@pytest.mark.parametrize(("history", "skip"), [("lost", 4), ("protected", 6)])
def test_what_comparisons_found_is_done_though_the_ledger_did_not_say_that_it_has_written_it_down(
    history: str, skip: int, tmp_path: Path
) -> None:
    check(played(history, tmp_path, Death("ledger.put_records.lost", skip, times=2)))


def test_a_directory_that_a_dead_process_showed_is_not_taken_up_once_an_epoch_tells_of_it(tmp_path: Path) -> None:
    check(played("rows", tmp_path, Death("catalog.add_partitions.after", times=2)))


def test_directories_are_claimed_for_a_ledger_whose_id_was_recorded(tmp_path: Path) -> None:
    check(played("rows", tmp_path, Death("ledger.put_records.before", 4, times=2)))


def test_files_of_events_are_looked_for_that_are_in_the_journal_though_it_did_not_say_so(tmp_path: Path) -> None:
    play = played("files", tmp_path, Death("journal.append.lost", 8, times=2))
    assert not copies(play.world) - alive("files").copied
    check(play)
