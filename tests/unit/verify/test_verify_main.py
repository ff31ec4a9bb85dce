"""The process boundary: whatever the checks do, result.json tells all of them, or there is none."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.process import Completed, compose_env, run

VERIFY = Path(__file__).parents[3] / "verify"

CHECKS = {
    "good": "from verify.contract import passed\ndef check(request):\n    return passed('seen', side=request.side)\n",
    "excused": "from verify.contract import skipped\ndef check(request):\n    return skipped('no', excused=True)\n",
    "raises": "def check(request):\n    raise LookupError('not found\\nsecond line')\n",
    "silent": "def check(request):\n    raise LookupError\n",
    "exits": "import sys\ndef check(request):\n    sys.exit(3)\n",
    "nothing": "def check(request):\n    return None\n",
    "unreadable": "import no_such_module\n",
    "nan": "from verify.contract import passed\ndef check(request):\n    return passed('x', value=float('nan'))\n",
    "keys": "from verify.contract import passed\ndef check(request):\n    return passed('x', value={(1, 2): 3})\n",
    "path": "from pathlib import Path\nfrom verify.contract import passed\n"
    "def check(request):\n    return passed('x', value=Path('/a'))\n",
    "bytes": "import os\nfrom verify.contract import passed\n"
    "def check(request):\n    return passed(os.fsdecode(b'\\xff'))\n",
    "noisy": "import os\nfrom verify.contract import passed\n"
    "def check(request):\n    os.write(1, bytes(range(256)))\n    os.close(1)\n    os.close(2)\n"
    "    return passed('seen')\n",
    "slow": "import time\nfrom verify.contract import passed\n"
    "def check(request):\n    time.sleep(0.2)\n    return passed('seen')\n",
}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Completed]:
    """Return a function that runs `python -m verify` on a request; the real entry point, checks of our own."""
    folder = tmp_path / "staged" / "verify"
    (folder / "checks").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "contract.py", "checks/__init__.py"):
        shutil.copy(VERIFY / name, folder / name)
    for name, source in CHECKS.items():
        (folder / "checks" / f"{name}.py").write_text(source)
    (folder / "checks.json").write_text(json.dumps({name: {"module": f"verify.checks.{name}"} for name in CHECKS}))

    def start(*arguments: object) -> Completed:
        env = compose_env(os.environ, {"PYTHONPATH": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"})
        return run([sys.executable, "-m", "verify", *map(str, arguments)], cwd=tmp_path, env=env, check=False)

    return start


def write_request(folder: Path, *checks: str, **changed: Any) -> Path:
    body = {
        "schema": 1, "checks": checks, "side": "base", "runtime": "host", "site": "/site", "manifest": None,
        "scratch": str(folder), "packages": [], "expect": {}, "can_load": True, "time_limit": 0, **changed,
    }  # fmt: skip
    path = folder / "request.json"
    path.write_text(json.dumps({name: value for name, value in body.items() if value is not ...}))
    return path


def results(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "result.json").read_text())["checks"])


@pytest.mark.parametrize(
    ("check", "status", "detail"),
    [
        ("good", "pass", "seen"),
        ("excused", "skip", "no"),
        ("raises", "error", "LookupError: not found"),
        ("silent", "error", "LookupError"),
        ("exits", "error", "SystemExit: 3"),
        ("nothing", "error", "verify.checks.nothing.check returned None, expected an Outcome"),
        ("unreadable", "error", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("nan", "error", "ValueError: Out of range float values are not JSON compliant"),
        ("keys", "error", "TypeError: keys must be str, int, float, bool or None, not tuple"),
        ("path", "pass", "x"),
        ("bytes", "pass", "?"),
        ("noisy", "pass", "seen"),
        ("missing", "error", f"there is no check 'missing'; known are {', '.join(CHECKS)}"),
    ],
)
def test_whatever_a_check_does_becomes_its_outcome_and_the_next_one_runs(
    ask: Callable[..., Completed], tmp_path: Path, check: str, status: str, detail: str
) -> None:
    done = ask(write_request(tmp_path, check, "good"), tmp_path / "result.json")

    first, second = results(tmp_path)
    assert done.returncode == 0
    assert (first["name"], first["status"]) == (check, status)
    assert first["detail"].startswith(detail)
    assert (second["name"], second["status"], second["evidence"]) == ("good", "pass", {"side": "base"})


def test_a_raised_fault_comes_with_the_end_of_its_traceback(ask: Callable[..., Completed], tmp_path: Path) -> None:
    ask(write_request(tmp_path, "raises"), tmp_path / "result.json")

    lines = results(tmp_path)[0]["evidence"]["traceback"]

    assert lines[-2:] == ["LookupError: not found", "second line"]
    assert any("raises.py" in line for line in lines)


def test_an_excuse_and_the_time_are_recorded(ask: Callable[..., Completed], tmp_path: Path) -> None:
    ask(write_request(tmp_path, "excused", "slow"), tmp_path / "result.json")

    excused, slow = results(tmp_path)

    assert (excused["excused"], slow["excused"]) == (True, False)
    assert 0.2 <= slow["seconds"] < 5


def test_near_the_time_limit_the_log_says_where_the_check_is(ask: Callable[..., Completed], tmp_path: Path) -> None:
    done = ask(write_request(tmp_path, "slow", time_limit=0.05), tmp_path / "result.json")

    assert 'slow.py", line 4 in check' in done.stderr
    assert results(tmp_path)[0]["status"] == "pass"


def test_the_result_says_what_ran_it(ask: Callable[..., Completed], tmp_path: Path) -> None:
    ask(write_request(tmp_path), tmp_path / "result.json")

    body = json.loads((tmp_path / "result.json").read_text())

    assert (body["schema"], body["checks"]) == (1, [])
    assert body["environment"]["executable"] == sys.executable
    assert "torch" not in body["environment"], "nothing was imported to say this"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"schema": 2}, "request schema 2, this verify speaks 1", id="another schema"),
        pytest.param({"site": ...}, "request lacks or misnames a member: 'site'", id="missing member"),
        pytest.param({"packages": [{"name": "a"}]}, "request lacks or misnames a member: ", id="misnamed member"),
    ],
)
def test_a_request_that_cannot_be_understood_is_refused_without_a_result(
    ask: Callable[..., Completed], tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    request = write_request(tmp_path, "good", **changed)

    done = ask(request, tmp_path / "result.json")

    assert done.returncode == 2
    assert done.stderr.startswith(f"cannot read the request {request}: {said}")
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\xff"])
def test_a_request_that_is_no_request_is_refused(ask: Callable[..., Completed], tmp_path: Path, content: str) -> None:
    (tmp_path / "request.json").write_text(content, encoding="latin-1")

    done = ask(tmp_path / "request.json", tmp_path / "result.json")

    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_a_missing_request_and_a_wrong_command_line_are_refused(ask: Callable[..., Completed], tmp_path: Path) -> None:
    missing = ask(tmp_path / "none.json", tmp_path / "result.json")
    assert (missing.returncode, "No such file" in missing.stderr) == (2, True)

    short = ask("request.json")
    assert (short.returncode, short.stderr) == (2, "usage: python -m verify request.json result.json\n")


def test_a_result_is_moved_into_place_whole(ask: Callable[..., Completed], tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("old")

    ask(write_request(tmp_path, "good"), tmp_path / "result.json")

    assert [record["name"] for record in results(tmp_path)] == ["good"]
    assert not (tmp_path / "result.part").exists()
