"""Makes tables live that are not: they are compared, read exactly, built, and joined to the stream."""
