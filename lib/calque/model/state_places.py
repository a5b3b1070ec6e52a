"""The places in a state folder at which the state of a source and of a target lies.

A place is relative: a table's to the folder of tables, a record's to the folder of control records, a lock's or a
file's to the state folder. All processes over the folder must agree on them, also processes of different versions.
"""

from __future__ import annotations

from dataclasses import dataclass

STATE_FORMAT = 1
"""The format of the control records and their places. Tables say their formats themselves."""


PLACES_OF_PINS = ("pins", "sources/*/pins")
"""Folders of pinned files, whose rights calque must not change: what lies there are other names of the source's own
files."""


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The places of one source's state, each a relative path or a name (see the module). A folder has one source of its
    own, whose places have no name in them. The places of any other source lie beside them, below its name. Example: the
    journal is in `journal`, that of `lake` in `sources/lake/journal`."""

    name: str = ""

    @property
    def journal(self) -> str:
        """The place of the table of captured events."""
        return self._below("journal")

    @property
    def history(self) -> str:
        """The place of the table of events that the journal may have removed."""
        return self._below("history")

    @property
    def evidence(self) -> str:
        """The place of the table of evidence: the listings of files that belong to events."""
        return self._below("evidence")

    @property
    def scans(self) -> str:
        """The place of the table of changes that scans found."""
        return self._below("scans")

    @property
    def commits(self) -> str:
        """The place of the table of commits of transactions."""
        return self._below("commits")

    @property
    def marks(self) -> str:
        """The place of the table of marks ("set done")."""
        return self._below("marks")

    @property
    def pins(self) -> str:
        """The place of the folder of pins: files that are kept until every target has them."""
        return self._below("pins")

    @property
    def looks(self) -> str:
        """The place of the SQLite file with the log that calque itself writes of a catalog that has none."""
        return self._below("looks.sqlite")

    @property
    def journal_record(self) -> str:
        """The name of the record of where the journal is and at which event it begins."""
        return self._below("journal")

    @property
    def notice_keys_record(self) -> str:
        """The name of the record of the message keys of tables, as of the last event that the journal has removed."""
        return self._below("notice-keys")

    @property
    def identity_record(self) -> str:
        """The name of the record of which metastore the source is."""
        return self._below("source-identity")

    @property
    def gaps_record(self) -> str:
        """The name of the record of the gaps in the log."""
        return self._below("gaps")

    @property
    def status_record(self) -> str:
        """The name of the record in which the capturing process says how it is."""
        return self._below("capturing")

    @property
    def journal_lock(self) -> str:
        """The place of the lock that a process holds while it decides where the journal begins."""
        return "locks/" + self._below("journal.lock")

    @property
    def role(self) -> str:
        """The name of the task that one process at a time has: to capture the source."""
        return f"capture {self.name}".rstrip()

    @property
    def query(self) -> str:
        """The name of the streaming query that captures, and of its checkpoint."""
        return self._below("capture")

    def _below(self, place: str) -> str:
        return f"sources/{self.name}/{place}" if self.name else place


@dataclass(frozen=True, slots=True)
class TargetPlaces:
    """The places of one target's state, as `SourcePlaces` has those of a source."""

    name: str

    @property
    def ledger(self) -> str:
        """The place of the folder of the ledger's tables."""
        return f"ledgers/{self.name}"

    def ledger_of_load(self, database: str, source: str) -> str:
        """Return the folder of the ledger of one stream of loads: dumps of `source` into the target's database
        `database`. The target takes other sources and streams, too, therefore each stream has a ledger of its own."""
        return f"loads/{self.name}/{database}/from/{source}"

    def first_ledger_of_load(self, database: str) -> str:
        """Return the folder where earlier versions had one ledger for all loads of the source's database `database`."""
        return f"loads/{self.name}/{database}"

    def external_places_record(self, database: str, source: str) -> str:
        """Return the name of the record of where partitions of external tables lie at the source, for the stream of
        loads from `source` into `database`."""
        return f"external-places/{self.name}/{database}/{source}"

    @property
    def loads(self) -> str:
        """The place of the folder of the ledgers of loads of dumps."""
        return f"loads/{self.name}"

    @property
    def status_record(self) -> str:
        """The name of the record in which the process that replicates to the target says how it is."""
        return f"running/{self.name}"

    @property
    def window_record(self) -> str:
        """The record of how many events a window of the target may have held."""
        return f"windows/{self.name}"

    @property
    def sweep_record(self) -> str:
        """The record of what the last sweep noted."""
        return f"sweep/{self.name}"

    @property
    def verify_record(self) -> str:
        """The record of the newest comparison with the source."""
        return f"verified/{self.name}"

    @property
    def sweep_lock(self) -> str:
        """The place of the lock that a process holds while it sweeps the target."""
        return f"locks/sweep.{self.name}.lock"

    @property
    def marks_record(self) -> str:
        """The record of the marks ("set done") of which the target's metastore was told."""
        return f"marks-told/{self.name}"

    @property
    def pause_record(self) -> str:
        """The record that is there while an operator has paused the whole target."""
        return f"paused/{self.name}"

    @property
    def pause_rules_record(self) -> str:
        """The record of the tables that operators have paused."""
        return f"paused-tables/{self.name}"

    @property
    def secondary_record(self) -> str:
        """The record of what statements say of the target's tables, in place of the configuration."""
        return f"secondary-tables/{self.name}"

    @property
    def secondary_lock(self) -> str:
        """The lock that a process holds while it changes `secondary_record`."""
        return f"locks/secondary-tables.{self.name}.lock"

    @property
    def requests(self) -> str:
        """The prefix of the names of records with operators' requests."""
        return f"requests/{self.name}/"

    @property
    def holds(self) -> str:
        """The prefix of the names of records by which readers hold epochs."""
        return f"hold/{self.name}/"

    @property
    def pause_lock(self) -> str:
        """The lock that a process holds while it changes `pause_rules_record`."""
        return f"locks/paused.{self.name}.lock"

    @property
    def role(self) -> str:
        """The name of the task that one process at a time has: to replicate to the target."""
        return f"target {self.name}"

    @property
    def pool(self) -> str:
        """The pool of Spark's fair scheduler in which jobs for the target run."""
        return f"target.{self.name}"


@dataclass(frozen=True, slots=True)
class ChannelPlaces:
    """The places of the state of one channel of notices."""

    name: str

    @property
    def position_record(self) -> str:
        """The record of the event up to which the channel has sent its notices."""
        return f"notices/{self.name}"

    @property
    def keys_record(self) -> str:
        """The record of the keys of tables at an event some way behind the position."""
        return f"notice-keys/channels/{self.name}"

    @property
    def status_record(self) -> str:
        """The record in which the process that sends says how it is."""
        return f"sending/{self.name}"
