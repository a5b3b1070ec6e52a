"""calque works without any of its plugins: each is a folder, a line of `app`, and doors of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph

from support.places import ROOT

PACKAGE = ROOT / "lib" / "calque"
PLUGINS = sorted(path.name for path in (PACKAGE / "plugins").iterdir() if (path / "__init__.py").exists())
WORKS = """
import sys
from pathlib import Path

from calque.app import APP
from calque.cli import main
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, Storage, Table
from support.worlds.worlds import INPUT, World

file = Path(sys.argv[1])
assert (main(["--help"]), main(["init", str(file)])) == (0, 0)
assert APP.wiring(APP.load(file)).targets
world = World(1)
world.open()
world.writer.source.create_database(Database("d1"))
storage = Storage((Column("x", "string"),), input_format=INPUT)
world.writer.source.create_table(Table("t", "d1", storage=storage, parameters={}, type="MANAGED_TABLE"))
world.settle()
found = verify(world.source_side, world.side, data="none")
assert (len(found.differences), found.compared.tables) == (0, 1), found
print(*(plugin.name for plugin in APP.plugins))
"""


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph("calque", cache_dir=None)


def with_dependents(graph: ImportGraph, name: str) -> set[str]:
    """The plugin, and those that import it."""
    package = f"calque.plugins.{name}"
    found = {name}
    for module in {package, *graph.find_descendants(package)}:
        for importer in graph.find_downstream_modules(module):
            if importer.startswith("calque.plugins."):
                found.add(importer.split(".")[2])
    return found


def without(graph: ImportGraph, names: set[str], copy: Path) -> None:
    """A copy of the library without these plugins: their folders, their lines of `app`, and the doors that open on
    them."""
    shutil.copytree(PACKAGE, copy / "calque", ignore=shutil.ignore_patterns("__pycache__"))
    for name in names:
        shutil.rmtree(copy / "calque" / "plugins" / name)
        package = f"calque.plugins.{name}"
        for module in {package, *graph.find_descendants(package)}:
            for door in graph.find_downstream_modules(module):
                if door.count(".") == 1 and door not in ("calque.app", "calque.cli", "calque.dbapi"):
                    (copy / f"{door.replace('.', '/')}.py").unlink(missing_ok=True)
    app = (copy / "calque" / "app.py").read_text()
    for name in names:
        for line in re.findall(rf"from calque\.plugins\.{name}\.plugin import PLUGIN as (\w+)\n", app):
            app = re.sub(rf"\b{line}, |, {line}\b(?=\))", "", re.sub(rf"from calque\.plugins\.{name}\..*\n", "", app))
    (copy / "calque" / "app.py").write_text(app)


@pytest.mark.parametrize("name", PLUGINS)
def test_calque_works_without_a_plugin(name: str, graph: ImportGraph, tmp_path: Path) -> None:
    gone = with_dependents(graph, name)
    without(graph, gone, tmp_path / "lib")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'lib'}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WORKS, str(tmp_path / "calque.toml")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not gone & set(done.stdout.splitlines()[-1].split())
