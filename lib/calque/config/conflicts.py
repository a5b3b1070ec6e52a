"""The contradictions between keys of a valid file, and settings that this version refuses together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from calque.config.checks import require_mode
from calque.config.lines import Path
from calque.config.places import one_metastore
from calque.config.plugs import Config, Target
from calque.core.images.image import PARKED
from calque.core.images.overlap import shared_name
from calque.core.policy.admit import PLAIN, Admission
from calque.errors import Refused


def conflicts(config: Config) -> Iterator[tuple[Path, Refused]]:
    """Yield each contradiction in the configuration, with the path of the key that is to be changed."""
    for name, target in config.targets.items():
        admission = target.admission()
        yield from _within(name, admission)
        yield from _arming(name, target)
        yield from _compacting(name, target)
        yield from _unknown_formats(name, target, config.kinds.formats)
        yield from _in_formats(name, target)
        if one_metastore(target.keys.metastore, config.source_of(name).keys.metastore):
            yield from _onto_itself(name, admission)
    for one, other in combinations(config.targets.values(), 2):
        yield from _between(one, other)
    for kind in config.kinds.sections:
        yield from kind.misfits(config)


def _within(name: str, admission: Admission) -> Iterator[tuple[Path, Refused]]:
    for first, second in admission.provable_collisions():
        shared = admission.name_at_target(first)
        what = f'"{first}" and "{second}" would both be "{shared}" at the target'
        todo = f'Rename one of them to another name, or exclude "{first if first != shared else second}"'
        yield ("targets", name, "rename"), Refused(what, "Both are admitted, and a name is one object's", todo)


def _arming(name: str, target: Target) -> Iterator[tuple[Path, Refused]]:
    for key, value in target.keys.properties.items():
        if target.admission().leaves_some and value and key.lower() in PARKED:
            what = f"\"{key}\" would have the target's metastore act on the source's files"
            yield ("targets", name, "properties"), Refused(what, 'With data = "none" they are its own', "Leave it out")


def _compacting(name: str, target: Target) -> Iterator[tuple[Path, Refused]]:
    if target.keys.compact and target.keys.data == "none":
        what = 'compact is of no use with data = "none"'
        yield ("targets", name, "compact"), Refused(what, "Files stay at the source as they are", "Leave it out")
    elif target.keys.compact and target.keys.appends != "new_directory":
        what = 'compact needs appends = "new_directory"'
        why = "Files that an INSERT adds can't be put beside combined ones: later events name the source's files"
        todo = 'Write appends = "new_directory", or leave compact out'
        yield ("targets", name, "compact"), Refused(what, why, todo)


def _unknown_formats(name: str, target: Target, formats: Sequence[str]) -> Iterator[tuple[Path, Refused]]:
    said = target.keys.format
    words = {(): said} if isinstance(said, str) else {(pattern,): word for pattern, word in said.items()}
    for key, word in words.items():
        try:
            require_mode(word, (PLAIN, *formats))
        except Refused as refused:
            yield ("targets", name, "format", *key), refused


def _in_formats(name: str, target: Target) -> Iterator[tuple[Path, Refused]]:
    said = target.keys.format
    word = next((one for one in ([said] if isinstance(said, str) else said.values()) if one != PLAIN), "")
    if word and target.keys.data == "none":
        what = f'format = "{word}" is of no use with data = "none"'
        why = f"A {word.title()} table's files lie below its log"
        yield ("targets", name, "format"), Refused(what, why, "Leave it out")
    elif word and target.keys.compact:
        what = f'format = "{word}" and compact exclude each other'
        why = f"Files of a {word.title()} table are the source's, one by one"
        yield ("targets", name, "format"), Refused(what, why, "Leave one of them out")


def _onto_itself(name: str, admission: Admission) -> Iterator[tuple[Path, Refused]]:
    taken_sources = [source for source in admission.named() if admission.takes(source)]
    for source in taken_sources:
        if admission.name_at_target(source) == source:
            what = f'"{source}" would be replicated onto itself'
            todo = f'Rename it, e.g. rename = {{ "{source}" = "{source}_copy" }}'
            yield ("targets", name, "metastore"), Refused(what, "Source and target are one metastore", todo)
    if "*.*" in admission.policy.include and not admission.policy.exclude and not admission.policy.rename:
        what = "every table would be replicated onto itself"
        todo = 'Name databases in "include" and rename them'
        yield ("targets", name, "metastore"), Refused(what, "Source and target are one metastore", todo)


def _between(one: Target, other: Target) -> Iterator[tuple[Path, Refused]]:
    place = _shared_place(one, other)
    shared = shared_name(one.admission(), other.admission()) if place else None
    if shared is not None:
        exceptions = [*one.keys.exclude, *other.keys.exclude, *one.keys.rename, *other.keys.rename]
        written = "every table" if shared.pattern == "*.*" and not exceptions else f'names like "{shared.pattern}"'
        what = f"{one.name} and {other.name} would both write {written} into {place}"
        todo = "Give them different names, or exclude what the other takes"
        yield ("targets", other.name, "metastore"), Refused(what, "Each replica belongs to one stream", todo)


def _shared_place(one: Target, other: Target) -> str:
    first, second = one.keys, other.keys
    if one_metastore(first.metastore, second.metastore):
        return second.metastore[0]
    both_copy = one.admission().copies_some and other.admission().copies_some
    return second.warehouse if both_copy and first.warehouse == second.warehouse else ""


def unsupported(config: Config) -> list[Refused]:
    """Return a refusal for each pair of settings that this version does not have together. `calque run` raises the
    first one, `calque check` shows all."""
    refusals = []
    for name, target in config.targets.items():
        if target.keys.consistency == "database" and target.keys.drops == "keep":
            refusals.append(
                Refused(
                    f'targets.{name}: consistency = "database" and drops = "keep" exclude each other',
                    "A table that is kept is in no state of the source's database",
                    'Write drops = "follow", or consistency = "table"',
                )
            )
    return refusals


def taking_nothing(config: Config) -> list[Refused]:
    """Return a refusal for each target with an empty `include`, by the configuration as statements have changed it."""
    return [
        Refused(
            f"Target {name} takes nothing",
            f"targets.{name}.include is empty",
            'Name what it takes, e.g. include = ["sales.*"], or leave the key out: then it takes all',
        )
        for name, target in config.targets.items()
        if not target.keys.include
    ]
