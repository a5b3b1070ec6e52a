"""Implementations of the ports: a module or a folder for each piece of the world. None imports another."""
