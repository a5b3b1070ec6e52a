"""The tables that links take of a remote catalog at this moment: `LinkAdmissions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calque.core.policy.admit import Admission
from calque.model.names import TableName
from calque.streams.shared import ProcessContext
from calque.wiring.source import SourceWiring

if TYPE_CHECKING:
    from calque.config import Config


@dataclass(slots=True)
class LinkAdmissions:
    """The admissions of the links to one remote catalog. Links come and go while the catalog is captured, so each call
    asks the process's current configuration."""

    run: ProcessContext
    source: SourceWiring
    _found: Sequence[Admission] = ()
    _config: Config | None = field(default=None, repr=False)
    """The configuration that `_found` was made from."""

    def now(self) -> Sequence[Admission]:
        config = self.run.wiring.config
        if config is not self._config:
            names = config.targets_of(self.source.plug.name) if self.source.plug.is_linked else ()
            self._found, self._config = [config.targets[target].admission() for target in names], config
        return self._found

    def copies(self, name: TableName) -> bool:
        """Tell whether a link copies the files of the table. The files of all other tables of a remote catalog are not
        listed."""
        return any(one.copies_some and one.takes(name) and one.copies(name) for one in self.now())
