"""A dump as a source, and the target that it is loaded into."""
