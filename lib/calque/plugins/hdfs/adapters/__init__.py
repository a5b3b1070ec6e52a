"""The file system, its clients, and how a Hadoop configuration says where it is."""
