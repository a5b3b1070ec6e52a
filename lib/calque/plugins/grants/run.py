"""Beside a target's windows: its databases and tables get the grants of the source's."""

from __future__ import annotations

from calque.plugins.grants.engine import follow
from calque.plugins.grants.engine.follow import GrantsFollower
from calque.plugins.grants.wiring import followed_privileges
from calque.streams.background import again_and_again
from calque.streams.followers import Follower, Work
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def follow_grants(_wiring: Wiring, target: TargetWiring) -> Work | None:
    """Where the policy wants it."""
    followed = followed_privileges(target)
    if followed is None:
        return None
    follower = GrantsFollower(target.followed(), target.side(), *followed)
    return again_and_again(follower.once, f"grants at {target.plug.name}", follow.SECONDS, follow.SHARE)


FOLLOWER = Follower(name="grants", ended="follows no grants any more", work=follow_grants)
