"""The live objects of clusters, with their engines."""
