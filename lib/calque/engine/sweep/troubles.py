"""What goes wrong at one place of a sweep is that place's own."""

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
    """Work at one directory or hidden table. A refusal and a defect are noted among the `troubles`, and end the block;
    what comes after it goes on. Raises what every place would meet."""
    try:
        with work_on(f"the sweep of {place}", Conflict):
            yield
    except WrittenElsewhere:
        raise
    except (Refused, ObjectDefect) as error:
        LOG.warning("%s stays: %s", place, error, exc_info=traceback_of(error))
        troubles.append(KeptPlace(place, str(error)))
