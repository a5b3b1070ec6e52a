"""Writers that want one target, on clocks that stand still until they are told."""

from __future__ import annotations

from calque.engine.lease.generations import CatalogLeases
from calque.engine.lease.keeper import Lease
from calque.model.lease import Writer
from calque.ports import Catalog

SECONDS = 30.0


class Elapsed:
    """A clock that somebody else moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def leases_of(catalog: Catalog, target: str = "dr", warehouse: str = "file:/dr") -> CatalogLeases:
    return CatalogLeases(catalog, "hq", target, warehouse)


def writer(name: str, proof: str = "", state: str = "") -> Writer:
    return Writer(name, f"host-of-{name}", 7, state or f"state-of-{name}", proof)


def lease(catalog: Catalog, clock: Elapsed, seconds: float = SECONDS, target: str = "dr") -> Lease:
    return Lease(leases_of(catalog, target), target, seconds, clock)
