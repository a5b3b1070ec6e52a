"""The identity of a deployment: the metastores and directories that it is of. It is asked before any object is written
or removed, and an operator may accept another one.

The ledger of each target remembers it, and so do the directories that the target writes below and its metastore. The
state folder remembers which metastore each source is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calque.control.requests import leave_request
from calque.core.formats.layout import place
from calque.core.records.identity import contained, shared_directory, user_of, with_directories
from calque.engine.identity import directories, hidden
from calque.engine.identity.identity import (
    SourceAnswer,
    ask,
    mark_directories,
    record_name,
    remembered,
    require,
    require_removal,
    settle,
)
from calque.engine.lease.fence import Fence, NoFence
from calque.engine.lease.keeper import Lease
from calque.engine.sides.sides import TargetSide
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.identity import Answers
from calque.model.lease import Generation
from calque.model.records import DropReview, GapRecovery, LedgerIdentity, one_of
from calque.model.requests import Action
from calque.ports import Ledger
from calque.ports.records import Json
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring

SOURCE_SECONDS = 5.0
"""Seconds for which a source is waited for where the work can go on without its answer."""


# The source


def require_source(wiring: Wiring, source: SourceWiring, answer: SourceAnswer | None = None) -> SourceAnswer:
    """Return the source's answer, asking for it where no `answer` is given. Raises `Refused` where it is another
    metastore than the state folder, or the ledger of a target that follows it, remembers. A source that does not
    answer, or has no id, is let pass."""
    answer = answer or source.answer(SOURCE_SECONDS)
    for where, known_id in remembered_source_ids(wiring, source):
        if answer.id and known_id and known_id != answer.id:
            name = source.plug.name
            raise Refused(
                f"The source {name} is another metastore than before",
                f"{where} remembers {known_id}, and {answer.id} answers",
                "Correct the source's address; where the new one has taken the old one's place, say `calque identity "
                f"accept --source {answer.id}`",
            )
    return answer


def settle_source(wiring: Wiring, source: SourceWiring) -> None:
    """Check the source as `require_source` does, for a process that captures it, and record its id. Raises
    `Unavailable` where it does not answer, and `Refused` where it is another metastore."""
    answer = require_source(wiring, source)
    if answer.id is None:
        name = source.plug.name
        raise Unavailable(
            f"The source {name} does not say which metastore it is", "It does not answer", "It is asked again"
        )
    if answer.id and recorded_source_id(wiring, source) != answer.id:
        wiring.control.put(source.places.identity_record, {"id": answer.id})


def remembered_source_ids(wiring: Wiring, source: SourceWiring) -> Iterator[tuple[str, str]]:
    """Yield each place that remembers the source's id, and the id; an empty id where the place has none."""
    yield "The state folder", recorded_source_id(wiring, source)
    for name in wiring.config.targets_of(source.plug.name):
        identity = identity_of(wiring.ledger(name))
        if identity is not None:
            yield f"The ledger of {name}", identity.source_id


def recorded_source_id(wiring: Wiring, source: SourceWiring) -> str:
    record = wiring.control.read(source.places.identity_record) or {}
    return str(record.get("id") or "")


def identity_of(ledger: Ledger) -> LedgerIdentity | None:
    return one_of(ledger.records(), LedgerIdentity)


# A target


