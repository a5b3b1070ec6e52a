"""The engine: effects in their order, through ports only, without Spark and Thrift.

`capture` brings the log into the journal; `replica` takes one target from window to window, with `window` for what is
live and `exact_reads` for what is not; `apply` makes the calls of a hop; `verify` compares; `sweep` clears away;
`failpoints` names every effect. `docs/architecture.md` follows an event, a window and an exact read through the rooms.
"""
