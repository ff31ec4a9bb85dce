"""Source trees built by real compilers, CMake and ninja, in the real sandbox of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.repositories import commit_index, git, make_upstream
from toolkit.build import BuiltWheel, build_wheel, shell_command
from toolkit.build.sandbox import choose_sandbox
from toolkit.build.workroom import RECORD
from toolkit.errors import BuildError, StorageError
from toolkit.files import remove_tree
from toolkit.git import check_out_commit
from toolkit.model import Backend, BuildSpec, BuildTree, FetchedBase, SandboxKind, SandboxMode, Target

pytest.importorskip("setuptools")

COMMIT = "5a" * 20
EPOCH = 1_750_000_000

Files = Mapping[str, str] | Callable[[Path], object]
"""A project's files by name, or what writes them into a folder."""

PLATFORM = f"manylinux_2_39_{os.uname().machine}"
PYTHON_TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"

SANDBOX: SandboxKind = choose_sandbox("auto", path=os.environ["PATH"]).kind

in_sandbox = pytest.mark.skipif(SANDBOX == "none", reason="no sandbox works on this machine")
in_bubblewrap = pytest.mark.skipif(SANDBOX != "bubblewrap", reason="bubblewrap does not work on this machine")
with_ccache = pytest.mark.skipif(shutil.which("ccache") is None, reason="there is no ccache")
with_cmake = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="no CMake or ninja")

SETUP = """
from setuptools import Extension, setup
setup(name="tiny", version="1.0", packages=["tiny"], ext_modules=[Extension("tiny._native", ["src/native.c"])])
"""

NATIVE = """
#include <Python.h>
static PyObject *where(PyObject *self, PyObject *none) { return PyUnicode_FromString(__FILE__); }
static PyMethodDef methods[] = {{"where", where, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods};
PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&definition); }
"""

EXTENSION = {"setup.py": SETUP, "src/native.c": NATIVE, "tiny/__init__.py": "VALUE = 1\n"}

PURE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "tiny"
version = "1.0"
[tool.setuptools]
packages = ["tiny"]
""",
    "tiny/__init__.py": "VALUE = 1\n",
}

CMAKE_SETUP = """
import pathlib, subprocess
from setuptools import setup
source, build = pathlib.Path().absolute(), pathlib.Path("build/native").absolute()
subprocess.check_call(["cmake", "-GNinja", "-S", source, "-B", build, "-DCMAKE_INSTALL_PREFIX=" + str(source / "tiny")])
subprocess.check_call(["cmake", "--build", build, "--target", "install"])
setup(name="tiny", version="1.0", packages=["tiny"], package_data={"tiny": ["*.so"]}, has_ext_modules=lambda: True)
"""

CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.18)
project(tiny CXX)
add_library(tiny SHARED one.cpp two.cpp)
install(TARGETS tiny DESTINATION .)
"""

CMAKE = {
    "setup.py": CMAKE_SETUP,
    "CMakeLists.txt": CMAKE_LISTS,
    "one.cpp": "#include <string>\nstd::string one() { return __FILE__; }\n",
    "two.cpp": "int two() { return 2; }\n",
    "tiny/__init__.py": "",
}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment that has what the tests' own has: setuptools, wheel and build among it."""
    return make_environment(tmp_path_factory.mktemp("environment") / "env")


def make_environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return folder


