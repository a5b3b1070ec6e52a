"""The extras of the distribution: packages that only some deployments need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from calque.config.plugs import Config
from calque.errors import Refused

DISTRIBUTION = "calque-replicator"


@dataclass(frozen=True, kw_only=True, slots=True)
class Extra:
    """An extra of the distribution: `pip install 'calque-replicator[NAME]'` brings the `modules`. `needed` returns the
    part of a configuration that needs them, such as `[journal]`; empty where none does."""

    name: str
    modules: tuple[str, ...]
    needed: Callable[[Config], str]


def missing_extras(config: Config, extras: Iterable[Extra]) -> Iterator[Refused]:
    """Yield a refusal for each extra that the configuration needs and this host lacks."""
    for extra in extras:
        if (part := extra.needed(config)) and (lacking := [name for name in extra.modules if find_spec(name) is None]):
            yield missing(extra.name, part, lacking[0])


def missing(extra: str, part: str, module: str) -> Refused:
    """Return the refusal that says that `part` needs a module which is not installed."""
    todo = f"pip install '{DISTRIBUTION}[{extra}]'"
    return Refused(f"{part} needs the extra {extra}", f"The module {module} is not installed", todo)


def part_with_scheme(config: Config, schemes: Iterable[str]) -> str:
    """Return the first part of the configuration that names a location of one of the schemes; empty where none does."""
    wanted = frozenset(schemes)
    named = [("[state] tables", config.state.tables)]
    named += [("[source] pins", source.keys.pins) for source in config.sources.values()]
    for name, target in config.targets.items():
        keys = target.keys
        places = (keys.warehouse, keys.external_base, *keys.locations.values())
        named += [(f"[targets.{name}]", place) for place in places]
    return next((part for part, place in named if urlsplit(place).scheme in wanted), "")


def kerberos(config: Config) -> str:
    """Return the first section that has a metastore called with a Kerberos ticket; empty where none does."""
    sections = [("[source]", source.keys) for source in config.sources.values()]
    sections_of_targets = [(f"[targets.{name}]", target.keys) for name, target in config.targets.items()]
    return next((part for part, keys in [*sections, *sections_of_targets] if keys.auth == "kerberos"), "")


KERBEROS = Extra(name="kerberos", modules=("gssapi",), needed=kerberos)
"""The extra that the kernel itself may need."""
