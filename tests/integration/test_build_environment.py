"""Build environments made with the real venv and pip, from wheels of our own."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wheels import make_wheel
from toolkit.build.environment import obtain_environment
from toolkit.errors import BuildError
from toolkit.files import sha256_file
from toolkit.model import Contract, Interpreter, Requirement, Target
from toolkit.requirements import requirements_for, resolve_requirements
from toolkit.store import Store
from toolkit.target import inspect_interpreter

TARGET = Target(
    python_tag=f"cp3{sys.version_info.minor}",
    platform=f"manylinux_2_{max(17, int(platform.libc_ver()[1].split('.')[1]))}_{platform.machine()}",
)
CODE = {
    "tool/__init__.py": "import leaf\ndef main():\n    print('tool with leaf', leaf.VERSION)\n",
    "tool-1.0.data/scripts/tool-script": "#!python\nimport sys\nprint(sys.prefix)\n",
}
STARTED_ALWAYS = {"started.pth": "import started\n", "started.py": ""}
"""Imported whenever the environment's interpreter starts, as setuptools does with a module of its own."""

TOOL_INFO = {"entry_points.txt": "[console_scripts]\ntool = tool:main\n"}


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return inspect_interpreter(Path(sys.executable), env=os.environ)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("index")
    make_wheel(
        index, "tool", "1.0", CODE, dist_info=TOOL_INFO, metadata="Requires-Dist: leaf>=2\n",
        modes={"tool-1.0.data/scripts/tool-script": 0o755},
    )  # fmt: skip
    make_wheel(index, "leaf", "2.0+cpu", {"leaf.py": "VERSION = '2.0+cpu'\n", **STARTED_ALWAYS})
    return index


@pytest.fixture(scope="module")
def shared(index: Path, interpreter: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Make a store, at a place with an awkward name, that has the environment of all wheels of the index."""
    store = Store(tmp_path_factory.mktemp("it's a place") / "the store")
    obtain(index, interpreter, store)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def pins(index: Path) -> list[Requirement]:
    """Pin every wheel of an index."""
    found = []
    for path in sorted(index.glob("*.whl")):
        distribution, version = path.name.split("-")[:2]
        found.append(Requirement(distribution=distribution, version=version, file=path.name, sha256=sha256_file(path)))
    return found


def pip_env(index: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index),
    }  # fmt: skip


def obtain(index: Path, interpreter: Interpreter, store: Store, **more: str) -> Path:
    return obtain_environment(
        pins(index), interpreter=interpreter, target=TARGET, store=store, offline=False,
        env={**pip_env(index), **more}, component="c",
    )  # fmt: skip


def through(script: str, interpreter: Interpreter, folder: Path) -> Interpreter:
    """Return the interpreter behind a program of that text, in which it is `$python`."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\npython={interpreter.executable}\n{script}\n")
    program.chmod(0o755)
    return replace(interpreter, executable=program)


def put_into(store: Store, index: Path) -> None:
    for pinned in pins(index):
        (store.root / "base" / pinned.sha256).mkdir(parents=True)
        shutil.copy(index / pinned.file, store.root / "base" / pinned.sha256)


def output_of(*argv: str | Path) -> str:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # As builds have it: the environment stays as it was made.
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout


def assert_nothing_kept(store: Store) -> None:
    assert [entry for entry in store.entries() if entry.kind == "build-env"] == []
    assert list((store.root / "build-env").iterdir()) == []


def test_programs_of_an_environment_run_in_it(shared: Store, index: Path, interpreter: Interpreter) -> None:
    made = obtain(index, interpreter, shared)
    assert output_of(made / "bin" / "tool") == "tool with leaf 2.0+cpu\n"
    shell = f'. "{made}/bin/activate" && command -v tool && echo "$VIRTUAL_ENV"'
    assert output_of("sh", "-c", shell) == f"{made}/bin/tool\n{made}\n"


