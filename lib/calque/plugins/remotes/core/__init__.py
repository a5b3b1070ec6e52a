"""What links are, may be, and show; how two looks at a catalog differ."""
