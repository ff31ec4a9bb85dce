"""The commands that look before, and after, a training run fails: diagnose, doctor, preflight, lint.

Each module parses, makes one call into its room, and shows what came of it.
"""
