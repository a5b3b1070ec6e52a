"""What a configuration may ask for and this version does not do."""

from __future__ import annotations

from calque.config import Config
from calque.errors import Refused


def unsupported(config: Config) -> list[Refused]:
    """One refusal for each such setting; `calque run` raises the first, `calque check` shows all."""
    found = []
    for name, target in config.targets.items():
        if target.consistency == "database" and target.drops == "keep":
            found.append(
                Refused(
                    f'targets.{name}: consistency = "database" and drops = "keep" exclude each other',
                    "a table that is kept is in no state of the source's database",
                    'Write drops = "follow", or consistency = "table"',
                )
            )
    return found
