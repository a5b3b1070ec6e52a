"""What was read of data files last, so that many small reads of one span decode it once.

Data files never change, so what was read of one stays true for as long as something names it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class HeldReads:
    """At most `most` bytes, those that were used last. Safe from several threads: who asks for what another one is just
    reading gets that."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable, read: Callable[[], T], weigh: Callable[[T], int]) -> T:
        """What goes by this key, each key always with the same type; `read` gives it where it is not held, and `weigh`
        its bytes. Raises what `read` raises."""
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
