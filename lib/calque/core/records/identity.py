"""The comparison of a deployment that a ledger remembers with the one that answers: refuse to write where they differ.

Ids, marks in directories, and generations of the lease are compared. An id alone proves nothing: a clone, or a copy
that was restored, has the same id. An id is believed only together with facts that can't be older than the ledger
remembers them, such as the newest generation of the lease.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from calque.core.formats.layout import Place, join, place
from calque.errors import Refused
from calque.model.identity import Answers, HiddenIdentity, LedgerPosition, MarkedDirectory
from calque.model.lease import Generation
from calque.model.records import LedgerIdentity

KEPT_LEDGERS = 16
"""The number of ledgers that the hidden database remembers: the ones that were written last."""


def refusal(remembered: LedgerIdentity | None, answers: Answers, has_begun: bool) -> Refused | None:
    """Return the error because of which no process may write to the target or remove anything there; None where the
    deployment that answers is the one that the ledger remembers.

    `has_begun`: the ledger has epochs. A ledger that has epochs and remembers no identity was written by a version that
    knew none; it goes on, and its writer records the identity that answers now.
    """
    problems = (
        other_source(remembered, answers),
        other_target(remembered, answers),
        other_directory(remembered, answers),
        foreign_directory(answers, is_new=is_settled(remembered) or not has_begun),
        other_hidden_database(remembered, answers),
        lost_generation(remembered, answers),
    )
    return next((problem for problem in problems if problem is not None), None)


def is_settled(remembered: LedgerIdentity | None) -> bool:
    """Tell whether a writer has recorded the ledger's deployment, and no operator has accepted another one since."""
    return remembered is not None and bool(remembered.hidden)


def other_source(remembered: LedgerIdentity | None, answers: Answers) -> Refused | None:
    """Return the error where the source's id is another than the ledger, a directory or the hidden database remembers
    for its name; else None."""
    if not answers.source_id:
        return None
    for where, source_id in remembered_sources(remembered, answers):
        if source_id and source_id != answers.source_id:
            return Refused(
                f"The source {answers.source} is another metastore than before",
                f"{where} remembers {source_id}, and {answers.source_id} answers",
                "Correct the source's address; where the new one has taken the old one's place, say `calque identity "
                f"accept --source {answers.source_id}`",
            )
    return None


def remembered_sources(remembered: LedgerIdentity | None, answers: Answers) -> Iterator[tuple[str, str]]:
    if remembered is not None:
        yield f"The ledger of {answers.target}", remembered.source_id
    for directory in answers.directories:
        yield directory.location, directory.sources.get(answers.source, "")
    if answers.hidden is not None:
        yield f"The hidden database of {answers.target}", answers.hidden.source_id


def other_target(remembered: LedgerIdentity | None, answers: Answers) -> Refused | None:
    """Return the error where the target metastore's id is another than the ledger remembers; else None."""
    if remembered is None or remembered.target_id in ("", answers.target_id):
        return None
    answering = answers.target_id or "one without an id"
    return Refused(
        f"The target {answers.target} is another metastore than before",
        f"Its ledger remembers {remembered.target_id}, and {answering} answers",
        f"Correct the target's address{accept(answers)}",
    )


def other_directory(remembered: LedgerIdentity | None, answers: Answers) -> Refused | None:
    """Return the error where another directory lies at a place whose mark the ledger remembers, because a disk is not
    mounted or another one is; else None."""
    if remembered is None:
        return None
    for directory in answers.directories:
        nonce = nonce_at(remembered, directory.location)
        if nonce and directory.nonce != nonce:
            found = f"{directory.nonce} lies there" if directory.nonce else "nothing of the kind lies there"
            return Refused(
                f"{directory.location} is another directory than before",
                f"The ledger of {answers.target} remembers its mark {nonce}, and {found}",
                f"See that the right storage is mounted{accept(answers)}",
            )
    return None


def foreign_directory(answers: Answers, *, is_new: bool) -> Refused | None:
    """Return the error where another target metastore uses a directory and this one was never seen there; else None.
    Only a deployment that `is_new` gets one."""
    for directory in answers.directories:
        others = other_users(directory, answers)
        if is_new and others and user_of(answers) not in directory.targets:
            return shared(directory, answers, others)
    return None


def shared_directory(answers: Answers) -> Refused | None:
    """Return the error where several target metastores use one directory, so that none of them may remove there; else
    None."""
    for directory in answers.directories:
        if others := other_users(directory, answers):
            return shared(directory, answers, others)
    return None


def shared(directory: MarkedDirectory, answers: Answers, others: tuple[str, ...]) -> Refused:
    return Refused(
        f"Another metastore has its replicas in {directory.location}",
        f"It is {', '.join(others)}, and the target {answers.target} is {user_of(answers)}",
        f"Give each a directory of its own{accept(answers)}",
    )


def other_users(directory: MarkedDirectory, answers: Answers) -> tuple[str, ...]:
    return tuple(one for one in directory.targets if one != user_of(answers))


def user_of(answers: Answers) -> str:
    """Return the name under which a directory's mark lists the target's metastore: its id, else the random name of its
    record in the hidden database."""
    return answers.target_id or (answers.hidden.nonce if answers.hidden is not None else "")


