from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from tests.limits import ordinary_user
from tests.wheels import make_wheel
from toolkit import sources
from toolkit.errors import SourceError
from toolkit.files import remove_tree, sha256_file, sha256_files
from toolkit.lock import read_lock, require_current, write_lock
from toolkit.model import Component, Contract, FetchedBase, Interpreter, Lock, LockedComponent, Recipe, Target
from toolkit.platforms import accepts_wheel
from toolkit.sources import installed
from toolkit.sources.installed import Base, Locked, contents
from toolkit.sources.installed.identity import normal_version
from toolkit.sources.installed.search import Copy
from toolkit.store import Store
from toolkit.wheels.archive import open_wheel

CP311 = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")


def lock_of(package: str = "ops", version: str = "", *, optional: bool = False) -> Locked:
    return Locked(package=package, version=version, optional=optional)


LOCKED = lock_of()
FILES = {"ops/__init__.py": "raise SystemExit('imported')\n", "ops/meta.py": "def shape(a, b):\n    return a / b\n"}
WHEEL = "ops-1.0.0-py3-none-any.whl"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A target interpreter of its own, CANN homes below `root`, and the environment that a caller has."""

    root: Path
    python: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})

    @property
    def site(self) -> Path:
        return next((self.python.parents[1] / "lib").glob("python*")) / "site-packages"

    @property
    def home(self) -> Path:
        return self.root / "cann"

    @property
    def cann_site(self) -> Path:
        return self.home / "python/site-packages"

    @property
    def interpreter(self) -> Interpreter:
        return Interpreter(
            executable=self.python, version="3.11.9", python_tag="cp311", platforms=(CP311.platform,), torch=None
        )

    def source_set_env(self) -> None:
        """Set what CANN's set_env.sh sets."""
        self.env.update(ASCEND_HOME_PATH=str(self.home), ASCEND_TOOLKIT_HOME=str(self.home))

    def digest(self, locked: Locked = LOCKED, target: Target = CP311) -> str:
        return installed.artifact_digest(locked, target, interpreter=self.interpreter, env=self.env)

    def fetch(self, locked: Locked = LOCKED, target: Target = CP311) -> FetchedBase:
        return installed.fetch(
            locked, component="ops", target=target, store=self.store, offline=True, interpreter=self.interpreter,
            env=self.env,
        )  # fmt: skip

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    def failure(self, locked: Locked = LOCKED, target: Target = CP311) -> SourceError:
        with pytest.raises(SourceError) as caught:
            self.digest(locked, target)
        return caught.value


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("target")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture
def machine(tmp_path: Path, clean_python: Path) -> Iterator[Machine]:
    made = Machine(root=tmp_path, python=clean_python)
    yield made
    for path in made.site.iterdir():
        remove_tree(path)


def install(
    site: Path, files: dict[str, str] = FILES, *, name: str = "ops", version: str = "1.0.0", metadata: bool = True
) -> Path:
    """Put files below a folder, with metadata as pip writes it; return the package's folder."""
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(content)
    if metadata:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: six\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
        (info / "INSTALLER").write_text("pip\n")
        (info / "direct_url.json").write_text('{"url": "file:///somewhere"}')
        (info / "entry_points.txt").write_text("[torch.backends]\nops = ops:load\n")
    return site / "ops"


def ship(machine: Machine, version: str = "9.1.0", **wanted: object) -> Path:
    """Let a CANN home ship the package, and source its set_env.sh."""
    root = install(machine.cann_site, **wanted)  # type: ignore[arg-type]
    (machine.home / "version.info").write_text(f"Version={version}\nversion_dir={version}\n")
    machine.source_set_env()
    return root


def members(base: FetchedBase) -> set[str]:
    return set(zipfile.ZipFile(base.path).namelist())


# --- where it is found -----------------------------------------------------------------------------------------