def test_no_file_names_the_place_where_it_was_made(shared: Store, index: Path, interpreter: Interpreter) -> None:
    made = obtain(index, interpreter, shared)
    files = [path for path in made.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 10
    assert [path for path in files if b".part-" in path.read_bytes()] == []
    assert made.name in (made / "bin" / "tool").read_text()
    assert sorted(path.name for path in made.iterdir()) == ["bin", "include", "lib", "lib64", "pyvenv.cfg"]


def test_every_line_of_every_record_is_true(shared: Store, index: Path, interpreter: Interpreter) -> None:
    site = next(obtain(index, interpreter, shared).glob("lib/python3*/site-packages"))
    seen = set()
    for record in site.glob("*.dist-info/RECORD"):
        with record.open(newline="") as stream:
            for name, digest, size in csv.reader(stream):
                content = (site / name).read_bytes()
                own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, size) in ((f"sha256={own}", str(len(content))), ("", "")), name
                seen.add((site / name).resolve())
    assert {path.resolve() for path in site.rglob("*") if path.is_file()} <= seen
    assert next(site.parents[2].glob("bin/tool")).resolve() in seen


def test_an_environment_holds_its_wheels_and_nothing_else(shared: Store, index: Path, interpreter: Interpreter) -> None:
    made = obtain(index, interpreter, shared)
    ask = "import importlib.metadata as m, json; print(json.dumps(sorted(d.name for d in m.distributions())))"
    assert json.loads(output_of(made / "bin" / "python", "-c", ask)) == ["leaf", "tool"]


def test_an_environment_that_is_there_is_used_as_it_is(
    shared: Store, index: Path, interpreter: Interpreter, tmp_path: Path
) -> None:
    made = obtain(index, interpreter, shared)
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    shutil.copytree(index, tmp_path / "same")
    offline = obtain_environment(
        list(reversed(pins(tmp_path / "same"))), interpreter=interpreter, target=TARGET, store=shared, offline=True,
        env={"PATH": os.environ["PATH"]}, component="d",
    )  # fmt: skip
    assert offline == made
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before


def test_other_wheels_or_another_interpreter_are_another_environment(
    shared: Store, index: Path, interpreter: Interpreter, tmp_path: Path
) -> None:
    nothing = tmp_path / "index"
    nothing.mkdir()
    behind = through('exec $python "$@"', interpreter, tmp_path)
    made = {obtain(index, interpreter, shared), obtain(nothing, interpreter, shared), obtain(nothing, behind, shared)}
    assert len(made) == 3


def test_the_users_pip_settings_do_not_reach_the_environment(
    index: Path, interpreter: Interpreter, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "constraints.txt").write_text("leaf<1\n")
    own = {
        "PIP_CONSTRAINT": str(tmp_path / "constraints.txt"), "PIP_USER": "1", "PIP_TARGET": str(tmp_path / "target"),
        "PIP_PREFIX": str(tmp_path / "prefix"), "PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent",
    }  # fmt: skip
    put_into(store, index)  # How they are downloaded is the registry's business.
    made = obtain(index, interpreter, store, **own)
    assert output_of(made / "bin" / "tool") == "tool with leaf 2.0+cpu\n"
    assert output_of(made / "bin" / "tool-script") == f"{made}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["constraints.txt", "store"]


