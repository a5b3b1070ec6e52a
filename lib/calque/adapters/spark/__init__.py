"""Spark: the session, and a streaming source whose offset is the event id and whose rows are the events.

`session` starts a quiet local Spark; `event_source` reads the metastore's notification log (`log_stream`) or calque's
copy of it (`journal_stream`); `query` gives the rows of each batch to a function of calque's. `news` waits for events,
`contiguous` checks that they follow one another; `packed` carries a source's description into the processes that Spark
starts.
"""
