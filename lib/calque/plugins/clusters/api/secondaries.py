"""The replication of a table, or of partitions of it, to a cluster: begun and ended by a durable change of a target's
policy."""

from __future__ import annotations

from dataclasses import dataclass

from calque.config.conflicts import conflicts
from calque.config.plugs import Target
from calque.control.processes import answers, ask_reload, processes
from calque.core.images.image import SOURCE
from calque.core.policy.admit import Admission
from calque.core.policy.predicate_parser import parse_predicate
from calque.core.policy.predicates import misfit, not_true, predicate_text
from calque.errors import Refused, Unavailable, nearest
from calque.model.hive import Table, is_partitioned
from calque.model.names import TableName
from calque.model.predicate import AllOf, AnyOf, IsNull, Not, Predicate
from calque.model.state_places import TargetPlaces
from calque.plugins.clusters.api.matching import Matching, Stream
from calque.plugins.clusters.api.presence import Presence
from calque.plugins.clusters.config.secondary_tables import SecondaryTable, amended, amended_target
from calque.plugins.clusters.wiring.secondary_tables import put_secondary_tables, secondary_tables
from calque.wiring.wiring import Wiring

PATIENCE_SECONDS = 120.0


@dataclass(slots=True)
class Secondaries:
    """The changes of which tables are replicated to which cluster. A method returns when its change is recorded and a
    `run` over the deployment, if there is one, has taken it over. It raises `Refused` for a table that can't be
    replicated so, and `Unavailable`."""

    wiring: Wiring
    matching: Matching

    def add(self, name: TableName, cluster: str, predicate: str | None) -> None:
        """Have the table replicated to `cluster`. With `predicate`, only the partitions that it is true of are added to
        those that are replicated already."""
        stream, original = self.stream(name, cluster)
        added = parsed(predicate, name, original)
        admission = stream.target.admission()
        if not admission.subset.has_table(original):
            why = f"where = {stream.target.plug.keys.where!r} of it leaves the table out"
            raise Refused(f"{self.named(stream)} can't take {name}", why, "Change its where, and reload")
        before = admission.subset.predicate(name)
        is_taken = admission.takes(name)
        if is_taken and before is None:
            return
        if added is None:
            self.change(stream, SecondaryTable(str(name), True, self.everything(stream.target.plug, name, original)))
        else:
            together = AnyOf((before, added)) if is_taken and before is not None else added
            self.change(stream, SecondaryTable(str(name), True, predicate_text(together)))

    def drop(self, name: TableName, cluster: str, predicate: str | None) -> None:
        """End the replication of the table to `cluster`. With `predicate`, only the partitions that it is true of
        leave; the others stay."""
        stream, original = self.stream(name, cluster)
        dropped = parsed(predicate, name, original)
        admission = stream.target.admission()
        if not admission.takes(name):
            raise Refused(f"{name} is not replicated to {cluster}", f"{self.named(stream)} does not take it", "")
        if dropped is None:
            self.change(stream, SecondaryTable(str(name), False))
            return
        before, others = admission.subset.predicate(name), not_true(dropped)
        rest = AllOf((before, others)) if before is not None else others
        self.change(stream, SecondaryTable(str(name), True, predicate_text(rest)))

    def stream(self, name: TableName, cluster: str) -> tuple[Stream, Table]:
        """Return the stream from the table's primary to `cluster`, and the table's original. Raises `Refused` where
        there is no such stream, or more than one."""
        presence = Presence(self.wiring, self.matching)
        headers, away = presence.headers(name)
        if cluster not in headers and away:
            raise next(iter(away.values()))
        # A table that stands at the cluster already, because a person copied it, is no original: `adopt` takes it over.
        originals = [one for one, table in headers.items() if SOURCE not in (table.parameters or {}) and one != cluster]
        if not originals:
            if cluster in headers and SOURCE not in (headers[cluster].parameters or {}):
                raise Refused(f"{cluster} is the primary of {name}", "Its original is there", "Name another cluster")
            raise Refused(f"There is no table {name}", nearest(str(name), map(str, headers)), "Name one")
        if len(originals) > 1:
            raise Refused(f"{name} has originals at {' and '.join(originals)}", "One is to be replicated", "Drop one")
        between = [
            stream
            for stream in self.matching.streams()
            if (stream.source_cluster, stream.target_cluster) == (originals[0], cluster)
        ]
        streams = [one for one in between if one.target.admission().takes(name)] or between
        if not streams:
            why = f"No target of a deployment at {cluster} follows a source at {originals[0]}"
            raise Refused(f"{name} can't be replicated to {cluster}", why, "Add a target to a configuration")
        if len(streams) > 1:
            names = ", ".join(map(self.named, streams))
            raise Refused(
                f"It is not said which target takes {name} to {cluster}", f"There are {names}", "Change a file"
            )
        return streams[0], headers[originals[0]]

    def everything(self, target: Target, name: TableName, original: Table) -> str:
        """Return the predicate that takes all partitions: an empty text, which leaves the choice to the file, unless a
        pattern of the file leaves some out."""
        alone = amended_target(target, [SecondaryTable(str(name), True)])
        if alone.admission().subset.predicate(name) is None:
            return ""
        key = (original.partition_keys or ())[0].name.lower() if original.partition_keys else ""
        return predicate_text(AnyOf((IsNull(key), Not(IsNull(key))))) if key else ""

    def change(self, stream: Stream, table: SecondaryTable) -> None:
        deployment, target = stream.deployment, stream.target.plug.name
        control, places = deployment.control, TargetPlaces(target)
        with deployment.folder.lock(places.secondary_lock, places.secondary_record):
            before = secondary_tables(control, target)
            changed = amended(deployment.config, {target: [*before, table]})
            self.require_effect(stream, changed.targets[target].admission(), table)
            for _, refused in conflicts(changed):
                raise refused
            put_secondary_tables(control, target, [*before, table])
        try:
            self.take_over(deployment)
        except Refused:
            put_secondary_tables(control, target, before)
            raise

    def require_effect(self, stream: Stream, admission: Admission, table: SecondaryTable) -> None:
        database, _, name = table.table.partition(".")
        if table.is_taken and not admission.takes(TableName(database, name)):
            why = f"exclude of it leaves the table out: {', '.join(stream.target.plug.keys.exclude)}"
            raise Refused(f"{self.named(stream)} can't take {table.table}", why, "Change its exclude, and reload")

    def take_over(self, deployment: Wiring) -> None:
        """Ask the processes that run the deployment to read the change, and wait for their answers, at most
        `PATIENCE_SECONDS`. Raises the error of a process that refuses, and `Unavailable`; returns at once where no
        process runs."""
        if not processes(deployment.control):
            return
        for process in answers(deployment.control, ask_reload(deployment.control), PATIENCE_SECONDS):
            if process.answer.problem:
                kind = Refused if process.answer.code == Refused.exit_code else Unavailable
                raise kind(process.answer.problem)

    def named(self, stream: Stream) -> str:
        return f"The target {stream.target.plug.name} of {stream.deployment.config.path.name}"


def parsed(text: str | None, name: TableName, original: Table) -> Predicate | None:
    """Return the predicate over the table's partition keys; None for no text. Raises `Refused` where the text is no
    predicate or does not fit the table."""
    if text is None:
        return None
    predicate = parse_predicate(text)
    keys = original.partition_keys if is_partitioned(original) else None
    if not keys:
        raise Refused(f"{name} has no partitions", "A predicate chooses among partitions", "Leave WHERE out")
    if why := misfit(predicate, {column.name.lower(): column.type for column in keys}):
        raise Refused(f"The predicate does not fit {name}", why, "Correct it")
    return predicate