@dataclass(frozen=True, slots=True)
class TargetIdentity:
    """A target as it is asked which metastore and directories it is of. `side` is the target's own side, or another one
    over the same metastore and directories."""

    target: TargetWiring
    side: TargetSide

    @staticmethod
    def of(target: TargetWiring, fence: Fence | None = None) -> TargetIdentity:
        """Make the identity of a target. Without `fence` it serves for looks; with one also for an operator's
        acceptance."""
        return TargetIdentity(target, target.side_behind(fence or NoFence()))

    def ask(self, source: SourceAnswer | None = None) -> Answers:
        """Ask the target's metastore, its directories and its lease what they are now. `source` is the source's answer,
        where it was asked already. Raises `Unavailable` and `Refused`."""
        return ask(self.side, self.target.leases(), source or self.target.source.answer(SOURCE_SECONDS))

    def begin(self, source: SourceAnswer | None = None) -> Answers:
        """Check, before the lease is taken, that the ledger's own target answers, and mark its directories where they
        have no mark yet. Return the answers. Raises `Refused` where another target answers, and `Unavailable`."""
        answers = self.ask(source)
        require(self.side, answers)
        mark_directories(self.side)
        return answers

    def settle(
        self, mine: Generation, previous: Generation | None, source: SourceAnswer | None = None
    ) -> LedgerIdentity:
        """Write down what answers, once the lease is taken (`engine.identity.identity.settle`), and return the identity
        that the ledger has then. `mine` is the lease's generation, `previous` the generation of another writer before
        it, None for none. Without `source` the source is asked. Raises `Refused` where other metastores or directories
        answer than the ledger remembers."""
        return settle(self.side, self.ask(source), mine, previous)


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of a target for its part of `run`, by the part's own lease."""

    target: TargetWiring

    def begin(self) -> None:
        TargetIdentity.of(self.target).begin()

    def settle(self, lease: Lease) -> str:
        """Write down what answers, and return the ledger's id. From now on each renewal of the lease tells the ledger's
        newest epoch, by which a ledger is recognized that was restored from a backup."""
        assert lease.mine is not None
        ledger = self.target.ledger()
        identity = TargetIdentity(self.target, self.target.side()).settle(lease.mine, lease.previous)
        epoch = ledger.last_epoch()
        lease.shown = identity.ledger, epoch.epoch if epoch is not None else 0
        return identity.ledger


def require_target(wiring: Wiring, name: str) -> Answers:
    """Return what answers for the target. Raises `Refused` where its ledger remembers another one, and
    `Unavailable`."""
    identity = TargetIdentity.of(wiring.target(name))
    answers = identity.ask()
    require(identity.side, answers)
    return answers


def require_for_removal(wiring: Wiring, name: str, side: TargetSide | None = None) -> LedgerIdentity:
    """Return what the target's ledger remembers, with every known spelling of its directories.

    Raises `Refused` where nothing may be removed: another metastore or directory answers than the ledger remembers, the
    ledger has lost its newest state, or another metastore uses the target's directories, too.
    """
    target = wiring.target(name)
    identity = TargetIdentity(target, side or target.side_behind(NoFence()))
    return require_removal(identity.side, identity.ask())


# Targets that are one deployment


@dataclass(frozen=True, slots=True)
class NamedLedger:
    """A ledger and its owner's name: a target's, or `TARGET/DATABASE` for dumps that are loaded into a database."""

    name: str
    ledger: Ledger


def ledgers_of_deployment(wiring: Wiring, name: str) -> list[NamedLedger]:
    """Return every other ledger of the configuration whose replicas may lie where those of the target `name` do:
    ledgers of targets that share its metastore or a directory, and ledgers of dumps, the target's own among them."""
    shared = [other for other in wiring.config.targets if other == name or share(wiring, name, other)]
    ledgers = [NamedLedger(other, wiring.ledger(other)) for other in shared if other != name]
    for other in shared:
        target = wiring.target(other)
        ledgers += [NamedLedger(f"{other}/{stream}", ledger) for stream, ledger in target.ledgers_of_loads().items()]
    return ledgers


def share(wiring: Wiring, one: str, other: str) -> bool:
    """Tell whether two targets have one metastore or a directory in common, as far as the configuration and their
    ledgers say."""
    first, second = wiring.target(one), wiring.target(other)
    if not {*first.plug.keys.metastore}.isdisjoint(second.plug.keys.metastore):
        return True
    places, other_places = ([place(root) for root in directories_of(each)] for each in (first, second))
    if any(contained(outer, inner) for outer in places for inner in other_places):
        return True
    known, other_known = identity_of(first.ledger()), identity_of(second.ledger())
    if known is None or other_known is None:
        return False
    is_same_metastore = bool(known.target_id) and known.target_id == other_known.target_id
    return is_same_metastore or not known.directories.keys().isdisjoint(other_known.directories)


