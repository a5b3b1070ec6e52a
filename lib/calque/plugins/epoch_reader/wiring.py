"""The place of a target's ledger, and the ledger there.

Spark loads this module in each Python process of a query. So modules that read configurations, and all that a
configuration can name, are imported by the functions that need them (measured: 0.7 s of processor and 57 MB for each
process).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.files.options import delta_options
from calque.errors import Refused
from calque.model.secrets import Options, Secret

if TYPE_CHECKING:
    from calque.config import Config
    from calque.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """The place of a ledger: an absolute path or a URI, and delta-rs's options. It needs no configuration, and has
    references to secrets in place of secrets."""

    folder: str
    storage: Options

    def open(self) -> DeltaLedger:
        return DeltaLedger(self.folder, self.storage)


def ledger_at(place: str, storage: Mapping[str, str]) -> LedgerAddress:
    """Return the place of the ledger at a path or URI; `storage` has options as `[state] storage` does. Raises
    `Refused` for a text that is no place, and as `value_of` does. Nothing is opened yet."""
    from calque.config.places import folder

    try:
        place = folder(place, Path.cwd())
    except Refused as refused:
        raise Refused(f"Option ledger: {refused.what}", refused.why, refused.todo) from None
    return LedgerAddress(place, delta_options(place, {name_of(key): value_of(key, storage[key]) for key in storage}))


def name_of(key: str) -> str:
    return re.sub("_(env|file)$", "", key)


def value_of(key: str, text: str) -> str | Secret:
    """Return the value of a storage option; a `key` that ends with `_env` or `_file` gives a reference to a secret.
    Raises `Refused` for a secret that stands in the option itself."""
    from calque.config.secret_keys import SECRET, file_secret, variable_secret

    name = name_of(key)
    secret = variable_secret(text) if key.endswith("_env") else file_secret(text, Path.cwd()) if key != name else None
    if secret is None and (key != name or SECRET.search(name.replace("_", "."))):
        raise Refused(
            f"The value of the option storage.{key} is {'empty' if key != name else 'a secret'}",
            "Plans and logs show the options of a query, so secrets come from elsewhere",
            f"Set storage.{name}_env to the name of an environment variable, or storage.{name}_file to a file's path",
        )
    return text if secret is None else secret


def ledger_of(wiring: Wiring, target: str | None) -> LedgerAddress:
    """Return the place of the target's ledger. `target` may be None where the configuration has one target. Raises
    `Refused` for an unknown target, and for None where there are several or none."""
    wiring.config.require_source()
    found = wiring.target(one_target(wiring.config, target))
    return LedgerAddress(found.folder.table(found.places.ledger), found.folder.table_options)


def one_target(config: Config, target: str | None) -> str:
    """Return the name of the target: `target`, or, for None, the only one. Raises `Refused` where there is no such
    target."""
    if target is None and len(config.targets) != 1:
        raise Refused(
            "No target is named", f"There are {len(config.targets)}", f"Name one: {', '.join(config.targets)}"
        )
    return config.select([target] if target is not None else [])[0]
