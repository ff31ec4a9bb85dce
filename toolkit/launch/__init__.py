"""A training command, read: its variables, its options in any spelling, and the run script that it starts."""