def directories_of(target: TargetWiring) -> tuple[str, ...]:
    """Return the directories below which the target writes; none where all its data stay at the source."""
    return directories.roots(target.plug.policy()) if target.admission().copies_some else ()


# What operators accept


def accept_target(wiring: Wiring, name: str, target_id: str) -> bool:
    """Accept the target as it answers, and forget what its ledger, its directories and its metastore remember of
    another one. Return whether that changed anything.

    All its tables are looked at again where it is another metastore, or one that lost its newest state. `target_id` is
    the id that the operator names; raises `Refused` where another id answers.
    """
    target = wiring.target(name)
    identity = TargetIdentity.of(target, target.deputy())
    side, answers = identity.side, identity.ask()
    if target_id != answers.target_id:
        raise not_answering(f"the target {name}", target_id, answers.target_id)
    known = remembered(side)
    has_changed = False
    mark_directories(side)
    answers = replace(answers, directories=identity.ask().directories)
    for directory in answers.directories:
        if shared_directory(replace(answers, directories=(directory,))) is not None:
            directories.forget_targets(side.storage, directory, user_of(answers))
            has_changed = True
        directories.note_target(side.storage, directory, user_of(answers))
    if known is not None:
        accepted = accepted_target(known, answers)
        if accepted != known:
            side.ledger.put_records([accepted])
            has_changed = True
        if (accepted.target_id, accepted.hidden) != (known.target_id, known.hidden) or (
            accepted.generation < known.generation
        ):
            leave_request(wiring, name, Action.BOOTSTRAP, ())
    return has_changed


def accepted_target(known: LedgerIdentity, answers: Answers) -> LedgerIdentity:
    number = answers.newest.number if answers.newest is not None else 0
    return replace(
        known,
        target_id=answers.target_id,
        hidden=answers.hidden.nonce if answers.hidden is not None else "",
        generation=min(known.generation, number),
        directories=with_directories(known.directories, answers.directories),
    )


@dataclass(frozen=True, slots=True)
class AcceptedSource:
    """The result of accepting a source. `name` is its name, or several with commas between where one metastore is the
    source under several names. `has_changed` says that anything was forgotten, or drops were let go."""

    name: str
    has_changed: bool


def accept_source(wiring: Wiring, source_id: str) -> AcceptedSource:
    """Accept the source that answers with `source_id`, forget what the deployment remembers of another one, and let
    drops go that waited because the log went back.

    Raises `Refused` where no source answers with this id, and `Unavailable` where the only source does not answer.
    """
    answering = {name: source.answer(SOURCE_SECONDS) for name, source in wiring.sources.items()}
    names = [name for name, answer in answering.items() if answer.id and answer.id == source_id]
    if not names:
        answer = next(iter(answering.values()), SourceAnswer())
        if answer.id is None and len(answering) == 1:
            raise Unavailable("The source does not answer", "Its id is not known", "Say it again when it answers")
        others = ", ".join(answer.id for answer in answering.values() if answer.id)
        raise not_answering("the source", source_id, others)
    changes = [accept_one_source(wiring, wiring.sources[name], answering[name]) for name in names]
    return AcceptedSource(", ".join(names), any(changes))


def accept_one_source(wiring: Wiring, source: SourceWiring, answer: SourceAnswer) -> bool:
    assert answer.id is not None
    has_changed = recorded_source_id(wiring, source) != answer.id
    if has_changed:
        wiring.control.put(source.places.identity_record, {"id": answer.id})
    for name in wiring.config.targets_of(source.plug.name):
        has_changed = accept_source_at(wiring, name, answer) or has_changed
    return has_changed


