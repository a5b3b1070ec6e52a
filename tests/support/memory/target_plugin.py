"""A plugin whose targets are catalogs in the memory of this process, in place of Hive metastores.

    python -m support.memory.target_plugin CONFIG

replicates to them as far as the source has come; once more after a line on standard input, and compares them then.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from calque.app import APP
from calque.commands import verify
from calque.commands.options import CommandSettings
from calque.config import Config
from calque.config.plugs import CallTerms
from calque.extension import App, Plugin
from calque.model.hive import Table
from calque.ports import CatalogReader
from calque.ports.services import Listeners
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore

READS = frozenset(name for name in dir(CatalogReader) if not name.startswith("_"))
STORES: dict[str, MemoryMetastore] = {}
"""By target."""


class MemoryServer:
    """`MetastoreInfo`."""

    def ping(self) -> None:
        return

    def version(self) -> str:
        return "4.2.0"

    def listeners(self) -> Listeners:
        return Listeners(False, True, False, ())

    def setting(self, name: str) -> str:  # noqa: ARG002
        return ""

    def has_compare_and_swap(self, scratch: Table) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """`config.plugs.TargetCatalog`."""

    name: str

    def opened(self, terms: CallTerms) -> MemoryCatalog:
        store = STORES.setdefault(self.name, MemoryMetastore(HIVE_4, identity=self.name))
        return MemoryCatalog(store, before=lambda call: terms.permit() if call not in READS else None)

    def server(self, terms: CallTerms) -> MemoryServer:  # noqa: ARG002
        return MemoryServer()


def in_memory(config: Config) -> Config:
    """Every target of the file."""
    targets = {name: replace(target, catalog=MemoryTarget(name)) for name, target in config.targets.items()}
    return replace(config, targets=targets)


PLUGIN = Plugin(name="memory_targets", amendments=lambda: (in_memory,))


def main(path: str) -> int:
    app = App((*APP.plugins, PLUGIN))
    code = app.run_file(path, (), "head", capture=True)
    print("filled", flush=True)
    sys.stdin.readline()
    code = code or app.run_file(path, (), "head", capture=True)
    config = app.load(path)
    return code or verify.run(CommandSettings(app=app), config, tuple(config.targets), (), "checksum")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
