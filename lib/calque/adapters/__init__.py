"""Plugs: one module or folder for each piece of the world. None imports another."""
