"""Which notices a channel sends."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.core.policy.patterns import Pattern, matches, parse_pattern
from calque.model.names import OURS, TableName
from calque.plugins.notices.core.notice import HistoryGap, Notice, TableAltered, type_text

FOUND = "found"
"""Among the types of a channel: tables that a first read finds are told of, too."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Names are the source's. Gaps are told by every channel."""

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
        """A table that a rename takes out of the selection is told of once more, under its new name."""
        if isinstance(notice, HistoryGap):
            return True
        if type_text(notice) not in self.types:
            return False
        if isinstance(notice, TableAltered) and notice.was is not None and self.takes_table(notice.was):
            return True
        return self.takes_table(notice.occasion.table)
