"""Many files on all cores: the same reports in the same order, and a worker that dies costs one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.generated_code import hazardous, make_debug_tree, plain
from toolkit.errors import CommandError
from toolkit.scan import workers
from toolkit.scan.reading import read_file
from toolkit.scan.walking import find_files
from toolkit.scan.workers import read_files, work

DYING = """\
import os, signal
from toolkit.scan import workers
real = workers.read_file
def read_file(path, *, is_named):
    if path.endswith("_3_inference_3.0/output_code.py"):
        {}
    return real(path, is_named=is_named)
workers.read_file = read_file
"""


@pytest.fixture(autouse=True)
def many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "FEW", 5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    make_debug_tree(tmp_path / "tree", graphs=10, with_vendor=6)
    (tmp_path / "tree/chazard.py").write_text(hazardous(), encoding="utf-8")
    (tmp_path / "tree/not python.py").write_bytes(b"async_compile = (\n")
    (tmp_path / "tree" / os.fsdecode(b"odd\xff.py")).write_text(plain(1), encoding="utf-8")
    return tmp_path / "tree"


def test_processes_report_what_one_would(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    candidates = find_files([Path()]).candidates
    alone = [read_file(one.path, is_named=one.is_named) for one in candidates]
    together = list(read_files(candidates, os.environ))

    assert len(alone) == 10 * 3 + 3
    assert sum(len(one.hazards) for one in alone) == 1
    assert together == alone


def in_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str) -> dict[str, str]:
    """Let each worker do something odd when it comes to one file."""
    (tmp_path / "sitecustomize.py").write_text(DYING.format(action), encoding="utf-8")
    real = workers.compose_env

    def compose(caller: dict[str, str], extra: dict[str, str]) -> dict[str, str]:
        return real(caller, {**extra, "PYTHONPATH": f"{tmp_path}:{extra['PYTHONPATH']}"})

    monkeypatch.setattr(workers, "compose_env", compose)
    return dict(os.environ)


def test_a_file_that_a_worker_dies_of_is_told(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = in_worker(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGSEGV)")
    reports = list(read_files(find_files([tree]).candidates, environ))
    odd = [one for one in reports if "_3_inference" in one.path and one.path.endswith("output_code.py")]

    assert [(one.state, one.why) for one in odd] == [
        ("unreadable", "the process that read it ended with signal SIGSEGV")
    ]
    assert sum(one.state == "wrapper" for one in reports) == 9 + 2


def test_a_worker_that_fails_is_an_error(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = in_worker(tmp_path, monkeypatch, "raise KeyError('a bug')")
    with pytest.raises(CommandError) as fault:
        list(read_files(find_files([tree]).candidates, environ))

    assert fault.value.message == "a worker of the scan ended with exit code 1"
    assert fault.value.details[-1] == "KeyError: 'a bug'"


def test_an_interrupt_ends_the_workers_at_once(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "waiting"
    environ = in_worker(tmp_path, monkeypatch, f"import time; open({str(mark)!r}, 'w').close(); time.sleep(600)")

    def interrupt() -> None:
        while not mark.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(read_files(find_files([tree]).candidates, environ))
    watcher.join()

    assert time.monotonic() - started < 60


def test_a_worker_writes_a_line_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(plain(1), encoding="utf-8")
    (tmp_path / "list").write_bytes(f"1{tmp_path}/a.py\0000{tmp_path}/gone.py\0".encode())
    work(tmp_path / "list", tmp_path / "reports")
    first, second = (tmp_path / "reports").read_text(encoding="utf-8").splitlines()

    assert first.startswith('{"path":"","state":"wrapper","why":"","kernels":{"dvm":1}')
    assert second.startswith('{"path":"","state":"unreadable","why":"No such file or directory"')


def test_a_worker_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    work_forever = (
        "import sys, time; from pathlib import Path; from toolkit.scan import workers\n"
        "workers.read_file = lambda *_, **__: (Path('started').write_text(str(workers.os.getpid())), time.sleep(60))\n"
        "Path('list').write_bytes(b'1x.py\\0'); workers.work(Path('list'), Path('out'))"
    )
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work_forever!r}])"
    with subprocess.Popen([sys.executable, "-c", start], cwd=tmp_path) as parent:
        worker = int((tmp_path / "started").read_text(encoding="utf-8"))
        parent.kill()

    ends = time.monotonic() + 20
    while is_running(worker) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(worker)


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended: nobody may have waited for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
