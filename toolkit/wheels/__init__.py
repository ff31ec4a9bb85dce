"""Wheel files: read safely, written the same way every time, true about themselves."""
