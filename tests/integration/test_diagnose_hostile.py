"""`toolkit diagnose` on what would reach the terminal, or what is not there at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import toolkit

CHECKOUT = Path(toolkit.__file__).parents[1]
ENVIRON = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}


def test_no_control_character_reaches_the_terminal(tmp_path: Path) -> None:
    name = os.fsdecode(b"b\xff\x1b[31m\n.log")
    (tmp_path / name).write_bytes(b"RuntimeError: evil \x08\x07 \xc2\x9b31m \xe2\x80\xae\n")

    done = subprocess.run(
        [sys.executable, "-m", "toolkit", "diagnose", name], cwd=tmp_path, env=ENVIRON, capture_output=True, timeout=60,
        check=True,
    )  # fmt: skip

    text = done.stdout.decode()
    assert text.replace("\n", "").isprintable()
    assert "  at: b\\udcff\\x1b[31m\\n.log:1\n      RuntimeError: evil \\x08\\x07 \\x9b31m \\u202e\n" in text


def test_a_closed_standard_input_is_empty(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m toolkit diagnose - <&-', sys.executable], cwd=tmp_path, env=ENVIRON,
        capture_output=True, timeout=60, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (24, "")
    assert done.stderr == (
        "error: no line can be read of '-'\n  -: empty\nhint: name the log that the run wrote: a text file, "
        "a folder with those of all ranks, or - for a pipe\n"
    )
