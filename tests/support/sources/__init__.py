"""What writes at a source."""
