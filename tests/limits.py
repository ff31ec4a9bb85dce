"""Refusals of the file system, made for a while: a size limit, and an ordinary user's rights."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator

NOBODY = 65534


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes: writing more fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Take root's right to write everywhere away from this process; others do not have it anyway."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