class Workshop:
    """Builds small projects; `work` is the folder of the build that ran last."""

    def __init__(self, root: Path, environment: Path) -> None:
        self.root = root
        self.environment = environment
        self.work = root / "work"
        self.steps: list[tuple[int, int | None]] = []

    def build(
        self, files: Files, *, backend: Backend = "setup.py", sandbox: SandboxMode = "auto",
        env: Mapping[str, str] | None = None, pass_env: tuple[str, ...] = (), environ: Mapping[str, str] | None = None,
        work: str = "work", subfolder: str = "", **options: Any,
    ) -> BuiltWheel:  # fmt: skip
        self.work = self.root / work
        tree = self.lay_out(files, subfolder)
        spec = BuildSpec(backend=backend, requirements=(), env=env or {}, pass_env=pass_env, subfolder=subfolder)
        return build_wheel(
            tree, spec, environment=self.environment, work=self.work, into=self.root / f"{work}-wheels", jobs=2,
            sandbox=sandbox, environ={**os.environ, **(environ or {})}, import_name="tiny",
            **{"on_progress": lambda done, total: self.steps.append((done, total)), **options},
        )  # fmt: skip

    def lay_out(self, files: Files, subfolder: str = "") -> BuildTree:
        root = self.work / "tree"
        remove_tree(root)
        if callable(files):
            root.mkdir(parents=True)
            files(root)
            files = {}
        for name, text in files.items():
            path = root / subfolder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        base = FetchedBase(
            component="tiny_part", kind="git", digest=COMMIT, path=self.root / "repository", file="", distribution="",
            version="", target=Target(python_tag=PYTHON_TAG, platform=PLATFORM), subfolder=subfolder, epoch=EPOCH,
        )  # fmt: skip
        return BuildTree(base=base, root=root, digest="tree-digest", native_digest="native-digest")

    @property
    def log(self) -> str:
        return (self.work / "logs" / "build.log").read_text(encoding="utf-8")


@pytest.fixture
def workshop(tmp_path: Path, environment: Path) -> Workshop:
    return Workshop(tmp_path, environment)


def setup_that(code: str) -> dict[str, str]:
    """Return a project whose build does something first."""
    return {"setup.py": f"{code}\nfrom setuptools import setup\nsetup(name='tiny', version='1', packages=['tiny'])\n",
            "tiny/__init__.py": ""}  # fmt: skip


def read_member(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(member for member in archive.namelist() if member.startswith(name)))


# --- what comes out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_two_folders_give_the_same_bytes(workshop: Workshop, sandbox: SandboxMode) -> None:
    first = workshop.build(EXTENSION, env={"CFLAGS": "-g"}, sandbox=sandbox)
    second = workshop.build(EXTENSION, env={"CFLAGS": "-g"}, sandbox=sandbox, work="another/and/longer")

    native = read_member(first.path, "tiny/_native")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert b"/usr/src/tiny_part" in native
    assert str(workshop.root).encode() not in native
    assert first.facts.sandbox == (SANDBOX if sandbox == "auto" else "none")


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_two_places_of_the_build_environment_give_the_same_bytes(
    workshop: Workshop, tmp_path: Path, sandbox: SandboxMode
) -> None:
    header = "static const char *header(void) { return __FILE__; }\n"
    native = NATIVE.replace("#include", "#include <header.h>\n#include", 1).replace("(__FILE__)", "(header())")
    setup = "import sys\n" + SETUP.replace('c"])', 'c"], include_dirs=[sys.prefix + "/include"])')
    wheels = []
    for place in ("one", "another/and/longer"):
        workshop.environment = make_environment(tmp_path / place / "env")
        (workshop.environment / "include" / "header.h").write_text(header, encoding="utf-8")
        files = {**EXTENSION, "setup.py": setup, "src/native.c": native}
        wheels.append(workshop.build(files, env={"CFLAGS": "-g"}, sandbox=sandbox).path.read_bytes())

    (wheel,) = (workshop.root / "work-wheels").iterdir()
    built = read_member(wheel, "tiny/_native")
    assert wheels[0] == wheels[1]
    assert b"/usr/src/build-environment/include/header.h" in built
    assert str(tmp_path).encode() not in built


