"""A target's tables exactly as of an epoch, for programs: as Arrow, as Spark's frames, as a stream of changes."""
