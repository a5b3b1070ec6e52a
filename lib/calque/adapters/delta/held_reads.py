"""A cache of what was read of data files last, so that many small reads of one span decode it once.

Data files never change, so what was read of a file stays true for as long as a table names the file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class HeldReads:
    """A cache of at most `most` bytes, which drops what was used longest ago. Safe from several threads: a thread that
    asks for what another thread is just reading waits for it and gets the same."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable, read: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """Return the value of `key`, from the cache or by `read`; `weigh` gives the bytes of a value that was read. A
        key must always be used for values of one type. A value of more than `most` bytes is not held. Raises what
        `read` raises."""
        if not self.most:
            return read()
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][0]  # type: ignore[return-value]  # the key's type, as promised
            thing = read()
            weight = weigh(thing)
            if weight <= self.most:
                self._held[key] = thing, weight
                self._weight += weight
            while self._weight > self.most:
                _, (_, dropped_weight) = self._held.popitem(last=False)
                self._weight -= dropped_weight
            return thing
