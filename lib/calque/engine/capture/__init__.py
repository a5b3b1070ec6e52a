"""Capture: the way of events from the metastore's log into the journal, which never waits for a target."""