@with_ccache
def test_a_compiler_cache_answers_in_another_folder_with_the_same_bytes(workshop: Workshop, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    first = workshop.build(EXTENSION, env={"CFLAGS": "-g"}, compiler_cache=cache)
    second = workshop.build(EXTENSION, env={"CFLAGS": "-g"}, compiler_cache=cache, work="another")

    assert first.facts.cache == {"hits": 0, "misses": 1}
    assert second.facts.cache == {"hits": 1, "misses": 0}
    assert first.path.read_bytes() == second.path.read_bytes()
    assert str(workshop.root).encode() not in read_member(first.path, "tiny/_native")


@in_bubblewrap
@pytest.mark.skipif(shutil.which("sccache") is None, reason="there is no sccache")
def test_without_ccache_there_is_sccache_whose_server_ends_with_the_build(workshop: Workshop, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cc", "gcc", "c++", "g++", "sh", "ld", "as", "sccache"):
        if place := shutil.which(name):
            (programs / name).symlink_to(place)
    env = {"CFLAGS": "-g", "PATH": str(programs)}

    first = workshop.build(EXTENSION, env=env, compiler_cache=tmp_path / "cache")
    second = workshop.build(EXTENSION, env=env, compiler_cache=tmp_path / "cache")

    assert first.facts.cache == {"hits": 0, "misses": 1}
    assert second.facts.cache == {"hits": 1, "misses": 0}


@with_ccache
@with_cmake
def test_only_what_changed_is_compiled_again(workshop: Workshop, tmp_path: Path) -> None:
    workshop.build(CMAKE, compiler_cache=tmp_path / "cache")
    changed = {**CMAKE, "two.cpp": "int two() { return 3; }\n"}

    built = workshop.build(changed, compiler_cache=tmp_path / "cache", work="another")

    assert built.facts.cache["misses"] == 1
    assert built.facts.cache["hits"] >= 1


@with_ccache
def test_a_compiler_that_the_recipe_names_is_used_behind_the_cache(workshop: Workshop, tmp_path: Path) -> None:
    compiler = tmp_path / "tools" / "my-cc"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("cc")} -DMINE "$@"\n')
    compiler.chmod(0o755)
    files = {**EXTENSION, "src/native.c": f"#ifndef MINE\n#error not mine\n#endif\n{NATIVE}"}

    built = workshop.build(files, env={"CC": str(compiler)}, compiler_cache=tmp_path / "cache")

    assert built.facts.cache == {"hits": 0, "misses": 1}


def test_a_build_backend_is_run_in_the_projects_folder(workshop: Workshop) -> None:
    built = workshop.build(PURE, backend="pep517", subfolder="python/tiny")

    assert built.path.name == "tiny-1.0-py3-none-any.whl"
    assert read_member(built.path, "tiny/__init__.py") == b"VALUE = 1\n"
    assert (built.facts.libraries, built.facts.symbol_versions, built.findings) == ((), {}, ())


@with_cmake
def test_cmake_and_ninja_build_and_their_steps_are_told(workshop: Workshop) -> None:
    built = workshop.build(CMAKE)

    facts = built.facts
    assert (facts.tree, facts.sandbox, facts.jobs) == ("tree-digest", SANDBOX, 2)
    assert "libstdc++.so.6" in facts.libraries
    assert set(facts.symbol_versions) == {"GLIBC", "GLIBCXX", "CXXABI"} & set(facts.symbol_versions)
    assert "GLIBC" in facts.symbol_versions
    assert workshop.steps[0] == (1, 4)
    assert b"/usr/src/tiny_part/one.cpp" in read_member(built.path, "tiny/libtiny.so")


def test_the_callers_umask_does_not_reach_the_wheel(workshop: Workshop, tmp_path: Path) -> None:
    """The tree is written under that umask, too: setuptools gives data in a wheel the mode that it has there."""
    setup = "open('tiny/made.txt', 'w').close()\n" + SETUP.replace(
        "ext_modules", 'package_data={"": ["*.*"]}, ext_modules'
    )
    files = {**EXTENSION, "setup.py": setup, "tiny/data.txt": "1", "tiny/run.sh": "1"}
    upstream = tmp_path / "upstream"
    make_upstream(upstream, files)
    git(upstream, "update-index", "--chmod=+x", "tiny/run.sh")
    commit = commit_index(upstream)

    before = os.umask(0o077)
    try:
        built = workshop.build(lambda root: check_out_commit(upstream / ".git", commit, [], root, what="x"))
    finally:
        os.umask(before)

    with zipfile.ZipFile(built.path) as archive:
        modes = {member.filename: member.external_attr >> 16 & 0o777 for member in archive.infolist()}
    native = next(name for name in modes if name.startswith("tiny/_native"))
    assert {name: oct(mode) for name, mode in modes.items() if name.startswith("tiny/")} == {
        "tiny/__init__.py": "0o644", "tiny/data.txt": "0o644", "tiny/made.txt": "0o644", "tiny/run.sh": "0o755",
        native: "0o755",
    }  # fmt: skip
    assert {oct(mode) for mode in modes.values()} <= {"0o644", "0o755", "0o664"}


def test_nothing_but_the_wheel_is_put_where_it_goes(workshop: Workshop) -> None:
    built = workshop.build(EXTENSION)

    assert list(built.path.parent.iterdir()) == [built.path]
    assert built.path.parent == workshop.root / "work-wheels"


@with_cmake
@pytest.mark.parametrize(
    ("lines", "entry"),
    [
        pytest.param('set_target_properties(tiny PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/lib")', None, id="origin"),
        pytest.param('set_target_properties(tiny PROPERTIES INSTALL_RPATH "$ORIGIN;/opt/build/lib")', "/opt/build/lib",
                     id="absolute"),
        pytest.param('set_target_properties(tiny PROPERTIES INSTALL_RPATH "lib")', "lib", id="of the working folder"),
    ],
)  # fmt: skip
def test_a_run_path_into_the_build_machine_is_refused(workshop: Workshop, lines: str, entry: str | None) -> None:
    files = {**CMAKE, "CMakeLists.txt": f"{CMAKE_LISTS}{lines}\n"}
    if entry is None:
        workshop.build(files)
        return

    with pytest.raises(BuildError) as caught:
        workshop.build(files)

    name = f"tiny-1.0-{'-'.join(2 * [f'cp{sys.version_info[0]}{sys.version_info[1]}'])}-linux_{os.uname().machine}.whl"
    assert caught.value.message == (
        f"{name} looks for libraries at places of the machine that built it: tiny/libtiny.so: RUNPATH entry {entry!r}"
    )
    assert not (workshop.root / "work-wheels").exists()


@pytest.mark.parametrize(
    ("code", "left"),
    [
        pytest.param("raise SystemExit(0)", "no wheel", id="none"),
        pytest.param("import pathlib; pathlib.Path('dist').mkdir(); pathlib.Path('dist/a-1-py3-none-any.whl').touch()",
                     "a-1-py3-none-any.whl, tiny-1-py3-none-any.whl", id="two"),
    ],
)  # fmt: skip
def test_a_build_that_does_not_leave_one_wheel_is_refused(workshop: Workshop, code: str, left: str) -> None:
    with pytest.raises(BuildError) as caught:
        workshop.build(setup_that(code))

    folder = workshop.work / "tree" / "dist"
    assert caught.value.message == f"the build ended well and left {left} in {folder}, expected one wheel"
    assert caught.value.hint.endswith(
        "the folder is kept: `toolkit debug shell --component tiny_part` opens a shell in it"
    )


def test_a_wheel_that_the_tree_brings_is_not_taken_for_the_built_one(workshop: Workshop) -> None:
    files = {**setup_that(""), "dist/old-1-py3-none-any.whl": "old"}

    assert workshop.build(files).path.name == "tiny-1-py3-none-any.whl"


def test_a_wheel_without_the_package_is_refused(workshop: Workshop) -> None:
    files = {"setup.py": "from setuptools import setup\nsetup(name='tiny', version='1', py_modules=['other'])\n",
             "other.py": ""}  # fmt: skip

    with pytest.raises(BuildError, match=r"^tiny-1-py3-none-any\.whl has no package 'tiny'$"):
        workshop.build(files)


# --- what a build must not have --------------------------------------------------------------------------------


PRINT_ENVIRONMENT = "import os\nfor pair in sorted(os.environ.items()): print('%s=%s' % pair)"


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_build_that_prints_its_environment_has_no_secrets(workshop: Workshop, sandbox: SandboxMode) -> None:
    workshop.build(
        setup_that(PRINT_ENVIRONMENT), sandbox=sandbox, env={"RECIPE": "1"}, pass_env=("PASSED", "NOT_SET"),
        environ={"SECRET_TOKEN": "s3cret", "PASSED": "yes", "PYTHONPATH": "/leak", "LD_PRELOAD": "", "TORCH_HOME": "x"},
    )  # fmt: skip

    printed = dict(line.split("=", 1) for line in workshop.log.splitlines() if line.split("=")[0].isupper())
    assert "s3cret" not in workshop.log
    assert (printed["RECIPE"], printed["PASSED"], printed["MAX_JOBS"]) == ("1", "yes", "2")
    assert printed["HOME"] == str(workshop.work / "home")
    inside = sandbox == "auto" and SANDBOX == "bubblewrap"
    assert printed["TMPDIR"] == ("/tmp" if inside else str(workshop.work / "tmp"))
    assert printed["SOURCE_DATE_EPOCH"] == str(EPOCH)
    assert {"NOT_SET", "PYTHONPATH", "LD_PRELOAD", "TORCH_HOME", "PWD"} - set(printed) >= {"NOT_SET", "PYTHONPATH"}
    assert "TORCH_HOME" not in printed


@in_bubblewrap
def test_a_build_cannot_read_the_callers_home(workshop: Workshop, own_places: Path) -> None:
    (own_places / ".netrc").write_text("s3cret")
    code = f"import os\nprint(os.path.exists({str(own_places / '.netrc')!r}), os.listdir('/run'))"

    workshop.build(setup_that(code))

    assert "False []" in workshop.log
    assert "s3cret" not in workshop.log


@in_bubblewrap
def test_a_build_cannot_read_the_store(workshop: Workshop, own_places: Path) -> None:
    workshop.root = own_places
    (own_places / "repository").mkdir()

    workshop.build(setup_that(f"import os\nprint(os.path.exists({str(own_places / 'repository')!r}))"))

    assert "False" in workshop.log.splitlines()


@in_bubblewrap
def test_what_a_recipe_names_stays_readable(workshop: Workshop, tmp_path: Path) -> None:
    cann = tmp_path / "cann"
    (cann / "include").mkdir(parents=True)
    code = "import os\nprint(os.listdir(os.environ['ASCEND_HOME_PATH']))"

    workshop.build(setup_that(code), pass_env=("ASCEND_HOME_PATH",), environ={"ASCEND_HOME_PATH": str(cann)})

    assert "['include']" in workshop.log


ASK_NETWORK = "import urllib.request\nurllib.request.urlopen('http://downloads.example.invalid/x', timeout=20)"


@in_sandbox
def test_a_build_that_asks_the_network_is_told_so(workshop: Workshop) -> None:
    with pytest.raises(BuildError) as caught:
        workshop.build(setup_that(ASK_NETWORK))

    cause = "the build asked for the network, which a build does not have"
    assert caught.value.message.startswith(f"tiny_part cannot be built: {cause}: ")
    assert "Temporary failure in name resolution" in caught.value.message


@pytest.fixture
def only_unshare(tmp_path: Path) -> dict[str, str]:
    """Return what makes a caller one without bubblewrap."""
    programs = tmp_path / "callers-programs"
    programs.mkdir()
    if place := shutil.which("unshare"):
        (programs / "unshare").symlink_to(place)
    if choose_sandbox("auto", path=str(programs)).kind != "network namespace":
        pytest.skip("no network namespace can be made on this machine")
    return {"PATH": str(programs)}


def test_without_bubblewrap_the_network_is_shut_off_too(workshop: Workshop, only_unshare: dict[str, str]) -> None:
    with pytest.raises(BuildError, match="the build asked for the network, which a build does not have"):
        workshop.build(setup_that(ASK_NETWORK), sandbox="require", environ=only_unshare)

    built = workshop.build(EXTENSION, sandbox="require", environ=only_unshare)
    assert built.facts.sandbox == "network namespace"


@in_sandbox
def test_a_service_of_the_machine_cannot_be_reached(workshop: Workshop) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket\nsocket.create_connection({server.getsockname()!r}, timeout=5)"
        with pytest.raises(BuildError, match=r"Connection refused|Network is unreachable"):
            workshop.build(setup_that(code))


@in_bubblewrap
@pytest.mark.parametrize(
    ("code", "path"),
    [
        pytest.param("open('/var/tmp/toolkit-was-here', 'w')", "/var/tmp/toolkit-was-here", id="python"),
        pytest.param("import subprocess; subprocess.check_call('touch /var/tmp/toolkit-was-here', shell=True)",
                     "/var/tmp/toolkit-was-here", id="touch"),
        pytest.param("import subprocess; subprocess.check_call('echo x > /var/tmp/toolkit-was-here', shell=True)",
                     "/var/tmp/toolkit-was-here", id="shell"),
        pytest.param("import os; os.mkdir('/run/toolkit-was-here')", "/run/toolkit-was-here", id="a hidden folder"),
        pytest.param("import sys; open(sys.prefix + '/was-here', 'w')", "{environment}/was-here", id="its environment"),
    ],
)  # fmt: skip
def test_a_build_that_writes_outside_its_folder_is_told_so(workshop: Workshop, code: str, path: str) -> None:
    with pytest.raises(BuildError) as caught:
        workshop.build(setup_that(code))

    path = path.format(environment=workshop.environment)
    escaped = os.path.lexists(path)
    remove_tree(Path(path))
    assert not escaped
    assert caught.value.message == f"tiny_part cannot be built: the build writes outside its folder: {path}"


@in_bubblewrap
def test_the_temporary_folder_of_the_machine_is_the_builds_own(workshop: Workshop) -> None:
    workshop.build(setup_that("open('/tmp/toolkit-was-here', 'w').close()"))

    escaped = os.path.lexists("/tmp/toolkit-was-here")
    remove_tree(Path("/tmp/toolkit-was-here"))
    assert not escaped
    assert (workshop.work / "tmp" / "toolkit-was-here").exists()


@in_bubblewrap
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("open({!r})", id="reads"),
        pytest.param("open({!r}, 'w')", id="writes"),
    ],
)
def test_a_build_that_needs_a_hidden_file_is_told_that_it_is_hidden(
    workshop: Workshop, own_places: Path, code: str
) -> None:
    (own_places / "tool").mkdir()
    (own_places / "tool" / "settings").touch()

    with pytest.raises(BuildError) as caught:
        workshop.build(setup_that(code.format(str(own_places / "tool" / "settings"))))

    assert "No such file or directory" in caught.value.message
    assert caught.value.hint.startswith("a build does not see the machine's ")