def other_hidden_database(remembered: LedgerIdentity | None, answers: Answers) -> Refused | None:
    """Return the error where the target's hidden database lacks the record of this deployment that the ledger
    remembers; else None."""
    if remembered is None or not remembered.hidden:
        return None
    hidden = answers.hidden
    if hidden is not None and hidden.nonce == remembered.hidden:
        return None
    found = f"has {hidden.nonce}" if hidden is not None else "has none"
    return Refused(
        f"The target {answers.target} does not know this deployment",
        f"Its ledger remembers the record {remembered.hidden} in the metastore's hidden database, which {found}",
        f"See that the right metastore answers, with its newest state{accept(answers)}",
    )


def lost_generation(remembered: LedgerIdentity | None, answers: Answers) -> Refused | None:
    """Return the error where the target's newest lease is older than the ledger's own writer had it, because the
    metastore was restored; else None."""
    number = answers.newest.number if answers.newest is not None else 0
    if remembered is None or remembered.generation <= number or remembered.warehouse != answers.warehouse:
        # By another warehouse the lease has another name.
        return None
    return Refused(
        f"The target {answers.target} has lost its newest state",
        f"Its lease is at generation {number}, and its ledger remembers {remembered.generation}",
        f"See that the right metastore answers, with its newest state{accept(answers)}",
    )


def accept(answers: Answers) -> str:
    """Return the end of the advice to an operator: the command that accepts the target as it is. Empty for a target
    without an id."""
    if not answers.target_id:
        return ""
    return f"; where it is to be as it is, say `calque identity accept --target {answers.target} {answers.target_id}`"


# Spellings of one directory


def nonce_at(remembered: LedgerIdentity, location: str) -> str:
    """Return the mark of the directory that was found under that spelling; empty where none was."""
    spelling = str(place(location))
    return next((nonce for nonce, spellings in remembered.directories.items() if spelling in spellings), "")


def aliases(remembered: LedgerIdentity | None, location: str) -> tuple[str, ...]:
    """Return every spelling of a location that the ledger knows, its own first: a link, a bind mount, or `s3` for `s3a`
    lead to one directory under several names."""
    own = place(location)
    spellings = [str(own)]
    for names in remembered.directories.values() if remembered is not None else ():
        outer = next((one for one in map(place, names) if one.contains(own)), None)
        if outer is not None:
            below = own.path.removeprefix("/" if outer.path == "/" else outer.path).strip("/")
            spellings += [str(place(join(name, below))) for name in names]
    return tuple(dict.fromkeys(spellings))


def contained(outer: Place, inner: Place) -> bool:
    return outer.contains(inner) or inner.contains(outer)


# What is written down


def has_lost_state(
    remembered: LedgerIdentity, previous: Generation | None, hidden: HiddenIdentity | None, epoch: int
) -> bool:
    """Tell whether the ledger is older than the target saw it, because its state folder was restored. `previous` is the
    generation of the lease before the one that was just taken, `epoch` the ledger's newest.

    The ledger remembers generation 7 and ends at epoch 120. The target saw epoch 125 of it, or a generation 9 of
    another writer: the ledger is a restored one, and has lost epochs 121..125 or all that the other writer did.
    """
    seen = seen_position(remembered.ledger, previous, hidden)
    if previous is not None and not previous.ledger and previous.number > remembered.generation:
        # A version that says nothing of ledgers wrote in between.
        return True
    is_unknown_reign = seen.generation > remembered.generation and seen.writer != remembered.writer
    return is_unknown_reign or seen.epoch > epoch


def seen_position(ledger: str, previous: Generation | None, hidden: HiddenIdentity | None) -> LedgerPosition:
    """Return the newest position of the ledger that the target has seen, in the hidden database or in the lease."""
    seen = hidden.ledgers.get(ledger, LedgerPosition()) if hidden is not None else LedgerPosition()
    if previous is not None and previous.ledger == ledger and previous.number >= seen.generation:
        return LedgerPosition(previous.number, max(previous.epoch, seen.epoch), previous.writer.id)
    return seen


def with_ledgers(
    hidden: HiddenIdentity, previous: Generation | None, ledger: str, position: LedgerPosition
) -> HiddenIdentity:
    """Return the hidden record with the position of this ledger, and with the position that the generation before gave
    of its own. It keeps the `KEPT_LEDGERS` newest."""
    ledgers = dict(hidden.ledgers)
    if previous is not None and previous.ledger:
        ledgers[previous.ledger] = seen_position(previous.ledger, previous, hidden)
    ledgers[ledger] = position
    newest = sorted(ledgers.items(), key=lambda item: item[1].generation)[-KEPT_LEDGERS:]
    return replace(hidden, ledgers=dict(newest))


def with_directories(
    known: Mapping[str, tuple[str, ...]], directories: tuple[MarkedDirectory, ...]
) -> Mapping[str, tuple[str, ...]]:
    """Return the known spellings of marked directories, by mark, with the spellings under which directories were found
    now. A spelling belongs to one directory: one that leads to another directory now is taken from the old."""
    found = {str(place(one.location)): one.nonce for one in directories if one.nonce}
    spellings = {nonce: [name for name in names if found.get(name, nonce) == nonce] for nonce, names in known.items()}
    for name, nonce in found.items():
        names = spellings.setdefault(nonce, [])
        if name not in names:
            names.append(name)
    return {nonce: tuple(names) for nonce, names in spellings.items() if names}
