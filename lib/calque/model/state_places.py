"""Where in a state folder the state of a source and of a target lies.

A place is relative: a table to the folder of tables, a record to the folder of control records, a lock or a file to the
state folder. Every process over the folder must agree on them, of whatever version it is.
"""

from __future__ import annotations

from dataclasses import dataclass

STATE_FORMAT = 1
"""Of the control records and their places; tables say their formats themselves."""


PLACES_OF_PINS = ("pins", "sources/*/pins")
"""What lies there are other names of the source's own files: their rights are not calque's to change."""


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The state of one source. A folder has one source of its own, whose places have no name in them. The places of any
    other source lie beside them, below its name. Example: the journal is in `journal`, that of `lake` in
    `sources/lake/journal`."""

    name: str = ""

    @property
    def journal(self) -> str:
        """The table of captured events."""
        return self._below("journal")

    @property
    def history(self) -> str:
        """The table of events that the journal may have forgotten."""
        return self._below("history")

    @property
    def evidence(self) -> str:
        """The table of the files that events speak of."""
        return self._below("evidence")

    @property
    def scans(self) -> str:
        """The table of what was scanned."""
        return self._below("scans")

    @property
    def marks(self) -> str:
        """The table of marks ("set done")."""
        return self._below("marks")

    @property
    def pins(self) -> str:
        """The folder of files that are kept."""
        return self._below("pins")

    @property
    def looks(self) -> str:
        """The file with the log of our own, of a catalog that has none."""
        return self._below("looks.sqlite")

    @property
    def journal_record(self) -> str:
        """Where the journal is and where it begins."""
        return self._below("journal")

    @property
    def notice_keys_record(self) -> str:
        """The keys of tables, as far as the journal has let go of their events."""
        return self._below("notice-keys")

    @property
    def identity_record(self) -> str:
        """Which metastore the source is."""
        return self._below("source-identity")

    @property
    def gaps_record(self) -> str:
        """The gaps of the log."""
        return self._below("gaps")

    @property
    def status_record(self) -> str:
        """What the process that captures says of itself."""
        return self._below("capturing")

    @property
    def journal_lock(self) -> str:
        """Held by who decides where the journal begins."""
        return "locks/" + self._below("journal.lock")

    @property
    def role(self) -> str:
        """What one process at a time does: it captures."""
        return f"capture {self.name}".rstrip()

    @property
    def query(self) -> str:
        """The name of the query that captures, and of its checkpoint."""
        return self._below("capture")

    def _below(self, place: str) -> str:
        return f"sources/{self.name}/{place}" if self.name else place


@dataclass(frozen=True, slots=True)
class TargetPlaces:
    """The state of one target."""

    name: str

    @property
    def ledger(self) -> str:
        """The folder of the ledger's tables."""
        return f"ledgers/{self.name}"

    def ledger_of_load(self, database: str, source: str) -> str:
        """The folder of the ledger of one stream of loads: dumps of that source into a database of that name at the
        target, which follows others, too."""
        return f"loads/{self.name}/{database}/from/{source}"

    def first_ledger_of_load(self, database: str) -> str:
        """The folder where earlier versions had one ledger for all loads of a source's database."""
        return f"loads/{self.name}/{database}"

    def external_places_record(self, database: str, source: str) -> str:
        """Where partitions of external tables lie at the source of that stream of loads."""
        return f"external-places/{self.name}/{database}/{source}"

    @property
    def loads(self) -> str:
        """The folder of the ledgers of databases' dumps."""
        return f"loads/{self.name}"

    @property
    def status_record(self) -> str:
        """What the process that replicates to the target says of itself."""
        return f"running/{self.name}"

    @property
    def window_record(self) -> str:
        """How many events a window may have held."""
        return f"windows/{self.name}"

    @property
    def sweep_record(self) -> str:
        """What the last sweep noted."""
        return f"sweep/{self.name}"

    @property
    def sweep_lock(self) -> str:
        """Held by who sweeps the target."""
        return f"locks/sweep.{self.name}.lock"

    @property
    def marks_record(self) -> str:
        """Of which marks the target's metastore was told."""
        return f"marks-told/{self.name}"

    @property
    def pause_record(self) -> str:
        """There while an operator holds back the whole target."""
        return f"paused/{self.name}"

    @property
    def pause_rules_record(self) -> str:
        """Which tables operators hold back."""
        return f"paused-tables/{self.name}"

    @property
    def secondary_record(self) -> str:
        """What statements say of the target's tables, in place of the configuration."""
        return f"secondary-tables/{self.name}"

    @property
    def secondary_lock(self) -> str:
        """Held by who changes that."""
        return f"locks/secondary-tables.{self.name}.lock"

    @property
    def requests(self) -> str:
        """What the records of operators' requests begin with."""
        return f"requests/{self.name}/"

    @property
    def holds(self) -> str:
        """What the records of readers that hold epochs begin with."""
        return f"hold/{self.name}/"

    @property
    def pause_lock(self) -> str:
        """Held by who changes the rules of held back tables."""
        return f"locks/paused.{self.name}.lock"

    @property
    def role(self) -> str:
        """What one process at a time does: it replicates to the target."""
        return f"target {self.name}"

    @property
    def pool(self) -> str:
        """The pool of Spark's fair scheduler in which jobs for the target run."""
        return f"target.{self.name}"


@dataclass(frozen=True, slots=True)
class ChannelPlaces:
    """The state of one channel of notices."""

    name: str

    @property
    def position_record(self) -> str:
        """How far it has sent."""
        return f"notices/{self.name}"

    @property
    def keys_record(self) -> str:
        """The keys of tables, some way behind the position."""
        return f"notice-keys/channels/{self.name}"

    @property
    def status_record(self) -> str:
        """What the process that sends says of itself."""
        return f"sending/{self.name}"