# --- why it failed ---------------------------------------------------------------------------------------------


def test_the_first_error_of_the_compiler_is_quoted(workshop: Workshop) -> None:
    files = {**EXTENSION, "src/native.c": f"{NATIVE}\nint one(void) {{ return missing_one; }}\n"}

    with pytest.raises(BuildError) as caught:
        workshop.build(files)

    assert "cannot be built: src/native.c:8:24: error: " in caught.value.message
    assert "missing_one" in caught.value.message
    log = workshop.work / "logs" / "build.log"
    assert caught.value.hint == (
        f"the log is {log}, the folder is kept: `toolkit debug shell --component tiny_part` opens a shell in it"
    )
    assert caught.value.details


@with_cmake
def test_a_stop_of_cmake_is_quoted(workshop: Workshop) -> None:
    files = {**CMAKE, "CMakeLists.txt": f'{CMAKE_LISTS}message(FATAL_ERROR "the headers are\\nnot there")\n'}

    with pytest.raises(BuildError) as caught:
        workshop.build(files, debug_command="toolkit debug shell --recipe tiny")

    assert caught.value.message == (
        "tiny_part cannot be built: CMake Error at CMakeLists.txt:6 (message): the headers are not there"
    )
    assert caught.value.hint.endswith("the folder is kept: `toolkit debug shell --recipe tiny` opens a shell in it")


