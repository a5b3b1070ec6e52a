"""The two sides of a target, source and target, as every step of the engine gets them, and reads of them in bounded
pieces."""
