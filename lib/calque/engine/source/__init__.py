"""What is read at the source, and when it can be believed."""
