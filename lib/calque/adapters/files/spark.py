"""The port `Storage` with long copies and listings spread over Spark: `SparkStorage`.

A bin, which is a share of the work, is one Spark job of one task, so that each bin reports as it finishes and the fair
scheduler lets others in between.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from threading import Event
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from calque.adapters.files.copy import by_target
from calque.adapters.files.many import Pace
from calque.adapters.files.processes import CopyRow, Failure, Outcome, outcome_of, row_of
from calque.adapters.files.shares import BandwidthShares
from calque.adapters.files.storage import FileStorage, is_local
from calque.errors import CalqueError, Unavailable
from calque.model.files import File, Listing, RowLayout
from calque.model.permissions import Permissions
from calque.ports import CombinedRows, CombineTask, CopiedFile, CopyTask, StorageEntry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_WEIGHT = 256 << 10
"""The cost of a file beside its bytes, in bytes."""
BIN_WEIGHT = 1 << 30
"""The weight that a bin of a long copy holds: a few seconds' work, after which its files are reported. Each core has as
many bins as the others, one of copies that hold less than two such for each, because a job takes as long as copying a
thousand small files."""
MOST_JOBS = 256
JOB_SECONDS = 0.3
"""The time that jobs of Spark take beside their work."""
TRAVEL_SECONDS = 12e-6
"""The time that a directory in a listing, or a file, takes from an executor to here."""
LOOK_SECONDS = 0.5
"""Seconds between two looks whether the copies that run as tasks of Spark (bins of files) are still wanted."""
ALONE = Pace(threads=1, files=32)
"""The pace of local files in an executor, where other tasks keep the other cores busy."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SparkThresholds:
    """The limits below which work stays on the driver, and how larger work goes to Spark. Copies of up to `few_files`
    with up to `few_bytes` in all, listings of up to `few_locations` and checksums of up to `few_checksums` files stay
    on the driver."""

    pool: str = "calque"
    """The pool of Spark's fair scheduler in which the jobs run."""
    bins_per_core: int = 3
    few_files: int = 64
    few_bytes: int = 16 << 20
    few_locations: int = 1000
    few_checksums: int = 64
    leaves: int = 0
    """The number of cores that are left to others, where there are more: their bins need not wait for slow ones."""


