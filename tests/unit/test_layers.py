"""The house: who may import whom, and who alone may start processes, use git or print.

`RUNGS` is the table of the design. A room imports only rooms on lower rungs, never one on its own; the modules inside
a package are one room and may import each other. A module without a place here fails: give it one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import toolkit
from toolkit.inputs import OTHER_ROOMS, REPORT_ROOMS

RUNGS = (
    # values, and what every room may need
    (0.0, ("", "errors", "model")),
    (1.0, ("process", "files")),
    # what rooms of the next two rungs are made of
    (1.5, ("platforms", "runs", "schema")),
    (2.0, ("git", "manifest", "mirrors", "project", "registry", "store", "trace", "wheels")),
    (2.1, ("artifacts", "requirements", "tarballs")),
    (2.2, ("sdists",)),
    # a training command, read
    (2.3, ("launch",)),
    # the stages, and what stands beside them
    (
        3.0,
        ("recipe", "lock", "sources", "series", "build", "repack", "overlay", "sysroot", "prove", "target", "bundle"),
    ),
    (3.0, ("envfile", "extensions", "keyfile", "answers", "report")),
    # generated code, read and judged
    (3.0, ("scan",)),
    # a failed run's log, and a training code base, judged by rules
    (3.0, ("triage", "lint")),
    # a user's own command, looked at over several runs
    (3.5, ("cachekeys", "repeats")),
    # a report, from values to text
    (3.5, ("page",)),
    # where a run stands, and what it will do
    (4.0, ("current",)),
    (4.05, ("account", "inputs")),
    (4.1, ("plan",)),
    (4.2, ("resolve", "work")),
    (4.3, ("lanes",)),
    (4.4, ("grounds",)),
    # the machine and a training command, before anything fails
    (4.41, ("doctor",)),
    (4.42, ("preflight",)),
    # the life of a patch
    (4.5, ("upkeep",)),
    # the story
    (5.0, ("pipeline",)),
    # which bases still need a patch, and where it still works
    (5.1, ("witnessing",)),
    # its face
    (5.9, ("ending", "options")),
    (5.95, ("diagnosing", "evidencing", "groups", "patching", "reporting")),
    (6.0, ("cli",)),
    (6.1, ("quick",)),
    (7.0, ("__main__",)),
)
"""Rung, and the rooms on it: a module or package directly below `toolkit`; "" is `toolkit/__init__.py`."""

STARTS_PROCESSES = {"process"}
USES_GIT = {"git"}
PRINTS = {"cli", "ending", "quick", "report"}

PROCESS_MODULES = {"subprocess", "multiprocessing", "pty", "pexpect"}
PROCESS_CALLS = ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "create_subprocess")
"""What `os` and `asyncio` start or become processes with begins like this."""

PRINT_CALLS = {"print", "pprint", "echo", "secho", "echo_via_pager"}
PRINT_STREAMS = ("sys.stdout.", "sys.stderr.", "sys.__stdout__.", "sys.__stderr__.")

ROOT = Path(toolkit.__file__).parent
CHECKOUT = ROOT.parent
VERIFY = CHECKOUT / "verify"


@dataclass(frozen=True, kw_only=True)
class Module:
    """One source file: its dotted name and what it imports, wherever in the file that stands."""

    name: str
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[2].partition(".")[0]

    def __str__(self) -> str:
        return self.name


def read_modules(root: Path) -> list[Module]:
    return [
        Module(name=module_name(path, root), tree=ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(root.rglob("*.py"))
        if "data" not in path.relative_to(root).parts
    ]


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(module: Module, known: set[str]) -> Iterator[tuple[str, int]]:
    """Yield every imported name with its line; `from a import b` gives `a.b` where that is a module, else `a`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                yield f"<relative import of {base}>", node.lineno
                continue
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in known else base), node.lineno
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            yield from ((str(word.value), node.lineno) for word in node.args[:1] if isinstance(word, ast.Constant))


