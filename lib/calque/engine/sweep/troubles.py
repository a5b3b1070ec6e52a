"""The isolation of errors at one place of a sweep from the rest of the sweep."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from calque.core.defects import ObjectDefect, traceback_of, work_on
from calque.engine.sweep.candidates import KeptPlace
from calque.errors import Refused, WrittenElsewhere
from calque.ports import Conflict

LOG = logging.getLogger(__name__)


@contextmanager
def own_trouble(troubles: list[KeptPlace], place: str) -> Iterator[None]:
    """Run the block, which works at one directory or hidden table. A `Refused` or a defect ends the block and is added
    to `troubles` with the place; the code after the block goes on. Raises other errors, which every place would meet,
    among them `WrittenElsewhere` and `Unavailable`."""
    try:
        with work_on(f"the sweep of {place}", Conflict):
            yield
    except WrittenElsewhere:
        raise
    except (Refused, ObjectDefect) as error:
        LOG.warning("%s stays: %s", place, error, exc_info=traceback_of(error))
        troubles.append(KeptPlace(place, str(error)))