@pytest.mark.parametrize("change", ["gone", "another version"])
def test_an_environment_whose_interpreter_changed_is_made_anew(
    change: str, interpreter: Interpreter, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = tmp_path / "index"
    nothing.mkdir()
    made = obtain(nothing, interpreter, store)
    link = made / "bin" / f"python3.{sys.version_info.minor}"
    whole = os.readlink(link)
    link.unlink()
    if change == "gone":
        link.symlink_to("/nonexistent/python3")
    else:
        link.write_text("#!/bin/sh\necho 3.11.99\n")
        link.chmod(0o755)
    with caplog.at_level(logging.WARNING, logger="toolkit"):
        assert obtain(nothing, interpreter, store) == made
    assert os.readlink(link) == whole
    assert [record.getMessage() for record in caplog.records] == [
        f"c: the build environment {made} has lost its interpreter; making it anew"
    ]


# --- what goes wrong ---------------------------------------------------------------------------------------------


def test_an_environment_in_which_something_lacks_is_an_error(
    interpreter: Interpreter, store: Store, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    make_wheel(index, "tool", "1.0", {}, metadata="Requires-Dist: absent>=1\nRequires-Dist: leaf<2\n")
    make_wheel(index, "leaf", "2.0", {})
    with pytest.raises(BuildError) as caught:
        obtain(index, interpreter, store)
    assert caught.value.message == f"c: the build environment for {TARGET} cannot be made: it is not complete"
    assert list(caught.value.details) == ["tool 1.0 needs absent>=1", "tool 1.0 needs leaf<2, and there is 2.0"]
    assert caught.value.hint == (
        "add what lacks to `requires`; run `toolkit lock --upgrade` and review the change"
    )  # fmt: skip
    assert_nothing_kept(store)


def test_an_interpreter_without_venv_is_an_error(
    index: Path, interpreter: Interpreter, store: Store, tmp_path: Path
) -> None:
    without = through("echo 'No module named venv' >&2; exit 1", interpreter, tmp_path)
    with pytest.raises(BuildError) as caught:
        obtain(index, without, store)
    assert caught.value.message == (
        f"c: the build environment for {TARGET} cannot be made: {without.executable} makes no virtual environment"
    )
    assert caught.value.details == ("No module named venv",)
    assert_nothing_kept(store)


def test_wheels_that_pip_refuses_are_an_error(interpreter: Interpreter, store: Store, tmp_path: Path) -> None:
    index = tmp_path / "index"
    metadata = "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\nRequires-Python: >=3.99\n"
    make_wheel(index, "tool", "1.0", {"tool.py": ""}, dist_info={"METADATA": metadata})
    put_into(store, index)
    with pytest.raises(BuildError) as caught:
        obtain(index, interpreter, store)
    assert caught.value.message == (
        f"c: the build environment for {TARGET} cannot be made: pip does not install its wheels"
    )
    assert "requires a different Python" in " ".join(caught.value.details)
    assert_nothing_kept(store)


OBTAIN = """
import os, sys
from pathlib import Path
from dataclasses import replace
from tests.integration.test_build_environment import obtain
from toolkit.store import Store
from toolkit.target import inspect_interpreter
found = inspect_interpreter(Path(sys.executable), env=os.environ)
print(obtain(Path(sys.argv[1]), replace(found, executable=Path(sys.argv[2])), Store(Path(sys.argv[3]))))
"""


def start(index: Path, made_by: Interpreter, store: Store) -> subprocess.Popen[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2]), "HOME": os.environ["HOME"]}
    argv = [sys.executable, "-c", OBTAIN, index, made_by.executable, store.root]
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_what_is_stopped_half_way_leaves_nothing_final(
    number: signal.Signals, interpreter: Interpreter, store: Store, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    slow = through(f'$python "$@"; touch {tmp_path}/half; test -e {tmp_path}/go || sleep 60', interpreter, tmp_path)
    with start(index, slow, store) as child:
        wait_for(tmp_path / "half")
        child.send_signal(number)
    assert child.returncode == -number
    assert [entry.kind for entry in store.entries()] == []
    (tmp_path / "go").touch()
    made = obtain(index, slow, store)
    assert (made / "bin" / "python").exists()
    assert list(made.parent.iterdir()) == [made]


def test_two_at_once_make_one(interpreter: Interpreter, store: Store, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    counted = through(f'echo made >> {tmp_path}/log; sleep 0.5; exec $python "$@"', interpreter, tmp_path)
    with start(index, counted, store) as first, start(index, counted, store) as second:
        said = {first.communicate()[0], second.communicate()[0]}
    assert len(said) == 1
    assert Path(said.pop().strip(), "bin", "python").exists()
    assert (tmp_path / "log").read_text() == "made\n"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.02)


# --- with the registry -------------------------------------------------------------------------------------------


def test_a_locked_ninja_runs(interpreter: Interpreter, store: Store) -> None:
    contract = Contract(python_tags=(TARGET.python_tag,), platforms=(TARGET.platform,), torch="2.12.0")
    locked = resolve_requirements(["ninja>=1.11"], contract, component="c", env=os.environ, progress=None)
    seen: list[int] = []
    made = obtain_environment(
        requirements_for(locked, TARGET), interpreter=interpreter, target=TARGET, store=store, offline=False,
        env=os.environ, component="c", progress=lambda done, total: seen.append(done),
    )  # fmt: skip
    assert output_of(made / "bin" / "ninja", "--version").startswith("1.")
    assert seen == sorted(seen)
