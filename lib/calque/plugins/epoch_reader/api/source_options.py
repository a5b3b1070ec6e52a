"""The options of `format("calque")`: which there are, which exclude each other, and what they say. Spark gives their
names in lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from calque.core.policy.pattern_set import PatternSet
from calque.core.policy.patterns import parse_pattern
from calque.errors import Refused, nearest
from calque.model.names import EventId, TableName
from calque.plugins.epoch_reader.engine.feed import Starting
from calque.plugins.epoch_reader.wiring import LedgerAddress, ledger_at, ledger_of

if TYPE_CHECKING:
    from calque.wiring.wiring import Wiring

LEDGER, CONFIG, TARGET, TABLES = "ledger", "config", "target", "tables"
STARTING, MOST = "startingEpoch", "maxEpochsPerTrigger"
EPOCH, EVENT = "epoch", "event"
PATH, TABLE = "path", "table"
STORAGE = "storage."
"""The beginning of options for the store that `ledger` lies in."""
MOST_EPOCHS = 100
PATTERN = re.compile(r"/.+?/(?=\s*(?:,|$))|[^,\s](?:[^,]*[^,\s])?")
"""A pattern of a list with commas. A regular expression between slashes may have commas of its own."""

NUMBER = re.compile("[0-9]{1,18}")


class Use(Enum):
    """The kinds of reads. The value is the name that errors use."""

    TABLE = "reads of a table"
    EPOCH = "reads of an epoch's changes"
    STREAM = "streams"


NAMES: Mapping[Use, tuple[str, ...]] = {
    Use.TABLE: (PATH, TABLE, CONFIG, TARGET, EVENT),
    Use.EPOCH: (LEDGER, CONFIG, TARGET, TABLES, EPOCH, EVENT),
    Use.STREAM: (LEDGER, CONFIG, TARGET, TABLES, STARTING, MOST),
}
EXCLUSIVE = (
    (LEDGER, CONFIG, "A read is of one ledger"),
    (LEDGER, TARGET, "The ledger's folder says which target it is"),
    (EPOCH, EVENT, "A read is of one epoch"),
)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """The changes to read. A stream reads from `starting` on, at most `most` epochs at once. A read reads one `epoch`,
    or the epoch at an `event`, or, without both, the newest one."""

    tables: tuple[str, ...] = ()
    """Patterns of tables; without one, every table."""
    starting: Starting | int = Starting.EARLIEST
    most: int = MOST_EPOCHS
    epoch: int | None = None
    event: EventId | None = None

    def takes(self) -> Callable[[TableName], bool]:
        """Return a function that tells whether a table's changes are read."""
        patterns = PatternSet(map(parse_pattern, self.tables))
        return lambda name: not self.tables or patterns.matches(name)


def change_options(options: Mapping[str, str], *uses: Use) -> ChangeOptions:
    """Return the changes that the options ask for. Raises `Refused` for an option that none of the uses has, for two
    that exclude each other, and for a value that an option can't have."""
    require_known(options, *uses)
    starting = options.get(STARTING.lower(), Starting.EARLIEST.value)
    words = {one.value: one for one in Starting}
    return ChangeOptions(
        patterns_of(options),
        words.get(starting.lower()) or number_of(STARTING, starting, ", earliest or latest"),
        number_of(MOST, options.get(MOST.lower(), str(MOST_EPOCHS))),
        number_of(EPOCH, options[EPOCH]) if EPOCH in options else None,
        event_of(options),
    )


def address_of(options: Mapping[str, str], wired: Callable[[str], Wiring]) -> LedgerAddress:
    """Return the place of the ledger that the options name; `wired` wires a configuration by its path. Raises `Refused`
    for an unknown target, for a text that is no place, and for a secret among the options. Nothing is opened yet."""
    if LEDGER not in options:
        return ledger_of(wired(options.get(CONFIG, "calque.toml")), options.get(TARGET))
    storage = {name.removeprefix(STORAGE): text for name, text in options.items() if name.startswith(STORAGE)}
    return ledger_at(options[LEDGER], storage)


def table_in(options: Mapping[str, str]) -> str:
    """Return the table to read; empty where the options name none."""
    return options.get(PATH) or options.get(TABLE) or ""


def require_known(options: Mapping[str, str], *uses: Use) -> None:
    """Check the options for these uses. Raises `Refused` for an option that none of them has, and for two that exclude
    each other."""
    known = {name.lower(): name for use in uses for name in NAMES[use]}
    for option in options:
        if option not in known and not (LEDGER in known and option.startswith(STORAGE)):
            raise unknown(option, known.values(), uses[-1])
    for one, other, why in EXCLUSIVE:
        if one in options and other in options:
            raise Refused(f"The options {one} and {other} exclude each other", why, "Leave one of them out")
    storage = sorted(option for option in options if option.startswith(STORAGE))
    if storage and LEDGER not in options:
        what = f"The option {storage[0]} is given without the option ledger"
        why = "A configuration says itself how its store is reached"
        raise Refused(what, why, "Name the ledger, or leave the option out")


def unknown(option: str, known: Collection[str], use: Use) -> Refused:
    for other, names in NAMES.items():
        if option in map(str.lower, names):
            what = f"{use.value.capitalize()} have no option {option}"
            return Refused(what, f"It is an option of {other.value}", "Leave it out")
    return Refused(f'There is no option "{option}"', nearest(option, known), "Correct its name, or leave it out")


def patterns_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the patterns of `tables`. Raises `Refused` for a text that is no pattern."""
    if TABLES not in options:
        return ()
    texts = tuple(match[0] for match in PATTERN.finditer(options[TABLES]))
    if not texts:
        raise Refused("The option tables has no pattern", "It would choose nothing", 'Write e.g. "sales.*, hr.staff"')
    for text in texts:
        try:
            parse_pattern(text)
        except Refused as refused:
            raise Refused(f"Option tables: {refused.what}", refused.why, refused.todo) from None
    return texts


def number_of(name: str, text: str, otherwise: str = "") -> int:
    """Return the positive number that an option gives. Raises `Refused`; `otherwise` names further values in the
    error."""
    if not (NUMBER.fullmatch(text) and int(text)):
        why = "Epochs are numbered from 1" if name != MOST else "A stream takes one epoch at once, or more"
        raise Refused(f'"{text}" is no value of the option {name}', why, f"Write a positive number{otherwise}")
    return int(text)


def event_of(options: Mapping[str, str]) -> EventId | None:
    """Return the event id of the options; None where they have none. Raises `Refused` for a text that is no event
    id."""
    text = options.get(EVENT, "")
    if text and not NUMBER.fullmatch(text):
        raise Refused(f'"{text}" is no event id', "The option event takes a number", "Write e.g. 812")
    return int(text) if text else None