def test_a_package_that_cann_ships_is_packed_as_it_is_without_being_imported(machine: Machine) -> None:
    root = ship(machine)
    before = {path: sha256_file(path) for path in root.rglob("*") if path.is_file()}
    base = machine.fetch()

    assert (base.component, base.kind, base.file, base.distribution, base.version, base.target) == (
        "ops", "installed", WHEEL, "ops", "1.0.0", CP311,
    )  # fmt: skip
    assert base.digest == machine.digest()
    assert base.path == machine.store.root / "base" / base.digest / WHEEL
    with open_wheel(base.path) as wheel:
        assert {name: wheel.read(name).decode() for name in FILES} == FILES
        assert wheel.verify_record() == []
    assert {path: sha256_file(path) for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("variable", "below"),
    [
        ("ASCEND_HOME_PATH", "python/site-packages"),
        ("ASCEND_TOOLKIT_HOME", "python/site-packages"),
        ("ASCEND_HOME_PATH", "latest/python/site-packages"),
    ],
)
def test_every_home_that_set_env_may_name_is_looked_in(machine: Machine, variable: str, below: str) -> None:
    install(machine.home / below)
    machine.env[variable] = str(machine.home)
    assert re.fullmatch("[0-9a-f]{64}", machine.digest())


def test_a_package_that_pip_installed_is_found_through_the_interpreter(machine: Machine, tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "ops", "1.0.0", {**FILES, "ops/data.txt": "1"})
    words = ["--python", str(machine.python), "install", "--no-index", "--no-deps", "--quiet", str(path)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    base = machine.fetch()

    info = "ops-1.0.0.dist-info"
    assert members(base) == {*FILES, "ops/data.txt", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"}


def test_of_two_copies_the_one_is_taken_that_python_would_import(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    other = install(machine.site, {**FILES, "ops/meta.py": "other\n"}, version="0.9")
    first = ship(machine)
    with caplog.at_level(logging.WARNING):
        base = machine.fetch()

    assert base.version == "1.0.0"
    assert caplog.messages == [f"ops: {first} is taken, as Python would; there is another copy at {other}"]
    del machine.env["ASCEND_HOME_PATH"], machine.env["ASCEND_TOOLKIT_HOME"]
    assert machine.fetch().version == "0.9"


def test_one_folder_under_two_names_is_one_copy(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    ship(machine)
    (machine.home / "latest").symlink_to(".")
    (machine.root / "alias").symlink_to(machine.home)
    machine.env["ASCEND_TOOLKIT_HOME"] = str(machine.root / "alias")
    with caplog.at_level(logging.WARNING):
        machine.fetch()
    assert caplog.messages == []


def test_the_callers_own_pythonpath_is_not_looked_in(machine: Machine, tmp_path: Path) -> None:
    """An overlay that is active has the patched package, which is no base."""
    install(tmp_path / "overlay", {**FILES, "ops/meta.py": "patched\n"})
    ship(machine)
    before = machine.digest()
    machine.env["PYTHONPATH"] = str(tmp_path / "overlay")
    assert machine.digest() == before


def test_the_current_folder_is_not_looked_in(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "here", {**FILES, "json.py": "raise SystemExit('here')\n"})
    monkeypatch.chdir(tmp_path / "here")
    assert "'ops' is not installed" in machine.failure().message


def test_an_editable_install_is_found_where_it_lies(machine: Machine, tmp_path: Path) -> None:
    install(tmp_path / "checkout", {**FILES, "ops/version.py": "__version__: str = '2.0'\n"}, metadata=False)
    (machine.site / "ops.pth").write_text(f"{tmp_path / 'checkout'}\n")
    assert machine.fetch().version == "2.0"


def test_an_editable_install_through_a_finder_is_found(machine: Machine, tmp_path: Path) -> None:
    install(tmp_path / "checkout", metadata=False)
    (machine.site / "finder.py").write_text(
        "import importlib.util, sys\nclass Finder:\n    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == 'ops':\n            return importlib.util.spec_from_file_location(name, "
        f"{str(tmp_path / 'checkout/ops/__init__.py')!r})\nsys.meta_path.append(Finder)\n"
    )
    (machine.site / "ops.pth").write_text("import finder\n")
    assert {"ops/__init__.py", "ops/meta.py"} <= members(machine.fetch())


def test_a_folder_without_a_module_of_its_own_does_not_hide_the_package(machine: Machine) -> None:
    (machine.cann_site / "ops").mkdir(parents=True)
    machine.source_set_env()
    install(machine.site)
    assert machine.fetch().version == "1.0.0"


@pytest.mark.parametrize(
    ("files", "package", "what"),
    [
        ({"ops.py": ""}, "ops", "{site}/ops.py"),
        ({}, "sys", "built-in"),
    ],
    ids=["a module", "a built-in one"],
)
def test_what_is_no_package_is_refused(machine: Machine, files: dict[str, str], package: str, what: str) -> None:
    install(machine.site, files, metadata=False)
    fault = machine.failure(lock_of(package))
    assert (
        fault.message == f"{package!r} is {what.format(site=machine.site)}, expected a package in a folder of its own"
    )
    assert fault.hint == "name the folder that Python imports it from as `package` in the recipe"


# --- where it is not there -------------------------------------------------------------------------------------


def test_a_missing_package_is_answered_with_every_place_and_what_to_do(machine: Machine) -> None:
    machine.env["ASCEND_HOME_PATH"] = str(machine.home)
    fault = machine.failure()

    assert fault.message == f"'ops' is not installed: neither a CANN home nor {machine.python} has it"
    assert fault.hint == "source CANN's set_env.sh, or name the interpreter that has it with --python"
    assert fault.details[:3] == (
        "ASCEND_TOOLKIT_HOME is not set",
        f"it is not in {machine.cann_site}",
        f"it is not in {machine.home}/latest/python/site-packages",
    )
    assert f"it is not in {machine.site}" in fault.details
    assert [line for line in fault.details if " in ." in line or line.endswith("in ")] == []


def test_an_optional_package_that_is_missing_has_a_digest_of_its_own(machine: Machine) -> None:
    locked = lock_of("ops", optional=True)
    assert sources.is_absent(machine.digest(locked))
    assert locked.covers(CP311)

    root = install(machine.site)
    assert not sources.is_absent(machine.digest(locked))
    shutil.rmtree(root)
    assert sources.is_absent(machine.digest(locked))
    assert "is not installed" in machine.failure().message


def test_an_interpreter_that_does_not_answer_is_named(machine: Machine) -> None:
    broken = Machine(root=machine.root, python=Path("/bin/false"), env=machine.env)
    fault = broken.failure()
    assert fault.message == "/bin/false cannot be asked where 'ops' is"
    assert fault.hint == "name another interpreter with --python"


# --- which release it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "cann", "fits"),
    [
        ("9.1", "9.1.0", True),
        ("9", "9.1.0", True),
        ("9.1.0", "9.1", True),
        ("9.1", "9.1.RC1", True),
        ("9.1", "9.10.0", False),
        ("9.1", "9.0.0", False),
        ("1.0", "9.1.0", False),
    ],
)
def test_a_package_of_canns_is_of_canns_release(machine: Machine, asked: str, cann: str, fits: bool) -> None:
    root = ship(machine, version=cann)
    locked = lock_of("ops", version=asked)
    if fits:
        assert machine.digest(locked) == machine.digest()
        return
    fault = machine.failure(locked)
    assert fault.message == f"{root} is of release {cann}, expected {asked}"
    assert fault.hint == "source the set_env.sh of the CANN that has it, or change `version` in the recipe"


def test_any_other_package_is_of_its_own(machine: Machine) -> None:
    install(machine.site)
    assert machine.digest(lock_of("ops", version="1.0"))
    assert machine.failure(lock_of("ops", version="9.1")).message.endswith("is of release 1.0.0, expected 9.1")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=9.1.0\n"),
        ("x86_64-linux/ascend_toolkit_install.info", "version=9.1.0\n"),
        ("version.info", "Version=9.1.0\n"),
        ("opp/version.info", "Version=9.1.0\n"),
        ("share/info/ops_transformer/version.info", "Version=9.1.0\n"),
    ],
)
def test_canns_release_stands_in_one_of_its_files(machine: Machine, file: str, content: str) -> None:
    install(machine.cann_site)
    (machine.home / file).parent.mkdir(parents=True, exist_ok=True)
    (machine.home / file).write_text(content)
    machine.source_set_env()
    assert machine.digest(lock_of("ops", version="9.1"))


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"ops/version.info": "Version=9.1.RC2\n", "ops/version.py": "__version__ = '3'"}, "9.1rc2"),
        ({"ops/version.py": "x = 1\n__version__ = '3.1'\n"}, "3.1"),
        ({"ops/_version.py": "__version__: str = '3.2'\n"}, "3.2"),
        ({"ops/__init__.py": "__version__ = '3.3'\nraise SystemExit\n"}, "3.3"),
        ({"ops/version.py": "__version__ = make()\n"}, "0"),
        ({"ops/version.py": "def f(:\n"}, "0"),
        ({"ops/version.py": "print('hello')\n"}, "0"),
    ],
    ids=["version.info", "version.py", "_version.py", "__init__.py", "computed", "no Python", "none"],
)
def test_without_metadata_its_files_say_the_version(machine: Machine, files: dict[str, str], version: str) -> None:
    install(machine.site, {**FILES, **files}, metadata=False)
    base = machine.fetch()
    assert (base.distribution, base.version, base.file) == ("ops", version, f"ops-{version}-py3-none-any.whl")


