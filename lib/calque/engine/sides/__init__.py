"""What every step of the engine is handed: both sides of a target, and how they are read in bounded pieces."""
