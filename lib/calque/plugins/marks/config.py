"""The section `[done]` of the configuration: how marks of complete sets are kept."""

from __future__ import annotations

from collections.abc import Callable

from calque.config.checks import PositiveDuration, Retentions
from calque.config.keys import Section
from calque.config.sections import KeyPath, SectionKind, itself
from calque.core.policy.patterns import matches, parse_pattern
from calque.model.names import TableName


class Done(Section):
    """The section `[done]`: for how many seconds marks of complete sets are kept, and whether metastores are told of
    them."""

    retention: PositiveDuration = 30 * 86400.0
    retentions: Retentions = {}  # noqa: RUF012 - pydantic copies it
    metastore: bool = False

    def lifetimes(self) -> Callable[[TableName], float]:
        """Return a function that gives the seconds for which marks of a table are kept, if the table itself does not
        say it. Of the patterns that match, the longest decides."""
        rules = [
            (parse_pattern(text), self.retentions[text]) for text in sorted(self.retentions, key=len, reverse=True)
        ]

        def lifetime(name: TableName) -> float:
            return next((seconds for pattern, seconds in rules if matches(pattern, name)), self.retention)

        return lifetime


def model_at(_path: KeyPath) -> type[Done]:
    return Done


TEMPLATE = """\
[done]                                      # sets of partitions that are marked done: `calque done mark`
#retention = "30d"                          # marks are kept that long; a table's parameter calque.done.retention wins
#retentions = {}                            # by table, the longest pattern wins: { "logs.*" = "7d" }
#metastore = false                          # whether metastores are told, too (LOAD_DONE), the source's among them
"""
DONE = SectionKind(
    name="done",
    annotation=Done,
    default=Done,
    models={"done": Done},
    model_at=model_at,
    models_in=itself,
    template=TEMPLATE,
    stands_first=True,
)