def test_without_any_version_of_its_own_it_has_canns(machine: Machine) -> None:
    ship(machine, version="9.1.0", metadata=False)
    assert machine.fetch().version == "9.1.0"


@pytest.mark.parametrize(
    ("said", "normal"),
    [
        ("1.0.0", "1.0.0"), ("9.1.RC1", "9.1rc1"), ("8.0.RC3.alpha001", "8.0rc3+alpha001"), ("1.0+5", "1.0+5"),
        ("1.0+Git-12", "1.0+git.12"), ("2.1.0.B010_x", "2.1.0+b010.x"), ("unknown", "0+unknown"), ("", "0"),
        ("1!2.0", "1!2.0"), ("../x", "0+x"),
    ],
)  # fmt: skip
def test_a_version_is_brought_into_normal_form(said: str, normal: str) -> None:
    assert normal_version(said) == normal


def test_metadata_with_a_version_of_another_form_says_the_normal_one(machine: Machine) -> None:
    install(machine.site, version="9.1.RC1")
    base = machine.fetch()
    with open_wheel(base.path) as wheel:
        assert wheel.read("ops-9.1rc1.dist-info/METADATA") == (
            b"Metadata-Version: 2.1\nName: ops\nVersion: 9.1rc1\nRequires-Dist: six\n"
        )
        assert "ops-9.1rc1.dist-info/entry_points.txt" in wheel.members


