"""Which tests `make test` runs: the kernel's, a smoke of each plugin, and in full what a change touches.

    PYTHONPATH=tests python -m support.runs.selection arguments quick|property|servers [all|NAME]
    PYTHONPATH=tests python -m support.runs.selection left-out [all|NAME]

print pytest's arguments, and a line for what they leave out. A plugin is chosen where its folder or its tests changed
since the default branch was left, or a seam of it: a module of the kernel or of another plugin that it imports and that
at most one more plugin imports, or a port that it imports. Parts of the kernel whose tests are long are chosen alike.
Everything is chosen where what all tests stand on changed, or where git can't tell.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from support.places import ROOT
from support.runs.changes import changed_files

UNDER_ALL = (
    "pyproject.toml",
    "constraints.txt",
    "Makefile",
    ".ci/",
    "tests/support/",
    "tests/conftest.py",
    "lib/calque/extension.py",
    "lib/calque/app.py",
)
"""Beginnings of paths whose change chooses everything."""
QUICK, SERVERS = ("unit", "whole", "property"), ("contract", "integration")
KINDS: Mapping[str, tuple[str, ...]] = {"quick": QUICK, "property": ("property",), "servers": SERVERS}
PARTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "demo": (
        ("integration/test_demo.py", "integration/test_demo_writer.py", "integration/test_sandbox.py"),
        ("lib/calque/demo/", "lib/calque/sandbox/"),
    ),
    "spark_cluster": (
        ("integration/test_spark_cluster.py",),
        ("jobs/", "lib/calque/adapters/spark/", "lib/calque/streams/job.py", "lib/calque/streams/spark_session.py"),
    ),
    "kerberos": (
        ("integration/test_kerberos.py",),
        ("lib/calque/adapters/metastore/kerberos.py", "lib/calque/adapters/metastore/logins.py"),
    ),
    "small_files": (
        ("integration/test_small_files.py",),
        ("lib/calque/core/small_files/", "lib/calque/adapters/files/combine"),
    ),
    "lake_tables": (
        ("integration/test_delta_tables.py", "integration/test_iceberg.py"),
        (
            "lib/calque/core/formats/deltalog.py",
            "lib/calque/core/formats/iceberg.py",
            "lib/calque/core/formats/manifests.py",
            "lib/calque/engine/files/",
        ),
    ),
}
"""Parts of the kernel: their tests below `tests/kernel`, and the beginnings of paths that choose them beside these."""


def owner(test: str) -> str:
    """Whose the test file is, by its path below the checkout: a plugin, a part, or `kernel`."""
    _, room, name, *_ = test.split("/")
    if room == "plugins":
        return name
    parts = (part for part, (tests, _) in PARTS.items() if test.removeprefix("tests/kernel/") in tests)
    return next(parts, "kernel")


def plugins(root: Path) -> list[str]:
    """The names of the plugins, in their order."""
    return sorted(file.parent.name for file in (root / "lib/calque/plugins").glob("*/__init__.py"))


def imported(root: Path, plugin: str) -> set[str]:
    """The paths below `root` of modules outside of the plugin that it imports."""
    folder = root / "lib/calque/plugins" / plugin
    names = {name for file in folder.rglob("*.py") for name in names_in(ast.parse(file.read_text(encoding="utf-8")))}
    own = f"lib/calque/plugins/{plugin}/"
    return {path for name in names if (path := path_of(root, name)) is not None and not path.startswith(own)}


def names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def path_of(root: Path, module: str) -> str | None:
    """The module's file below `root`; None for what is no module of calque."""
    if module.partition(".")[0] != "calque":
        return None
    path = f"lib/{module.replace('.', '/')}"
    return next((file for file in (f"{path}.py", f"{path}/__init__.py") if (root / file).is_file()), None)


def seams(root: Path, names: Sequence[str]) -> Mapping[str, set[str]]:
    """By plugin, the paths of modules whose change chooses it."""
    used = {name: imported(root, name) for name in names}
    users = defaultdict[str, int](int)
    for paths in used.values():
        for path in paths:
            users[path] += 1
    return {
        name: {path for path in paths if path.startswith("lib/calque/ports/") or users[path] <= 2}
        for name, paths in used.items()
    }


def chosen(root: Path, changed: Collection[str] | None) -> set[str]:
    """The names of plugins and parts that a change of these paths chooses."""
    names = plugins(root)
    if changed is None or any(path.startswith(UNDER_ALL) for path in changed):
        return {*names, *PARTS}
    of_plugins = seams(root, names)
    found = {
        name
        for name in names
        if not of_plugins[name].isdisjoint(changed)
        or any(path.startswith((f"lib/calque/plugins/{name}/", f"tests/plugins/{name}/")) for path in changed)
    }
    for part, (tests, beginnings) in PARTS.items():
        own = (*(f"tests/kernel/{test}" for test in tests), *beginnings)
        if any(path.startswith(own) for path in changed):
            found.add(part)
    return found


def choice(root: Path, asked: str) -> set[str]:
    """What is chosen where `all`, a name, or nothing is asked for."""
    known = {*plugins(root), *PARTS}
    if asked == "all":
        return known
    if asked and asked not in known:
        raise SystemExit(f"There is no plugin {asked}; there are {', '.join(sorted(known))}")
    return {asked} if asked else chosen(root, changed_files(root))


def arguments(root: Path, kinds: tuple[str, ...], names: Collection[str]) -> list[str]:
    """pytest's arguments for tests of these kinds, of the kernel and of the plugins and parts of these names."""
    folders = [f"tests/kernel/{kind}" for kind in kinds]
    folders += [f"tests/plugins/{name}/{kind}" for name in plugins(root) if name in names for kind in kinds]
    smokes = [f"tests/plugins/{name}/test_smoke.py" for name in plugins(root)] if kinds == SERVERS else []
    left = [test for part, (tests, _) in PARTS.items() if part not in names for test in tests]
    ignored = [f"--ignore=tests/kernel/{test}" for test in left if test.startswith(kinds)]
    return [*(path for path in (*folders, *smokes) if (root / path).exists()), *ignored]


def left_out(root: Path, names: Collection[str]) -> str:
    """A line that says what was left out, and why; empty where nothing was."""
    left = sorted({*plugins(root), *PARTS} - set(names))
    if not left:
        return ""
    return f"Left out, as nothing of theirs changed: {', '.join(left)}. `make test ALL=1` runs everything."


def main(words: Iterable[str]) -> None:
    match [*words]:
        case ["arguments", ("quick" | "property" | "servers") as kinds, *asked]:
            print(*arguments(ROOT, KINDS[kinds], choice(ROOT, "".join(asked))))
        case ["left-out", *asked]:
            print(left_out(ROOT, choice(ROOT, "".join(asked))), end="\n")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
