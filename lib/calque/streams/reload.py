"""What a running process takes over of a configuration that it reads again, and what it can't."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calque.config import Config
from calque.config.conflicts import unsupported
from calque.errors import Refused
from calque.streams.kinds import KERNEL_ALONE, ProcessKinds


@dataclass(frozen=True, slots=True)
class ConfigurationReader:
    """How a process reads its configuration again, and which of the targets there are its own: those that were `named`
    at its start, all where none was; with None it has none."""

    load: Callable[[], Config]
    named: Sequence[str] | None = ()

    def has_all(self) -> bool:
        """Whether all targets are the process's."""
        return self.named is not None and not self.named

    def targets(self, config: Config) -> tuple[str, ...]:
        if self.named is None:
            return ()
        return tuple(name for name in config.targets if not self.named or name in self.named)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a process has to end and to begin; the rest goes on undisturbed."""

    captures: tuple[str, ...]
    """Sources whose capture is to end, where there is one, and to begin anew."""
    ended_targets: tuple[str, ...]
    begun_targets: tuple[str, ...]
    ended_captures: tuple[str, ...] = ()
    """Sources that are gone: endpoints of links that are."""
    relinked_targets: tuple[str, ...] = ()
    """Projections that get or lose links, and nothing else: they go on with others."""

    @property
    def added(self) -> tuple[str, ...]:
        return tuple(name for name in self.begun_targets if name not in self.ended_targets)

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(name for name in self.ended_targets if name not in self.begun_targets)


def difference(
    before: Config,
    now: Config,
    old_targets: Sequence[str],
    new_targets: Sequence[str],
    kinds: ProcessKinds = KERNEL_ALONE,
) -> Difference:
    """From `old_targets`, which the process replicates to, to `new_targets`, which it is to replicate to."""
    sources = {name for name, source in now.sources.items() if source != before.sources.get(name)}
    common_targets = [name for name in old_targets if name in new_targets]
    disturbed_targets = {
        name for name in common_targets if before.window != now.window or now.targets[name].source in sources
    }
    changed_targets = disturbed_targets | {name for name in common_targets if before.targets[name] != now.targets[name]}
    candidates = changed_targets - disturbed_targets
    relinked_targets = {name for kind in kinds.watches for name in kind.relinked(before, now, candidates)}
    changed_targets -= relinked_targets
    return Difference(
        tuple(name for name in now.sources if name in sources or taken(before, name) != taken(now, name)),
        tuple(name for name in old_targets if name in changed_targets or name not in new_targets),
        tuple(name for name in new_targets if name in changed_targets or name not in old_targets),
        tuple(name for name in before.sources if name not in now.sources),
        tuple(name for name in new_targets if name in relinked_targets),
    )


def taken(config: Config, source: str) -> object:
    """What the source's capture looks at for its targets."""
    targets = [config.targets[name] for name in config.targets_of(source)]
    if source in config.sources and config.sources[source].is_linked:
        return {target.name for target in targets}
    return {target.name: (target.keys.include, target.keys.exclude) for target in targets}


def fixed(config: Config) -> Mapping[str, object]:
    """Sections, and keys of them, that journals and all that is open depend on."""
    return {
        "[source] name": config.own_sources(),
        "[source] metastore": [config.sources[name].keys.metastore for name in config.own_sources()],
        **{key: value for kind in config.kinds.sections for key, value in kind.fixed(config.section(kind)).items()},
        "[state]": config.state,
        "[journal]": [config.sources[name].journal for name in config.own_sources()],
        "[serve]": config.serve,
        "[log] format": config.log.format,
    }


def require_reloadable(before: Config, now: Config) -> None:
    """`Refused` where the difference needs a new start, or can't be had at all."""
    for refusal in unsupported(now):
        raise refusal
    fixed_before, fixed_now = fixed(before), fixed(now)
    for section in fixed_before:
        if fixed_before[section] != fixed_now[section]:
            raise Refused(
                f"{section} changed, and can't be taken over while calque runs",
                "The journal, and everything that is open, belongs to it",
                "Put it back, or stop `calque run` and start it again",
            )
