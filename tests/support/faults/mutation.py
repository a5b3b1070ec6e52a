"""Tests against altered sources: run as a program, it reads tests and mutants as JSON and says what killed each.

Every mutant has a process of its own, forked from one that has loaded everything that no mutant can change.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import fastavro
import orjson
import pyarrow.parquet
import pytest
import sqlglot
import xxhash
from hypothesis import HealthCheck, Phase, settings

from support.places import ROOT

CORE = ("kernel/unit/test_fold.py", "kernel/unit/test_seed_examples.py", "kernel/property/test_plans.py")
ENGINE = ("kernel/unit/test_apply.py",)
BOOTSTRAP = ("kernel/whole/test_bootstrap.py",)
READS = (
    "engine/replica/epochs.py",
    "engine/source/exact_read.py",
    "engine/window/groups.py",
    "engine/exact_reads/coordinator.py",
    "engine/replica/replica.py",
    "engine/apply/databases.py",
)
"""Modules that make tables exact beside the windows."""
LIFECYCLE = ("kernel/property/test_lifecycle.py", "kernel/whole/test_paused.py", "kernel/whole/test_staging.py")
RENAMES = ("kernel/unit/test_moves.py", "kernel/whole/test_renames.py")
PLAN = (*CORE, "kernel/whole/test_renames.py")
BY_HAND = ("kernel/whole/test_adopt.py", "kernel/whole/test_start.py")
KEPT = ("kernel/unit/test_kept_files.py", "kernel/whole/test_kept.py")
SWEEPS = ("kernel/property/test_sweep.py", "kernel/property/test_removals.py")
NEARER = {
    "engine/files/claims.py": SWEEPS,
    "engine/sweep/remove.py": SWEEPS,
    "core/states/kept_files.py": KEPT,
    "plugins/remotes/core/layers.py": ("plugins/remotes/unit/test_links.py",),
    "plugins/remotes/core/definitions.py": ("plugins/remotes/unit/test_link_definitions.py",),
    "plugins/remotes/core/permission.py": ("plugins/remotes/unit/test_link_definitions.py",),
    "core/policy/near_addresses.py": ("plugins/remotes/unit/test_link_definitions.py",),
    "core/formats/roots.py": ("kernel/unit/test_roots.py",),
    "core/formats/symlinks.py": ("kernel/unit/test_symlinks.py",),
    "engine/files/symlink_manifests.py": ("kernel/whole/test_symlinks.py",),
    "core/policy/pattern_set.py": ("kernel/unit/test_pattern_set.py",),
    "engine/files/kept_files.py": KEPT,
    "engine/window/kept_contents.py": KEPT,
    "core/plan/search.py": PLAN,
    "core/states/moves.py": RENAMES,
    "engine/window/play.py": RENAMES,
    "engine/capture/continuity.py": ("kernel/whole/test_gaps_found.py",),
    "engine/exact_reads/drop_limit.py": ("kernel/whole/test_gaps_mended.py",),
    "engine/exact_reads/bootstrap.py": ("kernel/whole/test_bootstrap.py", "kernel/whole/test_records.py"),
    "engine/exact_reads/gap_recovery.py": ("kernel/whole/test_gaps_mended.py",),
    "engine/exact_reads/bulk_compare.py": ("kernel/whole/test_gaps_mended.py",),
    "engine/exact_reads/bulk_compare_pool.py": ("kernel/whole/test_gaps_mended.py",),
    "core/records/lifecycle.py": LIFECYCLE,
    "engine/sides/table_states.py": LIFECYCLE,
    "core/images/policies.py": ("kernel/whole/test_policies.py",),
    "engine/policy/change.py": ("kernel/whole/test_policies.py",),
    "engine/policy/retained.py": ("kernel/whole/test_policies.py",),
    "engine/policy/renames.py": ("kernel/whole/test_policies.py",),
    "engine/replica/adopt.py": ("kernel/whole/test_adopt.py",),
    "engine/exact_reads/take_over.py": BY_HAND,
    "engine/files/content_proof.py": BY_HAND,
    "engine/exact_reads/start_at_event.py": ("kernel/whole/test_start.py",),
    "engine/replica/replay.py": ("kernel/whole/test_replay.py",),
}
"""Of modules that have tests of their own: gaps, policies, targets filled by hand."""
EXAMPLES = 200
"""Of each property test; always the same ones."""
LATE = ("core/states/exact_state.py", "core/plan/limits.py")
"""Modules of the core that no test of the core's own reaches."""
LOADED = (fastavro, orjson, pyarrow.parquet, sqlglot, xxhash)
"""What the tests import anyway: no mutant needs to load it anew."""


class Mutant(NamedTuple):
    """A bug: in `module`, a path below the package, `old` is replaced by `new`."""

    module: str
    name: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        return ROOT / "lib/calque" / self.module

    def imported_as(self) -> str:
        return "calque." + self.module.removesuffix(".py").replace("/", ".")

    def source(self) -> str:
        return self.path.read_text(encoding="utf-8").replace(self.old, self.new)


class Alteration(MetaPathFinder):
    """Imports one module with a mutant's source, and all others as they are."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.mutant.imported_as():
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        spec.loader = AlteredLoader(fullname, self.mutant)
        return spec


class AlteredLoader(SourceFileLoader):
    def __init__(self, fullname: str, mutant: Mutant) -> None:
        super().__init__(fullname, str(mutant.path))
        self.mutant = mutant

    def get_code(self, _fullname: str) -> CodeType:
        return compile(self.mutant.source(), self.path, "exec", dont_inherit=True)


class Verdict:
    """The first test that failed. Examples are the same every time, and the first that fails ends its test."""

    def __init__(self) -> None:
        self.killer = ""

    def pytest_configure(self) -> None:
        phases, checks = (Phase.explicit, Phase.generate), list(HealthCheck)
        settings.register_profile(
            "mutation",
            settings(
                derandomize=True,
                database=None,
                deadline=None,
                max_examples=EXAMPLES,
                phases=phases,
                suppress_health_check=checks,
            ),
        )
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid


def killers_in(module: str) -> tuple[str, ...]:
    """The tests that must fail of a mutant of the module."""
    if module in NEARER:
        return NEARER[module]
    if module in READS:
        return BOOTSTRAP
    if module in LATE:
        return (*ENGINE, "kernel/whole/test_gaps_mended.py")
    return ENGINE if module.startswith("engine/") else CORE


def killer_of(killers: Sequence[str], mutant: Mutant | None) -> str:
    """The first of the tests that fails with the mutant, or with the source as it is; empty when all pass."""
    if mutant is not None:
        sys.meta_path.insert(0, Alteration(mutant))
        import_module(mutant.imported_as())
    verdict = Verdict()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        code = pytest.main(
            ["-qx", "--assert=plain", "-p", "no:cacheprovider", *(str(ROOT / "tests" / killer) for killer in killers)],
            [verdict],
        )
    expected = pytest.ExitCode.TESTS_FAILED if verdict.killer else pytest.ExitCode.OK
    if code != expected:
        raise AssertionError(f"{mutant}: the tests could not be run, {code!r}")
    return verdict.killer


def main() -> None:
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "lib")]
    killers, rows = json.load(sys.stdin)
    mutants = [Mutant(*row) if row else None for row in rows]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        print(json.dumps(pool.map(partial(killer_of, killers), mutants, chunksize=1)))


if __name__ == "__main__":
    main()
