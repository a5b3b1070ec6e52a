"""The shortest chain of hops between states that the source had: `problem`, its `edges`, the `search` for the cheapest
way, and the `operations` that a hop is made of.
"""
