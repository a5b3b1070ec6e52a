"""The file system, its clients, and the reading of Hadoop's configuration for its address."""
