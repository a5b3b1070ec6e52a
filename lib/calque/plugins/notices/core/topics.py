"""The topic that a table's notices go to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.notices.core.notice import HistoryGap, Notice

FIELDS = ("source", "database", "table")
FIELD = re.compile(r"\{([^{}]*)\}")
ODD = re.compile(r"[^A-Za-z0-9._-]")
LONGEST = 249
"""The most characters that Kafka takes in the name of a topic."""


class TopicTemplate:
    """The `topic` of a channel's section: a template such as `{source}.{database}.{table}`, or the name of one topic
    for all tables. A character of a name that topics can't have becomes `_u` and four hexadecimal digits. The
    constructor raises `Refused` for a text that is no template."""

    def __init__(self, template: str, source: str) -> None:
        for field in FIELD.findall(template):
            if field not in FIELDS:
                raise Refused(f"{{{field}}} is no part of a topic", f"These are: {', '.join(FIELDS)}")
        plain = FIELD.sub("", template)
        if not template or ODD.search(plain):
            example = 'Write e.g. "{source}.{database}.{table}", or the name of one topic'
            raise Refused(f'"{template}" is no topic', 'Letters, digits, ".", "_" and "-" make one', example)
        if "{table}" in template and "{database}" not in template:
            raise Refused(
                f'"{template}" names no database', "Tables of one name would share a topic", "Add {database} to it"
            )
        self.template, self.source = template, source
        self._by_table: dict[TableName, str] = {}

    def is_one(self) -> bool:
        """Tell whether all notices of the channel go to one topic."""
        return "{database}" not in self.template

    def topic(self, table: TableName) -> str:
        topic = self._by_table.get(table)
        if topic is None:
            values = {"source": self.source, "database": table.database, "table": table.table}
            topic = FIELD.sub(lambda match: written(values[match[1]]), self.template)[:LONGEST]
            self._by_table[table] = topic
        return topic

    def topics(self, tables: Iterable[TableName]) -> list[str]:
        """Return the topics of the tables, each once and sorted. A template for one topic gives that topic, also
        without tables."""
        return [self.topic(TableName("", ""))] if self.is_one() else sorted({*map(self.topic, tables)})

    def of(self, notice: Notice, tables: Iterable[TableName]) -> list[str]:
        """Return the topics that the notice goes to: that of its table, or, for a gap, those of all `tables`."""
        if isinstance(notice, HistoryGap):
            return self.topics(tables)
        return [self.topic(notice.occasion.table)]


def written(name: str) -> str:
    return ODD.sub(lambda match: f"_u{ord(match[0]):04x}", name)
