"""Spark: the session, two streaming sources whose offset is the event id, and the queries over them.

`session` starts a quiet local Spark; `log_source` reads the metastore's notification log and `journal_source` our copy
of it; `query` runs a function of ours for each span. `watch` decides which offset comes next, `contiguous` what a span
must look like; `packed` carries a source's description into the processes that Spark starts.
"""
