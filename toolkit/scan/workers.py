"""Reading many files on all cores: processes of our own, each with a share of the files."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec

from toolkit.errors import CommandError
from toolkit.process import compose_env, describe_code, last_lines, run, stop_running
from toolkit.scan.reading import read_file
from toolkit.scan.values import FileReport
from toolkit.scan.walking import Candidate

FEW = 100
"""How many files are not worth a process."""

MOST_WORKERS = 8

_DECODER = msgspec.json.Decoder(FileReport)


def read_files(candidates: Sequence[Candidate], environ: Mapping[str, str]) -> Iterator[FileReport]:
    """Yield a report on each file, in their order; a file that a worker dies of is told as one that is unreadable."""
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS, -(-len(candidates) // FEW))
    if workers < 2:
        yield from (read_file(one.path, is_named=one.is_named) for one in candidates)
        return
    shares = [candidates[start::workers] for start in range(workers)]
    stopped = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        try:
            parts = list(pool.map(lambda share: _read_share(share, environ, stopped), shares))
        except BaseException:
            stopped.set()
            stop_running()
            raise
    for index in range(len(candidates)):
        yield parts[index % workers][index // workers]


def work(list_file: Path, out_file: Path) -> None:
    """Do a worker's part: read the files that a list names, and write a report on each as a line."""
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    encoder = msgspec.json.Encoder()
    with out_file.open("wb", buffering=0) as stream:
        for one in _read_list(list_file.read_bytes()):
            report = read_file(one.path, is_named=one.is_named)
            stream.write(encoder.encode(replace(report, path="")) + b"\n")


def _end_with(parent: int) -> None:
    """End this process soon after its parent is gone, whatever that died of: nobody waits for the reports then."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _read_share(share: Sequence[Candidate], environ: Mapping[str, str], stopped: threading.Event) -> list[FileReport]:
    """Have a worker read files, and another one go on where it died, unless it was stopped."""
    reports: list[FileReport] = []
    with tempfile.TemporaryDirectory(prefix="toolkit-scan-") as folder:
        while len(reports) < len(share) and not stopped.is_set():
            left = share[len(reports) :]
            made, death = _run_worker(left, Path(folder), environ)
            reports += (replace(report, path=one.path) for report, one in zip(made, left, strict=False))
            if death:
                culprit = share[len(reports)]
                why = f"the process that read it ended with {death}"
                reports.append(FileReport(path=culprit.path, state="unreadable", why=why))
    return reports


def _run_worker(share: Sequence[Candidate], folder: Path, environ: Mapping[str, str]) -> tuple[list[FileReport], str]:
    """Run a worker; return its reports, and what it died of if it was a signal. Any other failure is a bug of ours."""
    list_file, out_file = folder / "list", folder / "reports"
    list_file.write_bytes(_write_list(share))
    out_file.write_bytes(b"")
    env = compose_env(environ, {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"})
    words = [sys.executable, "-m", "toolkit.scan", str(list_file), str(out_file)]
    done = run(words, cwd=folder, env=env, check=False)
    if done.returncode > 0:
        raise CommandError(
            f"a worker of the scan ended with {describe_code(done.returncode)}",
            argv=words, returncode=done.returncode, details=last_lines(done.stdout, done.stderr),
        )  # fmt: skip
    lines = [line for line in out_file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return [_DECODER.decode(line) for line in lines], describe_code(done.returncode) if done.returncode else ""


def _write_list(share: Iterable[Candidate]) -> bytes:
    return b"".join(b"%d%s\0" % (one.is_named, os.fsencode(os.path.abspath(one.path))) for one in share)


def _read_list(raw: bytes) -> Iterator[Candidate]:
    for entry in raw.split(b"\0")[:-1]:
        yield Candidate(path=os.fsdecode(entry[1:]), is_named=entry.startswith(b"1"))
