"""The follower beside a target's windows that gives its databases and tables the grants of the source's."""

from __future__ import annotations

from calque.plugins.grants.engine import follow
from calque.plugins.grants.engine.follow import GrantsFollower
from calque.plugins.grants.wiring import followed_privileges
from calque.streams.background import BackgroundWork, again_and_again
from calque.streams.followers import Follower
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring


def follow_grants(_wiring: Wiring, target: TargetWiring) -> BackgroundWork | None:
    """Return the work of the target's follower; None where the target's policy does not follow grants."""
    followed = followed_privileges(target)
    if followed is None:
        return None
    follower = GrantsFollower(target.followed(), target.side(), *followed)
    return again_and_again(follower.run_once, f"grants at {target.plug.name}", follow.SECONDS, follow.SHARE)


FOLLOWER = Follower(name="grants", ended="follows no grants any more", work=follow_grants)
