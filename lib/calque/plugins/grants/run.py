"""Beside a target's windows: its databases and tables get the grants of the source's."""

from __future__ import annotations

from calque.plugins.grants.engine import follow
from calque.plugins.grants.engine.follow import GrantsFollower
from calque.streams.background import again_and_again
from calque.streams.followers import Follower, Work
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def follow_grants(_wiring: Wiring, target: TargetWiring) -> Work | None:
    """Where the policy wants it."""
    source, side = target.followed(), target.side()
    if source.privileges is None or side.privileges is None:
        return None
    follower = GrantsFollower(source, side, source.privileges, side.privileges)
    return again_and_again(follower.once, f"grants at {target.plug.name}", follow.SECONDS, follow.SHARE)


FOLLOWER = Follower(name="grants", ended="follows no grants any more", work=follow_grants)