def test_metadata_of_another_name_is_found_by_what_it_lists(machine: Machine) -> None:
    install(machine.site, name="CANN-ops", version="2.0")
    install(machine.site, {"ops_more/__init__.py": ""}, name="ops-more", version="3.0")
    base = machine.fetch()
    assert (base.distribution, base.file) == ("CANN-ops", "CANN_ops-2.0-py3-none-any.whl")


def test_egg_info_serves_as_well(machine: Machine) -> None:
    install(machine.site, metadata=False)
    info = machine.site / "ops_dist.egg-info"
    info.mkdir()
    for name, content in {
        "PKG-INFO": "Metadata-Version: 2.1\nName: ops-dist\nVersion: 4.0\n", "top_level.txt": "ops\n",
        "SOURCES.txt": "setup.py\n", "entry_points.txt": "[a]\nb = ops:c\n",
    }.items():  # fmt: skip
        (info / name).write_text(content)
    assert members(machine.fetch()) == {
        *FILES, *(f"ops_dist-4.0.dist-info/{name}" for name in
                  ("METADATA", "WHEEL", "RECORD", "top_level.txt", "entry_points.txt")),
    }  # fmt: skip


def test_what_tells_about_the_installation_stays_out(machine: Machine) -> None:
    install(machine.site)
    assert {name for name in members(machine.fetch()) if "dist-info" in name} == {
        f"ops-1.0.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
    }


