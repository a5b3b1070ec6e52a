"""Looks at the world that a configuration names before a run, and says how to mend it."""
