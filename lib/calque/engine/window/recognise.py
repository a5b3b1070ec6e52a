"""The recognition of objects at a target that equal the source's at an event, though they carry no marks."""

from __future__ import annotations

from collections.abc import Mapping

from calque.core.states.fold import Chain
from calque.engine.files.content_proof import pairs_of, prove
from calque.engine.sides.sides import TargetSide
from calque.engine.target.observe import ShownTable
from calque.model.files import Listing
from calque.model.names import TableName
from calque.model.plan import Data

Listings = Mapping[Data, Listing]


def recognise(side: TargetSide, chain: Chain, shown: Mapping[TableName, ShownTable | None], listings: Listings) -> None:
    """Give copies that were at the target before calque the source's times, where their content is that of a state of
    the chain. Directories that were there at the start (`policy.start`) have times of their own, so that their files
    equal no listing. Where all files of such a directory may be those of one of `listings`, they are compared by
    checksum; `shown` has the directory's new listing afterwards."""
    source_listings: dict[str, list[Listing]] = {}
    for step in chain.steps:
        datas = [("", head.data) for head in step.heads.values() if head.data is not None]
        datas += [(partition, part.data) for (_, partition), part in step.parts.items() if part is not None]
        for partition, data in datas:
            if data in listings:
                source_listings.setdefault(partition, []).append(listings[data])
    mark = f"r{side.policy.start}"
    for table in shown.values():
        if table is None or table.incarnation() != mark:
            continue
        for partition, target_listing in table.listings.items():
            source_listing = next(
                (listing for listing in source_listings.get(partition, ()) if pairs_of(listing, target_listing)), None
            )
            if source_listing is not None and prove(side, [(source_listing, target_listing)], also_known=False):
                table.listings[partition] = side.storage.list([target_listing.location])[target_listing.location]