def find_climbs(module: Module, known: set[str]) -> list[str]:
    """List the imports that a module's rung does not allow."""
    rungs = {room: rung for rung, rooms in RUNGS for room in rooms}
    faults = []
    for name, line in imports_of(module, known):
        first, _, rest = name.partition(".")
        if name.startswith("<"):
            faults.append(f"{module}:{line}: {name}")
        room = rest.partition(".")[0]
        if first == "toolkit" and room != module.room and rungs[room] >= rungs[module.room]:
            faults.append(f"{module}:{line}: rung {rungs[module.room]} imports {name} on rung {rungs[room]}")
    return faults


def find_imports(module: Module, packages: set[str]) -> list[str]:
    return [
        f"{module}:{line}: imports {name}"
        for name, line in imports_of(module, set())
        if name.partition(".")[0] in packages
    ]


def find_process_starts(module: Module) -> list[str]:
    """List what starts a child process, or becomes another program."""
    faults = find_imports(module, PROCESS_MODULES)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and _is_name(node.value, "os", "asyncio"):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "asyncio"):
            names = [alias.name for alias in node.names]
        else:
            continue
        faults += [f"{module}:{node.lineno}: uses {name}" for name in names if name.startswith(PROCESS_CALLS)]
    return faults


def find_prints(module: Module) -> list[str]:
    """List what writes to the terminal."""
    faults = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        written = ast.unparse(node.func)
        if _called(node) in PRINT_CALLS or written.startswith(PRINT_STREAMS):
            faults.append(f"{module}:{node.lineno}: calls {written}")
    return faults


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_name(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


MODULES = read_modules(ROOT)
KNOWN = {module.name for module in MODULES}
VERIFY_MODULES = read_modules(VERIFY)


# --- the rooms -------------------------------------------------------------------------------------------------


def test_every_room_has_a_rung_and_every_rung_its_rooms() -> None:
    placed = [room for _, rooms in RUNGS for room in rooms]

    assert sorted({module.room for module in MODULES} - set(placed)) == [], "give the new rooms a rung in RUNGS"
    assert sorted(set(placed) - {module.room for module in MODULES}) == [], "these rooms are no longer there"
    assert len(placed) == len(set(placed))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_room_imports_only_rooms_below_it(module: Module) -> None:
    assert find_climbs(module, KNOWN) == []


def test_what_an_overlay_is_doubted_for_is_all_that_builds_and_proves() -> None:
    """A room that is new takes its place in `toolkit.inputs` where nothing that builds imports it."""
    rooms = {module.room for module in MODULES}
    building = reached_rooms({"pipeline", "cli", "quick", "__main__"})
    without_report = reached_rooms({"pipeline", "cli", "quick", "__main__"}, but=REPORT_ROOMS)

    assert sorted(rooms - building) == sorted(OTHER_ROOMS)
    assert sorted(building - without_report) == sorted(REPORT_ROOMS)


def reached_rooms(start: set[str], *, but: frozenset[str] = frozenset()) -> set[str]:
    """Return the rooms that these import, and those import, wherever in a file that stands; a room is taken whole."""
    found: set[str] = set()
    pending = list(start)
    while pending:
        room = pending.pop()
        if room not in found | but:
            found.add(room)
            names = (name for one in MODULES if one.room == room for name, _ in imports_of(one, KNOWN))
            pending += [name.split(".")[1] if "." in name else "" for name in names if name.startswith("toolkit")]
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_engine_never_imports_what_runs_in_the_target(module: Module) -> None:
    assert find_imports(module, {"verify", "torch", "torch_npu", "tests"}) == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.room not in STARTS_PROCESSES], ids=str)
def test_only_process_starts_processes(module: Module) -> None:
    assert find_process_starts(module) == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.room not in USES_GIT], ids=str)
def test_only_git_uses_git(module: Module) -> None:
    assert find_imports(module, {"git", "gitdb"}) == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.room not in PRINTS], ids=str)
def test_only_the_face_and_the_report_print(module: Module) -> None:
    assert find_prints(module) == []
    assert find_imports(module, {"rich"}) == []


# --- verify/ ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", VERIFY_MODULES, ids=str)
def test_verify_never_imports_the_engine(module: Module) -> None:
    assert find_imports(module, {"toolkit", "tests"}) == []


