"""What links take of a remote catalog at this moment: `LinkAdmissions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calque.core.policy.admit import Admission
from calque.model.names import TableName
from calque.streams.shared import RunForParts
from calque.wiring.source import SourceWiring

if TYPE_CHECKING:
    from calque.config import Config


@dataclass(slots=True)
class LinkAdmissions:
    """Links come and go while a remote catalog is captured: the configuration of the process is asked each time."""

    run: RunForParts
    source: SourceWiring
    _found: Sequence[Admission] = ()
    _config: Config | None = field(default=None, repr=False)
    """The one that `_found` is of."""

    def now(self) -> Sequence[Admission]:
        config = self.run.wiring.config
        if config is not self._config:
            names = config.targets_of(self.source.plug.name) if self.source.plug.is_linked else ()
            self._found, self._config = [config.targets[target].admission() for target in names], config
        return self._found

    def copies(self, name: TableName) -> bool:
        """Whether the table's files are copied for a link: those of all others are nobody's to list."""
        return any(one.copies_some and one.takes(name) and one.copies(name) for one in self.now())
