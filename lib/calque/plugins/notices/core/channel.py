"""A channel: what it sends, and how its messages look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from calque.model.names import TableName
from calque.plugins.notices.core import calque_json, hcatalog_json
from calque.plugins.notices.core.notice import HistoryGap, Notice
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.core.topics import TopicTemplate
from calque.plugins.notices.model import Message

Format = Literal["calque", "hcatalog"]


@dataclass(frozen=True, slots=True)
class Channel:
    """`at` is `source`, or the target's name; `server` is the address that HCatalog's messages give as the
    metastore's. `name_at_target` is a table's name there."""

    name: str
    source: str
    at: str
    topics: TopicTemplate
    selection: Selection
    format: Format
    server: str
    name_at_target: Callable[[TableName], TableName]

    def messages(self, notices: Iterable[Notice], tables: Callable[[], Iterable[TableName]]) -> Iterator[Message]:
        """Those of the notices that the channel sends, in order. `tables` are all that there are: a gap is told to the
        topic of each."""
        takes, topic_of, is_plain = self.selection.takes, self.topics.topic, self.format == "calque"
        for notice in notices:
            if not takes(notice):
                continue
            if is_plain and not isinstance(notice, HistoryGap):
                occasion = notice.occasion
                yield Message(topic_of(occasion.table), occasion.key, self.text(notice))
                continue
            topics = self.topics.of(notice, filter(self.selection.takes_table, tables()) if is_gap(notice) else ())
            for body, headers in self.bodies(notice):
                for topic in topics:
                    yield Message(topic, notice.occasion.key, body, headers)

    def text(self, notice: Notice) -> bytes:
        return calque_json.text_of(notice, self.source, self.at, self.name_at_target)

    def bodies(self, notice: Notice) -> Iterator[tuple[bytes, dict[str, str]]]:
        headers: dict[str, str] = {}
        if self.format == "hcatalog":
            headers = hcatalog_json.headers_of(notice)
            texts = hcatalog_json.texts_of(notice, self.server)
            if texts is not None:
                yield from ((text, headers) for text in texts)
                return
        yield self.text(notice), headers


def is_gap(notice: Notice) -> bool:
    return not notice.occasion.table.database
