"""Live objects of grants: the privileges of a source and of a target that follows them."""

from __future__ import annotations

from calque.config.plugs import CallTerms
from calque.engine.lease.fence import Fence
from calque.engine.sides.port_wrappers import Ending
from calque.plugins.grants.adapters import HivePrivileges
from calque.plugins.grants.engine.compare import ComparedGrants
from calque.plugins.grants.ports import ForwardingPrivileges, Privileges
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring


def privileges_of(source: SourceWiring) -> Privileges | None:
    """None where the source is no metastore."""
    return HivePrivileges(source.client()) if source.plug.catalog is None else None


def privileges_at(target: TargetWiring, fence: Fence) -> Privileges:
    """Of the target's metastore, changed as the fence permits."""
    privileges = HivePrivileges(target.client(CallTerms(permit=fence.permit)))
    return target.runtime.guard.wrapped("privileges", privileges, ForwardingPrivileges)


def followed_privileges(target: TargetWiring) -> tuple[Privileges, Privileges] | None:
    """Those of the source, and the target's own, which make no call when the target is to end; None where the policy
    does not follow them."""
    of_source = privileges_of(target.source)
    if target.plug.keys.grants != "follow" or of_source is None:
        return None
    at_target = privileges_at(target, target.lease())
    return of_source, ForwardingPrivileges(at_target, Ending(target.side().stopping))


def compared_grants(target: TargetWiring) -> ComparedGrants | None:
    """What `verify` compares."""
    followed = followed_privileges(target)
    return None if followed is None else ComparedGrants(*followed)
