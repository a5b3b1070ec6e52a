"""The picture of a table's life, drawn from `calque.core.records.lifecycle`.

States with the same transitions share a box, so that an arrow that leaves the box stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from calque.core.records.lifecycle import TRANSITIONS, State, Transition

WIDTH, HEIGHT = 860, 470
STATE_WIDTH, STATE_HEIGHT, MARGIN = 104, 34, 22
SIDE, LABEL = 9.0, 0.42
"""How far an arrow lies beside the line between two states, and where along it its label is."""
PLACES: Mapping[State, tuple[int, int]] = {
    State.OUT: (110, 90),
    State.LIVE: (290, 90),
    State.WAITING: (470, 90),
    State.READING: (110, 370),
    State.STAGING: (290, 370),
    State.UNKNOWN: (470, 370),
    State.PAUSED: (730, 90),
    State.PARKED: (730, 370),
    State.QUARANTINED: (730, 230),
}


class Box(NamedTuple):
    """States with the same transitions, and the rectangle around them."""

    states: tuple[State, ...]
    left: float
    top: float
    right: float
    bottom: float

    def border(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the border nearest to another point."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def boxes() -> list[Box]:
    groups: dict[tuple[tuple[Transition, State], ...], list[State]] = {}
    for state, changes in TRANSITIONS.items():
        groups.setdefault(tuple(sorted(changes.items())), []).append(state)
    return [box_around(tuple(states)) for states in groups.values()]


def box_around(states: tuple[State, ...]) -> Box:
    half_width, half_height = STATE_WIDTH / 2, STATE_HEIGHT / 2
    margin = MARGIN if len(states) > 1 else 0
    xs, ys = [PLACES[state][0] for state in states], [PLACES[state][1] for state in states]
    return Box(
        states,
        min(xs) - half_width - margin,
        min(ys) - half_height - margin,
        max(xs) + half_width + margin,
        max(ys) + half_height + margin,
    )


def picture() -> str:
    """Return the picture as an SVG file, dark on a white ground, so that it can be read on a dark page, too."""
    about = "The states of a table, and what leads from one to the other"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222" stroke="#222"'
    head = '<path d="M0 0 L8 4 L0 8 z" stroke="none"/>'
    marker = 'id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{about}" {style}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="white" stroke="none"/>',
        f"<defs><marker {marker}>{head}</marker></defs>",
        *drawn_boxes(),
        *drawn_arrows(),
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def drawn_boxes() -> Iterator[str]:
    for box in boxes():
        if len(box.states) > 1:
            size = f'width="{box.right - box.left}" height="{box.bottom - box.top}"'
            yield f'<rect x="{box.left}" y="{box.top}" {size} rx="10" fill="none" stroke-dasharray="4 3"/>'
        for state in box.states:
            x, y = PLACES[state]
            yield (
                f'<rect x="{x - STATE_WIDTH / 2}" y="{y - STATE_HEIGHT / 2}" width="{STATE_WIDTH}" '
                f'height="{STATE_HEIGHT}" rx="6" fill="none" stroke-width="1.5"/>'
            )
            yield text(x, y + 4, state.value, weight="bold")


def drawn_arrows() -> Iterator[str]:
    for box in boxes():
        lines: dict[State, list[str]] = {}
        for change, following in TRANSITIONS[box.states[0]].items():
            if box.states != (following,):
                lines.setdefault(following, []).append(change.value)
        for following, labels in lines.items():
            yield from arrow(box, following, labels)


def arrow(box: Box, following: State, labels: list[str]) -> Iterator[str]:
    """Draw an arrow from the box to a state. To a state of the box itself it comes from above or below the box."""
    x, y = PLACES[following]
    if following in box.states:
        above = y < HEIGHT / 2
        start_y = box.top - 26 if above else box.bottom + 26
        yield line(x, start_y, x, y - STATE_HEIGHT / 2 if above else y + STATE_HEIGHT / 2)
        yield from label(x, start_y - 6 if above else start_y + 14, labels)
        return
    start = box.border(x, y)
    end = box_around((following,)).border(*start)
    # To the right of its direction, so that arrows that come and go lie apart.
    across, down = end[0] - start[0], end[1] - start[1]
    length = (across**2 + down**2) ** 0.5
    right, below = -down / length * SIDE, across / length * SIDE
    yield line(start[0] + right, start[1] + below, end[0] + right, end[1] + below)
    label_x, label_y = start[0] + across * LABEL, start[1] + down * LABEL
    is_upright = abs(across) < abs(down) / 8
    yield from label(label_x + right * (5 if is_upright else 1), label_y + below + (14 if below > 0 else -6), labels)


def label(x: float, y: float, labels: list[str]) -> Iterator[str]:
    for number, words in enumerate(labels):
        yield text(x, y + 14 * number, words)


def line(from_x: float, from_y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{from_x:.1f}" y1="{from_y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" marker-end="url(#head)"/>'


def text(x: float, y: float, words: str, weight: str = "normal") -> str:
    """Return words centred at a point, with a white seam, so that lines do not cross them."""
    seam = "paint-order: stroke; stroke: white; stroke-width: 5px"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="middle"'
    return f'<text {place} style="{seam}" font-weight="{weight}">{escape(words)}</text>'
