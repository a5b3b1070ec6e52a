"""How many files and sockets the process may have open: as many as whoever starts it permits."""

from __future__ import annotations

import logging
import resource

LOG = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """To the hard limit. What permits more is the operator's: `LimitNOFILE=` of the unit, `ulimit -Hn`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        LOG.warning("no more than %d files and sockets can be open: %s", soft, error)
