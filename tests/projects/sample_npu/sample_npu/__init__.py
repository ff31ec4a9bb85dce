"""Whole numbers within a bound, computed by a native part."""

from sample_npu.version import __version__ as __version__
