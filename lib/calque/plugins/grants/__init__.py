"""Privileges that a metastore keeps itself: a target gets the grants of its source."""