class SparkStorage:
    """A `FileStorage` here and on the executors, which need calque installed and sight of the same locations. `session`
    is called when the first long work comes, so that no JVM is started without any. Soon after `ended` returns True all
    bins are given up, also in the middle of their work, with `Unavailable`."""

    def __init__(
        self,
        files: FileStorage,
        session: Callable[[], SparkSession],
        thresholds: SparkThresholds | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._files, self._session, self._ended = files, session, ended
        self._thresholds = thresholds or SparkThresholds()
        self._shares = BandwidthShares(files.terms.bandwidth, files.bucket)

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """Return the listings. Without a cluster, local directories are listed here as long as Spark would take longer
        for the rest: what the kernel has in its cache is listed faster than a listing travels."""
        few, unique = self._thresholds.few_locations, list(dict.fromkeys(locations))
        if len(unique) <= few:
            return self._files.list(locations)
        is_near = few > 0 and is_local(unique) and str(self._session().sparkContext.master).startswith("local")
        listings = self._listed_here(unique) if is_near else {}
        if remaining := unique[len(listings) :]:
            listings |= self._run("list", self._bins(remaining, _same_weight), _list_bin, _silent)
        return {location: listings[location] for location in locations}

    def _listed_here(self, locations: Sequence[str]) -> dict[str, Listing]:
        """Return the listings of the first locations, up to the one from which on Spark is faster. The fastest part so
        far counts, because others may have waited for a processor."""
        few, listings, fastest = self._thresholds.few_locations, dict[str, Listing](), inf
        step = -(-few // 4)
        for start in range(0, len(locations), step):
            travel = TRAVEL_SECONDS * (1 + sum(len(each.files) for each in islice(listings.values(), few)) / few)
            gain = (fastest - travel) * (len(locations) - start) - JOB_SECONDS
            if start >= few and gain > 0 and gain > fastest * (len(locations) - start) / self._slots():
                break
            began = time.monotonic()
            listed = self._files.list(locations[start : start + step])
            fastest = min(fastest, (time.monotonic() - began) / len(listed))
            listings |= listed
        return listings

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        return self._files.files(paths)

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        """Copy the files, few of them here and many on executors. `progress` is called for each file in turn, for a
        bin's files together when the bin is done."""
        task_of = by_target(tasks)
        if len(tasks) <= self._thresholds.few_files and sum(task.size for task in tasks) <= self._thresholds.few_bytes:
            return self._files.copy(tasks, progress)
        self._files.announce(tasks)
        copies: dict[str, CopiedFile] = {}

        def finished(row: CopyRow, outcome: Outcome) -> None:
            copied = copies[row[1]] = CopiedFile(task_of[row[1]], *outcome)
            if progress:
                progress(copied)

        rows, slots = [row_of(task) for task in task_of.values()], self._slots()
        rounds = max(1, sum(map(_copy_weight, rows)) // (slots * BIN_WEIGHT))
        bins = packed(rows, _copy_weight, slots * rounds)
        # Each bin that runs gets an equal part of the files that may be copied at a time.
        parallel = max(1, self._files.terms.parallel // slots)
        self._run("copy", bins, _copy_bin, finished, parallel)
        return [copies[task.target] for task in tasks]

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        files, size = sum(len(task.sources) for task in tasks), sum(task.size for task in tasks)
        if len(tasks) < 2 or (files <= self._thresholds.few_files and size <= self._thresholds.few_bytes):
            return self._files.combine(tasks, progress)

        def finished(_task: CombineTask, combined: CombinedRows) -> None:
            if progress:
                progress(combined)

        fewest_bins = sum(map(_combine_weight, tasks)) // BIN_WEIGHT
        bins = self._bins(list(tasks), _combine_weight, fewest_bins)
        parallel = max(1, self._files.terms.parallel // self._slots())
        results = self._run("combine", bins, _combine_bin, finished, parallel)
        return [results[task] for task in tasks]

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        if sum(len(paths) for _, paths in groups) <= self._thresholds.few_checksums:
            return self._files.row_digests(groups)
        unique = list(dict.fromkeys(groups))
        digests = self._run("digest", self._bins(unique, _group_weight), _digest_bin, _silent)
        return [digests[group] for group in groups]

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        self._files.publish(renames)

    def make_directories(self, locations: Sequence[str]) -> None:
        self._files.make_directories(locations)

    def exists(self, location: str) -> bool:
        return self._files.exists(location)

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        if len(paths) <= self._thresholds.few_checksums:
            return self._files.checksums(paths)
        checksums = self._run("checksum", self._bins(list(dict.fromkeys(paths)), _same_weight), _checksum_bin, _silent)
        return {path: checksum for path, checksum in checksums.items() if checksum}

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        return self._files.digests(paths)

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        return self._files.tails(paths, size)

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        return self._files.system_checksums(paths)

    def date(self, times: Mapping[str, int]) -> None:
        self._files.date(times)

    def read(self, path: str) -> bytes | None:
        return self._files.read(path)

    def write(self, path: str, content: bytes) -> None:
        self._files.write(path, content)

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        return self._files.create(contents)

    def set_aside(self, location: str, aside: str) -> str:
        return self._files.set_aside(location, aside)

    def remove(self, locations: Sequence[str]) -> None:
        self._files.remove(locations)

    def children(self, location: str) -> Sequence[str]:
        return self._files.children(location)

    def entries(self, location: str) -> Sequence[StorageEntry]:
        return self._files.entries(location)

    def _slots(self) -> int:
        """Return how many bins run at once."""
        return max(1, int(self._session().sparkContext.defaultParallelism) - self._thresholds.leaves)

    def _bins(
        self, items: Sequence[Item], weight: Callable[[Item], int], fewest_bins: int = 0
    ) -> Sequence[tuple[Item, ...]]:
        return packed(items, weight, max(self._slots() * self._thresholds.bins_per_core, fewest_bins))

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        return self._files.modified(directories)

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        return self._files.permissions(locations)

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        return self._files.set_permissions(permissions)

    def _run(
        self,
        verb: str,
        bins: Sequence[tuple[Item, ...]],
        work: Callable[[FileStorage, Sequence[Item]], Sequence[Result]],
        finished: Callable[[Item, Result], None],
        parallel: int = 0,
    ) -> Mapping[Item, Result]:
        """Run `work` on each bin, in executors, and return its results by item. `finished` is called for each result as
        bins end. A bin copies `parallel` files at a time where the number of parallel copies is limited. Raises the
        first error of a bin, and `Unavailable` where `ended`."""
        context, slots = self._session().sparkContext, self._slots()
        group, given_up = f"calque-{verb}-{uuid4().hex}", Event()
        limited = bool(self._files.slots and parallel)

        def ended() -> bool:
            return given_up.is_set() or self._ended()

        def one(number: int) -> Sequence[Result] | Failure:
            context.setLocalProperty("spark.scheduler.pool", self._thresholds.pool)
            context.setJobGroup(group, f"calque: {verb} bin {number + 1} of {len(bins)}, {len(bins[number])} items")
            with self._copy_slots(parallel, ended) as free, self._shares.one(len(bins), slots) as rate:
                if not free:
                    raise _ends(verb)
                terms = replace(self._files.terms, bandwidth=rate, parallel=parallel if limited else 0)
                files = FileStorage(self._files.systems, ALONE, terms)
                bin_results = context.parallelize([bins[number]], 1).map(lambda part: _attempted(work, files, part))
                return bin_results.collect()[0]

        results: dict[Item, Result] = {}
        # A second job for each slot waits in Spark's queue and keeps its cores busy, but would hold a share of the
        # bandwidth and copy slots while it waits.
        jobs_per_slot = 1 if self._files.terms.bandwidth or self._thresholds.leaves or limited else 2
        with ThreadPoolExecutor(
            min(len(bins), jobs_per_slot * slots, MOST_JOBS), thread_name_prefix=f"spark-{verb}"
        ) as pool:
            futures = {pool.submit(one, number): number for number in range(len(bins))}
            try:
                remaining = set(futures)
                while remaining:
                    done, remaining = wait(remaining, LOOK_SECONDS, FIRST_COMPLETED)
                    for future in done:
                        for item, result in zip(bins[futures[future]], _finished(verb, future), strict=True):
                            results[item] = result
                            finished(item, result)
                    if remaining and self._ended():
                        raise _ends(verb)
            except BaseException:
                given_up.set()
                pool.shutdown(wait=False, cancel_futures=True)
                context.cancelJobGroup(group)
                # A thread that was about to begin its job may have done so since. Futures that were cancelled before a
                # thread had them are left out, because `wait` never counts them as done.
                begun = [future for future in futures if not future.cancelled()]
                while wait(begun, LOOK_SECONDS).not_done:
                    context.cancelJobGroup(group)
                raise
        return results

    def _copy_slots(self, count: int, ended: Callable[[], bool]) -> AbstractContextManager[bool]:
        if self._files.slots is None or not count:
            return nullcontext(True)
        return self._files.slots.taken(count, ended)


def _ends(verb: str) -> Unavailable:
    return Unavailable(f"Spark could not {verb} all files", "calque ends", "It goes on when it runs again")


def packed(items: Sequence[Item], weight: Callable[[Item], int], bins: int) -> Sequence[tuple[Item, ...]]:
    """Divide the items into at most `bins` bins of about equal weight, none of them empty: the heaviest item goes
    first, into the lightest bin."""
    weighed = sorted(((weight(item), number) for number, item in enumerate(items)), reverse=True)
    lightest: list[tuple[int, int]] = [(0, number) for number in range(min(bins, len(items)))]
    content: list[list[int]] = [[] for _ in lightest]
    for heavy, item in weighed:
        load, number = lightest[0]
        content[number].append(item)
        heapq.heapreplace(lightest, (load + heavy, number))
    return [tuple(items[number] for number in sorted(numbers)) for numbers in content]


def _silent(_item: object, _result: object) -> None:
    return


def _copy_weight(row: CopyRow) -> int:
    return row[2] + FILE_WEIGHT


def _same_weight(_: str) -> int:
    return 1


def _copy_bin(files: FileStorage, rows: Sequence[CopyRow]) -> Sequence[Outcome]:
    copies = files.copy_announced([CopyTask(*row) for row in rows])
    return [outcome_of(each) for each in copies]


def _combine_weight(task: CombineTask) -> int:
    return task.size + FILE_WEIGHT * len(task.sources)


def _group_weight(group: tuple[RowLayout, tuple[str, ...]]) -> int:
    return len(group[1])


def _combine_bin(files: FileStorage, tasks: Sequence[CombineTask]) -> Sequence[CombinedRows]:
    return files.combine(tasks)


def _digest_bin(files: FileStorage, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
    return files.row_digests(groups)


def _list_bin(files: FileStorage, locations: Sequence[str]) -> Sequence[Listing]:
    return tuple(files.list(locations).values())


def _checksum_bin(files: FileStorage, paths: Sequence[str]) -> Sequence[str]:
    checksums = files.checksums(paths)
    return [checksums.get(path, "") for path in paths]


def _attempted(
    work: Callable[[FileStorage, Sequence[Item]], Sequence[Result]], files: FileStorage, part: Sequence[Item]
) -> Sequence[Result] | Failure:
    try:
        return work(files, part)
    except CalqueError as error:
        return Failure.of(error)


def _finished(verb: str, future: Future[Sequence[Result] | Failure]) -> Sequence[Result]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        result = future.result()
    except (Py4JError, PySparkException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Unavailable(
            f"Spark could not {verb} files", " ".join(lines[:2])[:500], "Look at Spark's log; it is tried again"
        ) from error
    if isinstance(result, Failure):
        raise result.error()
    return result
