"""The past of a topic: records before its end, found by event ids without reading the topic from its start.

Nothing here is safe from several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from calque.model.names import EventId
from calque.plugins.kafka.adapters.client.partition import Fetcher
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.headers import CountedUpTo, Record
from calque.plugins.kafka.adapters.journal.known_positions import NEAR, TopicFacts
from calque.plugins.kafka.adapters.journal.valid_records import Count, CountedValue, Rule

TRIES = 64
"""The most places that are tried before the rest is read through."""


class PastReader:
    """A reader of a topic's older records, with a connection of its own. All its methods raise `RecordsLost`,
    `Unavailable`, `Broken`."""

    def __init__(self, topic: Topic, name: str, rule: Rule, truths: TopicFacts) -> None:
        self._fetcher, self._rule, self._truths = Fetcher(topic, name), rule, truths

    def first(self, low: int, end: CountedUpTo) -> tuple[CountedUpTo, CountedValue] | None:
        """Return the first value that counts and is still there, and a place before it from which a reader may begin.
        None where there is no such value."""
        start = max(low, end.begin)
        for record in self._records(start, end.offset):
            truth = record.truth()
            if truth.begin == end.begin and truth.offset >= start:
                for counted in self.walk(truth, end.offset):
                    return truth, counted
        return None

    def walk(self, start: CountedUpTo, upto: int) -> Iterator[CountedValue]:
        """Yield the values that count from `start` to before offset `upto`, in order."""
        count = Count(start, self._rule)
        for record in self._records(start.offset, upto):
            value = count.take(record)
            if record.offset % NEAR == 0:
                self._truths.add(count.clean)
            if value is not None:
                yield value

    def before(self, mark: EventId, lowest: CountedUpTo, end: CountedUpTo) -> CountedUpTo:
        """Return a place from which a reader may begin, near the first value whose mark is at least `mark` and not
        behind it. `lowest` is such a place already, but may be far away."""
        below, above = self._truths.around(mark, lowest, end)
        guess = below.offset + mark - 1 - (below.mark or 0)
        for _ in range(TRIES):
            if above.offset - below.offset <= NEAR or below.mark == mark - 1:
                break
            if not below.offset < guess < above.offset:
                guess = (below.offset + above.offset) // 2
            truth = self._at(guess).truth()
            if truth.begin != end.begin or truth.offset <= below.offset:
                below_guess, guess = guess, (guess + above.offset) // 2
                if guess == below_guess:
                    break
                continue
            self._truths.add(truth)
            if truth.mark is None or truth.mark < mark:
                below = truth
            else:
                above = truth
            guess = (below.offset + above.offset) // 2
        return below

    def close(self) -> None:
        self._fetcher.close()

    def _at(self, offset: int) -> Record:
        (record,) = self._records(offset, offset + 1)
        return record

    def _records(self, offset: int, upto: int) -> Iterator[Record]:
        try:
            yield from self._fetcher.records(offset, upto)
        finally:
            self._fetcher.rest()