def test_two_distributions_with_one_package_are_refused(machine: Machine) -> None:
    root = install(machine.site)
    install(machine.site, version="1.1")
    fault = machine.failure()
    assert fault.message == f"{root} is of ops-1.0.0.dist-info and of ops-1.1.dist-info, expected one"
    assert fault.hint == "remove the one that is out of date"


def test_what_pip_left_half_removed_is_no_distribution(machine: Machine) -> None:
    install(machine.site, name="Ops-Dist")
    shutil.copytree(machine.site / "Ops_Dist-1.0.0.dist-info", machine.site / "~ps_Dist-1.0.0.dist-info")
    assert machine.fetch().version == "1.0.0"


@pytest.mark.parametrize("metadata", ["", "Name: ../evil\nVersion: 1.0\n", "Name: ops\n"], ids=repr)
def test_metadata_that_names_no_distribution_is_refused(machine: Machine, metadata: str) -> None:
    install(machine.site)
    file = machine.site / "ops-1.0.0.dist-info/METADATA"
    file.write_text(metadata)
    fault = machine.failure()
    assert fault.message.startswith(f"{file} has the name ")
    assert fault.hint == "install the package again"


# --- its files and their digest --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["edited", "added", "removed", "made executable", "metadata", "entry points"])
def test_whatever_is_done_to_the_package_changes_the_digest(machine: Machine, what: str) -> None:
    root = install(machine.site)
    before = machine.digest()
    if what == "edited":
        (root / "meta.py").write_text("def shape(a, b):\n    return a//b\n")
    elif what == "added":
        (root / "more.json").write_text("{}")
    elif what == "removed":
        (root / "meta.py").unlink()
    elif what == "made executable":
        (root / "meta.py").chmod(0o755)
    else:
        name = "METADATA" if what == "metadata" else "entry_points.txt"
        with (machine.site / "ops-1.0.0.dist-info" / name).open("a") as stream:
            stream.write("More: 1\n")
    assert machine.digest() != before


@pytest.mark.parametrize("what", ["touched", "compiled", "another package", "INSTALLER", "elsewhere"])
def test_what_does_not_change_the_package_does_not_change_the_digest(machine: Machine, what: str) -> None:
    root = install(machine.site)
    before = machine.digest()
    if what == "touched":
        os.utime(root / "meta.py", (1, 1))
        (root / "meta.py").chmod(0o600)
    elif what == "compiled":
        (root / "__pycache__").mkdir()
        (root / "__pycache__" / "meta.cpython-311.pyc").write_bytes(b"\0")
    elif what == "another package":
        install(machine.site, {"ops2/__init__.py": ""}, name="ops2")
    elif what == "INSTALLER":
        (machine.site / "ops-1.0.0.dist-info/INSTALLER").write_text("uv\n")
    else:
        shutil.rmtree(machine.cann_site, ignore_errors=True)
        for path in list(machine.site.iterdir()):
            shutil.copytree(path, machine.cann_site / path.name)
        machine.source_set_env()
    assert machine.digest() == before


