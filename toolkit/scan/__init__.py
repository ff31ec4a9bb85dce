"""Read the code that Inductor has generated in any run: what it calls and compiles, and the alias hazard in it.

Files are parsed and never executed. `find_files` looks through folders, `read_files` tells what each file holds, and
`judge` holds all of it against requirements.
"""

from __future__ import annotations

from toolkit.scan.judging import Judgement, Outcome, Sum, add_up, judge, overall, require_patterns
from toolkit.scan.values import FileReport, Hazard
from toolkit.scan.walking import Search, find_files
from toolkit.scan.workers import read_files

__all__ = [
    "FileReport",
    "Hazard",
    "Judgement",
    "Outcome",
    "Search",
    "Sum",
    "add_up",
    "find_files",
    "judge",
    "overall",
    "read_files",
    "require_patterns",
]
