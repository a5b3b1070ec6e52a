"""From the metastore's log into the journal, without waiting for any target."""
