"""The parts that a running process ends and begins when it reads its configuration again, and the changes that it
refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calque.config import Config
from calque.config.conflicts import unsupported
from calque.errors import Refused
from calque.streams.kinds import KERNEL_ALONE, ProcessKinds


def no_digest() -> str:
    return ""


@dataclass(slots=True)
class ConfigurationReader:
    """The way in which a process reads its configuration again, and the rule for which of its targets are this
    process's.

    The process's targets are those that were `named` at its start, and all where no name was given. With None the
    process has no target.
    """

    load_file: Callable[[], Config]
    named: Sequence[str] | None = ()
    digest_file: Callable[[], str] = no_digest
    """The function that returns a digest of what the file says now."""
    digest: str = ""
    """The digest of the configuration that `load` returned last; empty where the file changed meanwhile."""

    def load(self) -> Config:
        before = self.digest_file()
        config = self.load_file()
        self.note(before)
        return config

    def note(self, before: str) -> None:
        """Note that a configuration was read from a file that had the digest `before`."""
        self.digest = before if before == self.digest_file() else ""

    def has_all(self) -> bool:
        """Tell whether every target of a configuration is this process's."""
        return self.named is not None and not self.named

    def targets(self, config: Config) -> tuple[str, ...]:
        if self.named is None:
            return ()
        return tuple(name for name in config.targets if not self.named or name in self.named)


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """The parts that a process ends and begins for another configuration. All other parts go on undisturbed."""

    captures: tuple[str, ...]
    """Sources whose capture ends, where it runs, and begins anew."""
    ended_targets: tuple[str, ...]
    begun_targets: tuple[str, ...]
    ended_captures: tuple[str, ...] = ()
    """Sources that the configuration has no more, such as endpoints of links that are gone."""
    relinked_targets: tuple[str, ...] = ()
    """Projections that get or lose links, and differ in nothing else: they go on with their other links."""

    @property
    def added(self) -> tuple[str, ...]:
        return tuple(name for name in self.begun_targets if name not in self.ended_targets)

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(name for name in self.ended_targets if name not in self.begun_targets)


def configuration_change(
    before: Config,
    now: Config,
    old_targets: Sequence[str],
    new_targets: Sequence[str],
    kinds: ProcessKinds = KERNEL_ALONE,
) -> ConfigurationChange:
    """Return what a process has to end and begin that replicates to `old_targets` under `before`, and is to replicate
    to `new_targets` under `now`."""
    sources = {name for name, source in now.sources.items() if source != before.sources.get(name)}
    common_targets = [name for name in old_targets if name in new_targets]
    disturbed_targets = {
        name for name in common_targets if before.window != now.window or now.targets[name].source in sources
    }
    changed_targets = disturbed_targets | {name for name in common_targets if before.targets[name] != now.targets[name]}
    candidates = changed_targets - disturbed_targets
    relinked_targets = {name for kind in kinds.watches for name in kind.relinked(before, now, candidates)}
    changed_targets -= relinked_targets
    return ConfigurationChange(
        tuple(name for name in now.sources if name in sources or taken(before, name) != taken(now, name)),
        tuple(name for name in old_targets if name in changed_targets or name not in new_targets),
        tuple(name for name in new_targets if name in changed_targets or name not in old_targets),
        tuple(name for name in before.sources if name not in now.sources),
        tuple(name for name in new_targets if name in relinked_targets),
    )


def taken(config: Config, source: str) -> object:
    """Return a value that differs where the source's capture has to begin anew, because its targets take other
    tables."""
    targets = [config.targets[name] for name in config.targets_of(source)]
    if source in config.sources and config.sources[source].is_linked:
        return {target.name for target in targets}
    return {target.name: (target.keys.include, target.keys.exclude) for target in targets}


def fixed(config: Config) -> Mapping[str, object]:
    """Return the sections and keys that can't change while the process runs, because the journal or an open object
    depends on them: values by the names that errors give them."""
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
    """Raise `Refused` where the new configuration can't be run at all, or where it changes a key that needs a new
    start."""
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