def test_a_module_that_is_there_only_compiled_is_packed(machine: Machine) -> None:
    root = install(machine.site)
    (root / "secret.pyc").write_bytes(b"\0")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "meta.cpython-311.pyc").write_bytes(b"\0")
    found = members(machine.fetch())
    assert "ops/secret.pyc" in found
    assert not [name for name in found if "__pycache__" in name]


def test_equal_packages_on_two_machines_give_equal_wheels(machine: Machine, tmp_path: Path) -> None:
    ship(machine)
    other = Machine(root=tmp_path / "other", python=machine.python)
    ship(other)
    assert machine.fetch().path.read_bytes() == other.fetch().path.read_bytes()


def test_native_parts_make_it_a_wheel_for_the_target(machine: Machine) -> None:
    root = install(machine.site)
    (root / "lib").mkdir()
    (root / "lib" / "libops.so.1").write_bytes(b"\x7fELF")
    base = machine.fetch()
    assert base.file == "ops-1.0.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert accepts_wheel(base.file, python_tag=CP311.python_tag, platform=CP311.platform)


@pytest.mark.parametrize(
    "target",
    [
        Target(python_tag="cp312", platform=CP311.platform),
        Target(python_tag="cp311", platform="manylinux_2_28_aarch64"),
    ],
    ids=str,
)
def test_native_parts_of_this_machine_are_none_for_another(machine: Machine, target: Target) -> None:
    root = install(machine.site)
    assert machine.fetch(target=target).target == target
    (root / "_C.so").write_bytes(b"\x7fELF")
    fault = machine.failure(target=target)
    assert fault.message == f"{root} has native parts (ops/_C.so), which are for {machine.python}, not for {target}"
    assert fault.hint == "build on a machine that is the target"


def test_libraries_that_were_bundled_beside_it_come_along(machine: Machine) -> None:
    install(machine.site, name="cann-ops")
    for folder in ("ops.libs", "cann_ops.libs", "other.libs"):
        (machine.site / folder).mkdir()
        (machine.site / folder / "libx.so").write_bytes(b"\x7fELF")
    found = members(machine.fetch())
    assert {"ops.libs/libx.so", "cann_ops.libs/libx.so"} <= found
    assert "other.libs/libx.so" not in found


# --- links and other things that are no files ------------------------------------------------------------------


def test_links_inside_the_package_are_followed(machine: Machine) -> None:
    root = install(machine.site)
    (root / "same.py").symlink_to("meta.py")
    (root / "more").mkdir()
    (root / "more" / "a.py").write_text("a\n")
    (root / "again").symlink_to("more")
    base = machine.fetch()
    with open_wheel(base.path) as wheel:
        assert wheel.read("ops/same.py").decode() == FILES["ops/meta.py"]
        assert wheel.read("ops/again/a.py") == wheel.read("ops/more/a.py") == b"a\n"


def test_the_package_itself_may_be_a_link(machine: Machine, tmp_path: Path) -> None:
    shutil.move(install(machine.site), tmp_path / "really")
    (machine.site / "ops").symlink_to(tmp_path / "really")
    assert set(FILES) <= members(machine.fetch())


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("../../{tmp}/outside.txt", "leaves the package, to {tmp}/outside.txt"),
        ("{tmp}", "leaves the package, to {tmp}"),
        ("nothing.py", "leads nowhere"),
        ("link", "leads nowhere"),
        (".", "leads back to a folder that it lies in"),
    ],
    ids=["a file outside", "a folder outside", "nothing", "itself", "a circle"],
)
def test_a_link_that_cannot_be_packed_is_named(machine: Machine, tmp_path: Path, target: str, why: str) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    root = install(machine.site)
    (root / "link").symlink_to(target.format(tmp=tmp_path).replace("../../", ""))
    fault = machine.failure()
    assert fault.message == f"{root}/link is a link that {why.format(tmp=tmp_path)}"
    assert fault.hint == "put what belongs there in its place"


