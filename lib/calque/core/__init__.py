"""Decisions: pure functions of the model. No I/O, no clock, no randomness, no logging.

`decode` messages → objects; `keys` message → key columns; `rows` journal rows as Arrow; `admit` policy → names and
images; `fold` events → chain of states; `plan` chain → hops; `compare` two images; `layout` where data goes.
"""
