"""That what `make bench` measures for the scan is what it says: large files, each another, in the known form."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from bench.scan import SIZE, make_generated_files, run_scan
from toolkit.scan import outline
from toolkit.scan.reading import read_file


def test_the_files_are_large_and_differ_and_are_of_the_form_of_generated_code(tmp_path: Path) -> None:
    make_generated_files(tmp_path, files=12)
    files = sorted(tmp_path.rglob("output_code.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]

    assert len(set(texts)) == 12
    assert all(SIZE <= len(text) < 1.1 * SIZE for text in texts)
    assert all(len(outline._by_lines(text).lines) > 2000 for text in texts)
    ast.parse(texts[0])


def test_one_in_ten_has_buffers_to_be_followed(tmp_path: Path) -> None:
    make_generated_files(tmp_path, files=12)
    reports = [read_file(str(file), is_named=True) for file in sorted(tmp_path.rglob("output_code.py"))]

    assert all(report.kernels["dvm"] >= 8 and report.custom for report in reports)
    assert 1 <= sum(bool(report.hazards) for report in reports) <= 2


def test_the_memory_of_all_processes_counts(tmp_path: Path) -> None:
    inner = "import time; x = b'1' * 50_000_000; time.sleep(1)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    run = run_scan([sys.executable, "-c", outer], dict(os.environ))

    assert run.seconds > 1
    assert run.peak_mb > 60
