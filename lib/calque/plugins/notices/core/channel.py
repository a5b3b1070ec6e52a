"""A channel of notices: it selects notices and makes the broker's messages of them."""

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
    """A channel by its configuration. `at` is `source` or the target's name. `server` is the address that HCatalog's
    messages give as the metastore's. `name_at_target` returns the name that a table of the source has at the channel's
    target."""

    name: str
    source: str
    at: str
    topics: TopicTemplate
    selection: Selection
    format: Format
    server: str
    name_at_target: Callable[[TableName], TableName]

    def messages(self, notices: Iterable[Notice], tables: Callable[[], Iterable[TableName]]) -> Iterator[Message]:
        """Yield the messages of the notices that the channel sends, in the order of the notices. `tables` returns all
        tables of the channel's place; it is called for a gap alone, which goes to the topic of each table that the
        channel takes."""
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
