"""Decisions: pure functions of the model. No I/O, no clock, no randomness, no logging.

Rooms, each of which may know those below: `plan`; `states`; `images`; `events`, `small_files`, `records`; `formats`,
`policy`. Beside them stands `defects`: the rule for unexpected exceptions in the work on one object.
"""
