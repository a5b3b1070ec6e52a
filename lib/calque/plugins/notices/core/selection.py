"""The selection of a channel: which notices it sends."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.core.policy.patterns import Pattern, matches, parse_pattern
from calque.model.names import OURS, TableName
from calque.plugins.notices.core.notice import HistoryGap, Notice, TableAltered, type_text

FOUND = "found"
"""The word among a channel's types that asks for notices of tables that a first read finds."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The notice types and table patterns of a channel. Patterns match names at the source. A gap is taken by every
    selection, and calque's own tables by none."""

    types: frozenset[str]
    include: tuple[Pattern, ...]
    exclude: tuple[Pattern, ...]
    _known: dict[TableName, bool] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, types: tuple[str, ...], include: tuple[str, ...], exclude: tuple[str, ...]) -> Selection:
        return cls(frozenset(types), tuple(map(parse_pattern, include)), tuple(map(parse_pattern, exclude)))

    @property
    def finds(self) -> bool:
        return FOUND in self.types

    def takes_table(self, name: TableName) -> bool:
        is_taken = self._known.get(name)
        if is_taken is None:
            ours = name.database.startswith(OURS) or name.table.startswith(OURS)
            included = any(matches(pattern, name) for pattern in self.include)
            is_taken = included and not ours and not any(matches(pattern, name) for pattern in self.exclude)
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[name] = is_taken
        return is_taken

    def takes(self, notice: Notice) -> bool:
        """Tell whether the channel sends the notice. A rename that takes a table out of the selection is still sent,
        under the new name, so that subscribers learn of it."""
        if isinstance(notice, HistoryGap):
            return True
        if type_text(notice) not in self.types:
            return False
        if isinstance(notice, TableAltered) and notice.was is not None and self.takes_table(notice.was):
            return True
        return self.takes_table(notice.occasion.table)
