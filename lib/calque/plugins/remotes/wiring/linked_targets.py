"""The parts of a target that is a projection of links."""

from __future__ import annotations

from calque.ports import TargetParts
from calque.wiring.kinds import TargetContext


def linked(parts: TargetParts, context: TargetContext) -> TargetParts:
    """Return the parts of a target that keep its links. A target that is no projection of links keeps the parts that it
    has."""
    if context.plug.links is None:
        return parts
    from calque.plugins.remotes.engine.linked_catalog import linked_parts
    from calque.plugins.remotes.wiring.missing_links import RecordedMissingLinks

    admission = context.plug.admission()
    return linked_parts(
        parts,
        context.plug.links,
        lambda name: admission.source_of(name) is not None,
        context.bare_storage.make_directories,
        RecordedMissingLinks(context.folder.control),
    )
