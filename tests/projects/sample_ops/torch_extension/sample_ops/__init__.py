"""Operators for tensors, described by their shapes."""
