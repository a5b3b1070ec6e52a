"""The number of files and sockets that the process may have open at a time."""

from __future__ import annotations

import logging
import resource

LOG = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Raise the process's soft limit of open files to its hard limit; where the system refuses that, only log it. More
    than the hard limit is the operator's to permit: `LimitNOFILE=` of the unit, `ulimit -Hn`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        LOG.warning("no more than %d files and sockets can be open: %s", soft, error)