def test_a_neighbour_whose_name_begins_the_same_is_outside(machine: Machine) -> None:
    root = install(machine.site)
    install(machine.site, {"ops2/a.py": ""}, metadata=False)
    (root / "link").symlink_to(machine.site / "ops2")
    assert machine.failure().message == f"{root}/link is a link that leaves the package, to {machine.site}/ops2"


def test_a_pipe_is_refused_and_not_waited_for(machine: Machine) -> None:
    root = install(machine.site)
    os.mkfifo(root / "pipe")
    assert machine.failure().message == f"{root}/pipe is no regular file"


@pytest.mark.parametrize("name", [b"back\\slash.py", b"latin-\xe4.py"], ids=repr)
def test_a_name_that_no_wheel_can_hold_is_refused(machine: Machine, name: bytes) -> None:
    root = install(machine.site)
    Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("")
    assert (
        machine.failure().message == f"{machine.site} has a file that no wheel can hold: {'ops/' + os.fsdecode(name)!r}"
    )


def test_a_file_that_may_not_be_read_is_named(clean_python: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        root = install(Path(folder) / "site")
        (root / "meta.py").chmod(0)
        copy = Copy(place=root.parent, package="ops")
        interpreter = Machine(root=root, python=clean_python).interpreter
        with ordinary_user(), pytest.raises(SourceError) as caught:
            contents.read_contents(copy, target=CP311, interpreter=interpreter)
    assert caught.value.message == f"{root}/meta.py cannot be read: Permission denied"


# --- while others work -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["rewritten", "added", "metadata"])
def test_a_change_while_it_is_read_is_noticed(machine: Machine, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    root = install(machine.site)
    hash_files = sha256_files

    def hash_while_pip_works(place: Path, names: list[str]) -> dict[str, str]:
        found = hash_files(place, names)
        if what == "rewritten":
            (root / "meta.py").write_text("new")
        elif what == "added":
            (root / "new.py").write_text("new")
        else:
            (machine.site / "ops-1.0.0.dist-info/METADATA").write_text("Name: ops\nVersion: 2.0\n")
        return found

    monkeypatch.setattr(contents, "sha256_files", hash_while_pip_works)
    fault = machine.failure()
    assert fault.message == f"{root} changed while it was read"
    assert fault.hint == "wait until nothing writes to it, then run again"


def test_a_change_between_hashing_and_packing_leaves_no_entry(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = install(machine.site)
    obtain = Store.obtain

    def obtain_late(store: Store, *args: object) -> Path:
        (root / "meta.py").write_text("new")
        return obtain(store, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "obtain", obtain_late)
    with pytest.raises(SourceError) as caught:
        machine.fetch()
    assert caught.value.message == f"{root}/meta.py changed while it was read"
    assert machine.store.entries() == []


def test_four_at_once_make_one_entry(machine: Machine) -> None:
    install(machine.site, {**FILES, **{f"ops/m{number}.py": str(number) * 5000 for number in range(50)}})
    with ThreadPoolExecutor(4) as pool:
        bases = [done.result() for done in [pool.submit(machine.fetch) for _ in range(4)]]
    assert len({base.path for base in bases}) == 1
    assert [entry.key for entry in machine.store.entries()] == [bases[0].digest]


def test_a_wheel_that_is_packed_is_taken_again(machine: Machine) -> None:
    install(machine.site)
    path = machine.fetch().path
    inode = path.stat().st_ino
    assert machine.fetch().path.stat().st_ino == inode


@pytest.mark.parametrize("damage", ["other bytes", "missing"])
def test_a_damaged_entry_is_packed_again(machine: Machine, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    install(machine.site)
    path = machine.fetch().path
    good = sha256_file(path)
    path.unlink()
    if damage == "other bytes":
        path.write_bytes(b"PK")
    with caplog.at_level(logging.WARNING):
        assert sha256_file(machine.fetch().path) == good
    assert caplog.messages == [f"ops: store entry {path.parent} is damaged; packing it again"]


# --- what a no-op watches --------------------------------------------------------------------------------------


def watched(machine: Machine, locked: Locked = LOCKED) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    source = sources.available_sources()["installed"]
    return sources.watched_paths(source, locked, interpreter=machine.interpreter, env=machine.env)


def test_all_files_of_the_package_and_all_places_are_watched(machine: Machine) -> None:
    root = ship(machine)
    (root / "sub").mkdir()
    (root / "sub" / "a.py").write_text("")
    files, folders = watched(machine)
    info = machine.cann_site / "ops-1.0.0.dist-info"
    assert set(files) == {
        root / "__init__.py", root / "meta.py", root / "sub/a.py", info / "METADATA", info / "entry_points.txt",
        machine.home / "version.info",
    }  # fmt: skip
    assert {root, root / "sub", info, machine.cann_site, machine.site} <= set(folders)


def test_of_a_missing_package_the_places_are_watched(machine: Machine) -> None:
    machine.source_set_env()
    files, folders = watched(machine, lock_of("ops", optional=True))
    assert files == ()
    assert {machine.cann_site, machine.site} <= set(folders)


def test_of_a_base_that_a_lock_pins_nothing_is_watched(machine: Machine) -> None:
    source = sources.available_sources()["wheel"]
    found = sources.watched_paths(source, LOCKED, interpreter=machine.interpreter, env={})
    assert found == ((), ())


# --- recipe and lock -------------------------------------------------------------------------------------------


def base(**wanted: object) -> Base:
    return msgspec.convert({"kind": "installed", "package": "ops", **wanted}, Base)


@pytest.mark.parametrize(
    "wanted", [{"package": "a.b"}, {"package": "../ops"}, {"package": ""}, {"version": "9.1.RC1"}, {"versoin": "9"}],
    ids=str,
)  # fmt: skip
def test_what_a_recipe_cannot_ask_for(wanted: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        base(**wanted)


@pytest.mark.parametrize("wanted", [{}, {"version": "9.1"}, {"optional": True}], ids=str)
def test_a_lock_repeats_the_recipe_and_reads_back(tmp_path: Path, wanted: dict[str, object]) -> None:
    asked = base(**wanted)
    contract = Contract(python_tags=("cp311",), platforms=(CP311.platform,), torch="2.13.0")
    locked = installed.resolve(asked, contract, component="ops", env={})
    path = tmp_path / "r.lock"
    write_lock(Lock(recipe="r", components=(LockedComponent(name="ops", base=locked),), path=path), path)
    back = read_lock(path, locked_types={"installed": Locked})
    assert back.components[0].base == locked

    recipe = Recipe(
        name="r", description="", contract=contract, components=(Component(name="ops", import_name="ops", base=asked),),
        env={}, checks=(), files=(),
    )  # fmt: skip
    require_current(back, recipe)


def test_whatever_is_asked_for_otherwise_makes_a_lock_stale() -> None:
    asked = [base(), base(version="9.1"), base(optional=True), base(package="ops2"), base(version="9.1", optional=True)]
    assert len({one.identity for one in asked}) == len(asked)
    assert base(version="9.1", optional=True).identity == "installed ops 9.1 (optional)"


def test_it_is_laid_out_like_any_wheel(machine: Machine, tmp_path: Path) -> None:
    install(machine.site)
    fetched = machine.fetch()
    tree = installed.lay_out(fetched, ["ops/meta.py", "ops/absent.py"], tmp_path / "tree")
    assert tree.base == fetched
    assert [path for path in tree.root.rglob("*") if path.is_file()] == [tmp_path / "tree/ops/meta.py"]
    assert {"ops/meta.py", "ops-1.0.0.dist-info/RECORD"} <= tree.members
