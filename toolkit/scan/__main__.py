"""A worker of the scan: `python -m toolkit.scan LIST REPORTS`, started by `toolkit.scan.workers`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.scan.workers import work

if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
