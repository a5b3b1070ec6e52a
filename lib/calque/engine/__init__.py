"""Hands: effects in order, through ports. No Spark, no Thrift.

`capture` copies the log and gathers evidence; `replica` takes one target through windows; `observe`, `apply` and `read`
are what it does to tables; `verify` compares; `sweep` clears away; `failpoints` name every effect.
"""
