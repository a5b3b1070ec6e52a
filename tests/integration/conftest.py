"""Metastores that the tests of a file share: what one file leaves there is no other's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from calque.sandbox import Metastore
from support.services.servers import Shared, shared_servers


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.fixture(scope="module")
def servers(shared: Shared) -> Mapping[str, Metastore]:
    """A source and a target of 3.1.3."""
    found = shared("source-3", "target-3")
    return {"source": found["source-3"], "target": found["target-3"]}
