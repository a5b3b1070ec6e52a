"""The plugin `clusters`: the value `PLUGIN`, which names what clusters add to calque."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.config.extras import Extra
    from calque.config.sections import SectionKind
    from calque.extension import Amendment, Check
    from calque.statements.forms import Statements


def statements() -> Statements:
    from calque.plugins.clusters.statements.forms import STATEMENTS

    return STATEMENTS


def sections() -> tuple[SectionKind[Any], ...]:
    from calque.plugins.clusters.config.sections import CLUSTERS

    return (CLUSTERS,)


def amendments() -> tuple[Amendment, ...]:
    from calque.plugins.clusters.wiring.secondary_tables import as_statements_have_it

    return (as_statements_have_it,)


def checks() -> tuple[Check, ...]:
    from calque.plugins.clusters.api.matching import check_clusters

    return (check_clusters,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.clusters.extras import CLUSTERS

    return (CLUSTERS,)


PLUGIN = Plugin(
    name="clusters", statements=statements, checks=checks, sections=sections, amendments=amendments, extras=extras
)