def test_a_killed_compiler_is_told_from_an_error_in_the_sources(workshop: Workshop, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / "cc1").write_text("#!/bin/sh\nkill -9 $$\n")
    (killed / "cc1").chmod(0o755)

    with pytest.raises(BuildError) as caught:
        workshop.build(EXTENSION, env={"CFLAGS": f"-B{killed}", "KEEP": str(killed)})

    assert "cannot be built: a compiler ran out of memory: " in caught.value.message
    assert "Killed signal terminated program cc1" in caught.value.message
    assert caught.value.hint.startswith("use fewer jobs with --jobs; the log is ")


def test_a_full_disk_is_the_file_systems_fault(workshop: Workshop, small_disk: Path) -> None:
    code = "open('filled', 'wb').write(bytes(4 << 20))"
    workshop.root = small_disk

    with pytest.raises(
        StorageError, match=r"^tiny_part cannot be built: the disk is full: OSError: \[Errno 28\]"
    ) as caught:
        workshop.build(setup_that(code))

    assert caught.value.hint == "free some space, or choose another place with --store"


# --- a build that is stopped, and the folder that it leaves -----------------------------------------------------


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_an_interrupt_ends_all_that_the_build_started(workshop: Workshop, sandbox: SandboxMode) -> None:
    seconds = f"{60 + os.getpid()}.25"
    code = (
        "import subprocess, time\n"
        f"children = [subprocess.Popen(['sh', '-c', 'sleep {seconds}; true']) for _ in range(2)]\n"
        "print('[1/2] begun')\ntime.sleep(60)"
    )

    def interrupt(done: int, total: int | None) -> None:
        assert _wait_until(lambda: bool(_processes_with(seconds)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workshop.build(setup_that(code), sandbox=sandbox, on_progress=interrupt)

    assert _wait_until(lambda: not _processes_with(seconds))
    assert not (workshop.root / "work-wheels").exists()


@in_bubblewrap
def test_what_leaves_the_session_ends_with_the_build_too(workshop: Workshop) -> None:
    seconds = f"{61 + os.getpid()}.5"
    code = f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{seconds}'], stdout=-3, stderr=-3)"

    workshop.build(setup_that(code))

    assert _processes_with(seconds) == []


def _wait_until(holds: Callable[[], bool]) -> bool:
    limit = time.monotonic() + 10
    while not holds() and time.monotonic() < limit:
        time.sleep(0.02)
    return holds()


def _processes_with(word: str) -> list[int]:
    """Return the processes that sleep for so many seconds."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0") and b"sleep" in path.read_bytes():
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_a_shell_opens_where_the_build_failed(workshop: Workshop) -> None:
    files = setup_that("open('left-here', 'w').close()\nraise SystemExit('no')")
    with pytest.raises(BuildError):
        workshop.build(files, env={"RECIPE": "1"}, environ={"SECRET_TOKEN": "s3cret"}, subfolder="inner")

    argv, env, cwd = shell_command(workshop.work, {"TERM": "xterm", "SECRET_TOKEN": "s3cret"})
    script = "ls; echo $RECIPE $TERM $SECRET_TOKEN; umask; command -v python; exit 7"
    done = subprocess.run(argv, env=env, cwd=cwd, input=script, capture_output=True, text=True, check=False)

    lines = done.stdout.splitlines()
    assert done.returncode == 7, done.stderr
    assert lines == ["left-here", "setup.py", "tiny", "1 xterm", "0022", f"{workshop.environment}/bin/python"]
    assert cwd == workshop.work / "tree" / "inner"
    assert (workshop.work / RECORD).stat().st_mode & 0o777 == 0o600


def test_what_a_failed_build_left_does_not_reach_the_next(workshop: Workshop) -> None:
    litter = (
        "import os, pathlib, sys\n"
        "places = [pathlib.Path(os.environ[name]) for name in ('HOME', 'TMPDIR')]\n"
        "print('found', sum((os.listdir(place) for place in places), []))\n"
        "for place in places:\n"
        "    (place / 'locked').mkdir(); (place / 'locked' / 'file').touch(0o400); (place / 'locked').chmod(0o500)\n"
    )
    with pytest.raises(BuildError):
        workshop.build(setup_that(f"{litter}raise SystemExit('no')"), sandbox="off")

    workshop.build(setup_that(litter), sandbox="off")

    assert workshop.log.splitlines()[1] == "found []"


# --- a build that means harm ------------------------------------------------------------------------------------

FORGE = """
import json, os
record = json.load(open('../build.json'))
record['prefix'], record['env'] = [], {'FORGED': '1'}
"""


@in_bubblewrap
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("open('../build.json', 'w').write(json.dumps(record))", id="writes it"),
        pytest.param("os.unlink('../build.json')", id="removes it"),
        pytest.param("os.rename('../tmp', '../tmp2')", id="changes its folder"),
        pytest.param("open('../logs/build.log', 'w')", id="writes the log"),
        pytest.param("open('../bin/cc', 'w')", id="writes a compiler"),
    ],
)
def test_a_build_cannot_write_what_toolkit_says_of_it(workshop: Workshop, code: str) -> None:
    with pytest.raises(BuildError, match=r"Read-only file system|Device or resource busy|writes outside"):
        workshop.build(setup_that(FORGE + code))

    argv, env, _ = shell_command(workshop.work, {})
    assert Path(argv[0]).name == "bwrap"
    assert "FORGED" not in env


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("open('../build.json', 'w').write(json.dumps(record))", id="written"),
        pytest.param("os.unlink('../build.json')", id="removed"),
        pytest.param("os.unlink('../build.json'); os.mkdir('../build.json')", id="a folder"),
    ],
)
@pytest.mark.parametrize("way", ["off", "network namespace"])
def test_what_an_unhindered_build_makes_of_its_record_is_undone(
    workshop: Workshop, only_unshare: dict[str, str], way: str, code: str
) -> None:
    sandbox: SandboxMode = "off" if way == "off" else "require"
    with pytest.raises(BuildError, match=r"^tiny_part cannot be built: its build ended with exit code 1$"):
        workshop.build(setup_that(f"{FORGE}{code}\nraise SystemExit(1)"), sandbox=sandbox, environ=only_unshare)

    argv, env, _ = shell_command(workshop.work, {})
    assert (Path(argv[0]).name == "unshare") is (way != "off")
    assert env["VIRTUAL_ENV"] == str(workshop.environment)
    assert "FORGED" not in env


@pytest.mark.parametrize("code", ["", "\nraise SystemExit(1)"], ids=["ends well", "fails"])
@pytest.mark.parametrize(
    "harm",
    [
        pytest.param("shutil.rmtree('../logs')", id="logs removed"),
        pytest.param("shutil.rmtree('../logs'); os.symlink('/etc', '../logs')", id="logs a symlink"),
        pytest.param("os.unlink('../logs/build.log'); os.symlink('/etc/hostname', '../logs/build.log')",
                     id="log a symlink"),
        pytest.param("os.rename('../logs', '../other'); os.symlink('other', '../logs')", id="logs behind a symlink"),
        pytest.param("os.unlink('../logs/build.log'); os.mkdir('../logs/build.log')", id="log a folder"),
        pytest.param("shutil.rmtree(os.path.dirname(os.getcwd()))", id="all removed"),
    ],
)  # fmt: skip
def test_a_build_that_harms_its_own_folder_fails_as_a_build(workshop: Workshop, harm: str, code: str) -> None:
    try:
        workshop.build(setup_that(f"import os, shutil\n{harm}{code}"), sandbox="off")
    except BuildError as fault:
        assert fault.message.startswith("tiny_part cannot be built: its build ended with exit code ")  # noqa: PT017
        assert fault.message.endswith(f", and removed or replaced its log {workshop.work}/logs/build.log")  # noqa: PT017
        assert "the log is" not in fault.hint  # noqa: PT017
    else:
        assert not code
        assert "all" not in harm


@in_bubblewrap
def test_a_wheel_of_another_place_is_not_followed(workshop: Workshop) -> None:
    secret = workshop.root / "secret.whl"
    secret.write_text("secret")
    code = f"import os; os.mkdir('dist'); os.symlink({str(secret)!r}, 'dist/tiny-1-py3-none-any.whl'); os._exit(0)"

    with pytest.raises(BuildError, match=r"left tiny-1-py3-none-any\.whl in .*/dist, which is no regular file$"):
        workshop.build(setup_that(code))


def test_a_damaged_wheel_is_the_builds_fault(workshop: Workshop) -> None:
    code = "import os; os.mkdir('dist'); open('dist/tiny-1-py3-none-any.whl', 'w').write('no'); os._exit(0)"

    with pytest.raises(BuildError, match=r"^the build left no good wheel: .*tiny-1-py3-none-any\.whl"):
        workshop.build(setup_that(code))


def test_what_a_wheel_brings_beside_its_package_is_told(workshop: Workshop) -> None:
    files = {"setup.py": "from setuptools import setup\nsetup(name='tiny', version='1', packages=['tiny', 'torch'])\n",
             "tiny/__init__.py": "", "torch/__init__.py": ""}  # fmt: skip

    assert workshop.build(files).findings == ("tiny-1-py3-none-any.whl also brings torch beside 'tiny'",)
