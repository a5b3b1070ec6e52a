"""A whole engine in memory, and histories to play in it."""
