"""The check of the world that a configuration names, before a run: what is wrong there, and how to mend it."""
