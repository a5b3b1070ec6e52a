"""The live objects of grants: the privileges of a source, and of a target that follows them."""

from __future__ import annotations

from calque.config.plugs import CallTerms
from calque.engine.lease.fence import Fence
from calque.engine.sides.port_wrappers import StopInterceptor
from calque.plugins.grants.adapters import HivePrivileges
from calque.plugins.grants.engine.compare import ComparedGrants
from calque.plugins.grants.ports import ForwardingPrivileges, Privileges
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring


def privileges_of(source: SourceWiring) -> Privileges | None:
    """Return the privileges of the source's metastore; None where the source is no metastore."""
    return HivePrivileges(source.client()) if source.plug.catalog is None else None


def privileges_at(target: TargetWiring, fence: Fence) -> Privileges:
    """Return the privileges of the target's metastore. Changes are made only while the fence permits them."""
    privileges = HivePrivileges(target.client(CallTerms(permit=fence.permit)))
    return target.runtime.guard.wrapped("privileges", privileges, ForwardingPrivileges)


def followed_privileges(target: TargetWiring) -> tuple[Privileges, Privileges] | None:
    """Return the privileges of the source and those of the target. The latter make no call any more once the target is
    to end. Return None where the policy does not follow grants, or where the source keeps none."""
    of_source = privileges_of(target.source)
    if target.plug.keys.grants != "follow" or of_source is None:
        return None
    at_target = privileges_at(target, target.lease())
    return of_source, ForwardingPrivileges(at_target, StopInterceptor(target.side().stopping))


def compared_grants(target: TargetWiring) -> ComparedGrants | None:
    """Return the comparison of grants that `verify` makes; None where the target does not follow grants."""
    followed = followed_privileges(target)
    return None if followed is None else ComparedGrants(*followed)