def accept_source_at(wiring: Wiring, name: str, answer: SourceAnswer) -> bool:
    target = wiring.target(name)
    identity = TargetIdentity.of(target, target.deputy())
    side, answers = identity.side, identity.ask(answer)
    source_id, known, has_changed = answer.id or "", remembered(side), False
    event = answer.event or 0
    if known is not None and (known.source_id != source_id or known.source_event > event):
        side.ledger.put_records([replace(known, source_id=source_id, source_event=event)])
        has_changed = True
    for directory in answers.directories:
        if directory.sources.get(answers.source, source_id) != source_id:
            directories.note_source(side.storage, directory, answers.source, source_id)
            has_changed = True
    if answers.hidden is not None and answers.hidden.source_id not in ("", source_id):
        accepted = replace(answers.hidden, source_id=source_id)
        warehouse = (known.warehouse if known is not None else "") or answers.warehouse
        hidden.put(side.catalog, side.policy.warehouse, record_name(side, warehouse), accepted)
        has_changed = True
    if waits_for_acceptance(side):
        leave_request(wiring, name, Action.RELEASE_DROPS, ())
        has_changed = True
    return has_changed


def waits_for_acceptance(side: TargetSide) -> bool:
    """Tell whether drops at the target wait because the source's log went back."""
    recovery = one_of(side.ledger.records(), GapRecovery)
    return recovery is not None and recovery.went_back and recovery.drops is DropReview.HELD


def not_answering(what: str, wanted: str, answering: str) -> Refused:
    answers = f"It answers with {answering}" if answering else "What answers has no id"
    return Refused(f"{wanted} is not the id of {what}", answers, "Name the id that answers, or correct the address")


# What is shown


def recorded(wiring: Wiring) -> Mapping[str, Any]:
    """Return what the deployment remembers of its sources and targets, without a call to any of them."""
    sources = {name: recorded_source_id(wiring, source) or None for name, source in wiring.sources.items()}
    return {
        "sources": {name: {"id": known_id} for name, known_id in sources.items()},
        "targets": {name: recorded_of_target(wiring, name) for name in wiring.config.targets},
    }


def recorded_of_target(wiring: Wiring, name: str) -> Mapping[str, Any]:
    """Return the identity that the target's ledger remembers, as a JSON object: ids, generation of the lease, newest
    event of the source, marks of directories. Each value is None where the ledger can't be read or remembers no
    identity."""
    try:
        identity = identity_of(wiring.ledger(name))
    except CalqueError:
        identity = None
    if identity is None:
        return dict.fromkeys(("id", "source", "ledger", "generation", "source_event", "directories"))
    return {
        "id": identity.target_id or None,
        "source": identity.source_id or None,
        "ledger": identity.ledger,
        "generation": identity.generation,
        "source_event": identity.source_event or None,
        "directories": [
            {"mark": nonce, "spellings": list(spellings)} for nonce, spellings in identity.directories.items()
        ],
    }


def compared(wiring: Wiring) -> Mapping[str, Any]:
    """Return what the deployment remembers, and what its sources and targets answer now, with what is wrong."""
    known = recorded(wiring)
    sources: dict[str, Json] = {}
    for name, source in wiring.sources.items():
        answer = source.answer(SOURCE_SECONDS)
        problem = problem_of_source(wiring, source, answer)
        sources[name] = {**known["sources"][name], "answers": answer.id, "event": answer.event, "problem": problem}
    targets = {name: {**known["targets"][name], **answer_of(wiring, name)} for name in wiring.config.targets}
    return {"sources": sources, "targets": targets}


def problem_of_source(wiring: Wiring, source: SourceWiring, answer: SourceAnswer) -> str | None:
    try:
        require_source(wiring, source, answer)
    except Refused as refused:
        return str(refused)
    return None


def answer_of(wiring: Wiring, name: str) -> Mapping[str, Any]:
    try:
        identity = TargetIdentity.of(wiring.target(name))
        answers = identity.ask()
    except CalqueError as error:
        return {"answers": None, "answering": None, "problem": str(error)}
    answering = {
        "generation": answers.newest.number if answers.newest is not None else None,
        "directories": [
            {
                "location": one.location,
                "mark": one.nonce or None,
                "targets": list(one.targets),
                "sources": dict(one.sources),
            }
            for one in answers.directories
        ],
    }
    return {"answers": answers.target_id, "answering": answering, "problem": problem_of_target(identity.side, answers)}


def problem_of_target(side: TargetSide, answers: Answers) -> str | None:
    try:
        require(side, answers)
    except Refused as refused:
        return str(refused)
    shared = shared_directory(answers)
    return str(shared) if shared is not None else None
