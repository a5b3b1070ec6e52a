"""What a replica does with errors of its background reads."""

from __future__ import annotations

import pytest

from calque.errors import Broken
from worlds import World


def test_an_invariant_that_falls_in_a_background_read_stops_the_stream() -> None:
    world = World(3)
    while not world.source_states():
        world.write()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()

    def fall(method: str) -> None:
        if method == "table":
            raise Broken("An invariant fell")

    world.between = fall
    world.background.run()
    with pytest.raises(Broken, match="An invariant fell"):
        world.window()
