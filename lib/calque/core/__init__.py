"""Decisions: pure functions of the model. No I/O, no clock, no randomness, no logging.

Rooms, each of which may know those below: `plan`; `states`; `images`; `events`, `small_files`, `records`; `formats`,
`policy`. The other modules are of products that stand on the core: dumps, notices, links, Delta replicas.
"""
