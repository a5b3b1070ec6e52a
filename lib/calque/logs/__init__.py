"""The log of a process: its lines, for people or for programs, each with what it concerns."""
