"""A target that is taken up under another policy than its replica was made under."""
