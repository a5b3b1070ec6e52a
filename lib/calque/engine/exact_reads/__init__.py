"""The way by which tables become live: they are compared, read exactly, built, and joined to the stream."""
