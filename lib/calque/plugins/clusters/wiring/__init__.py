"""Live clusters, with their engines."""
