"""Keeping a series alive: how its patches stand to any base, and how they are changed without losing a byte."""