@pytest.mark.parametrize("module", VERIFY_MODULES, ids=str)
def test_verify_is_loaded_with_the_standard_library_alone(module: Module) -> None:
    at_top = Module(name=module.name, tree=ast.Module(body=list(_outside_functions(module.tree)), type_ignores=[]))
    foreign = {
        name.partition(".")[0] for name, _ in imports_of(at_top, set()) if not name.startswith(("verify", "__future__"))
    }

    assert sorted(foreign - sys.stdlib_module_names) == []


@pytest.mark.parametrize("module", VERIFY_MODULES, ids=str)
def test_verify_can_be_read_by_the_oldest_target(module: Module) -> None:
    path = CHECKOUT / f"{module.name.replace('.', '/')}.py"
    path = path if path.is_file() else path.with_suffix("") / "__init__.py"

    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))


def _outside_functions(tree: ast.Module) -> Iterator[ast.stmt]:
    pending: list[ast.AST] = [tree]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                yield child
            elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                pending.append(child)


# --- these checks themselves -----------------------------------------------------------------------------------


def sample(source: str, name: str = "toolkit.store") -> Module:
    return Module(name=name, tree=ast.parse(source))


@pytest.mark.parametrize(
    ("source", "climbs"),
    [
        pytest.param("from toolkit.errors import StoreError", [], id="a lower room"),
        pytest.param("import json, os.path", [], id="no room"),
        pytest.param("from toolkit import __version__", [], id="the package itself"),
        pytest.param("from toolkit.git import x", ["toolkit.store:1: rung 2.0 imports toolkit.git on rung 2.0"],
                     id="a room beside it"),
        pytest.param("import toolkit.cli", ["toolkit.store:1: rung 2.0 imports toolkit.cli on rung 6.0"],
                     id="a higher one"),
        pytest.param("from toolkit import errors, plan", ["toolkit.store:1: rung 2.0 imports toolkit.plan on rung 4.1"],
                     id="a higher one from the package"),
        pytest.param("def f():\n    from toolkit.series.apply import x",
                     ["toolkit.store:2: rung 2.0 imports toolkit.series.apply on rung 3.0"], id="inside a function"),
        pytest.param("from . import plan", ["toolkit.store:1: <relative import of >"], id="relative"),
        pytest.param("importlib.import_module('toolkit.plan')",
                     ["toolkit.store:1: rung 2.0 imports toolkit.plan on rung 4.1"], id="by name"),
    ],
)  # fmt: skip
def test_a_climb_is_found(source: str, climbs: list[str]) -> None:
    assert find_climbs(sample(source), KNOWN) == climbs


def test_the_modules_of_one_package_may_import_each_other() -> None:
    assert find_climbs(sample("from toolkit.series.diff import x", "toolkit.series.apply"), KNOWN) == []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing.pool",
        "import os\nos.execvp('a', ['a'])",
        "import os\nos.posix_spawn('a', ['a'], {})",
        "os.system('a')",
        "os.popen('a')",
        "os.fork()",
        "from os import execve",
        "asyncio.create_subprocess_exec('a')",
        "start = os.spawnv",
    ],
)
def test_a_process_start_is_found(source: str) -> None:
    assert len(find_process_starts(sample(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "print('a')",
        "click.echo('a')",
        "echo('a')",
        "sys.stdout.write('a')",
        "sys.__stderr__.write('a')",
        "sys.stderr.buffer.write(b'a')",
        "console.print('a')",
        "pprint.pprint(a)",
    ],
)
def test_a_print_is_found(source: str) -> None:
    assert len(find_prints(sample(source))) == 1


@pytest.mark.parametrize("source", ["os.path.exists('a')", "log.info('print')", "stream.write('a')", "os.environ"])
def test_what_neither_prints_nor_starts_a_process_is_left_alone(source: str) -> None:
    assert find_prints(sample(source)) + find_process_starts(sample(source)) == []


def test_an_import_is_found_wherever_it_stands() -> None:
    source = "import a.git\ndef f():\n    import git.repo\nif x:\n    from git import Repo\n__import__('git')"

    assert find_imports(sample(source), {"git"}) == [
        "toolkit.store:3: imports git.repo",
        "toolkit.store:5: imports git",
        "toolkit.store:6: imports git",
    ]
