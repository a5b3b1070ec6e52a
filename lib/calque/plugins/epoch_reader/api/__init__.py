"""The functions by which programs read a target's tables exactly as of an epoch."""
