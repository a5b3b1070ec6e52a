"""What a process writes to its log: lines for people or for programs, each with what it concerns."""
