"""The upstream of our own builds as its authors would build it, and is what the tests of the lane take it for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.upstream import (
    EDITS,
    HEADERS,
    UNUSED,
    Kind,
    Upstream,
    check_out,
    clone_bare,
    compiled_sources,
    compiler_calls,
    counting_compilers,
    git,
    make_build_environment,
    make_patches,
    make_upstream,
)
from toolkit.series.load import load_series

SOURCES = ["add.cpp", "bindings.cpp", "build_info.cpp", "clamp.cpp", "total.cpp"]
MAIN_KINDS: list[Kind] = ["python", "python-second", "native", "template", "gitlink", "submodule"]
EPOCH = "1788264000"
"""The older commit's time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """A tree with its wheel, the wheel's files unpacked, and what was compiled for it.

    `compilers` is the folder where they note their calls; `environ` is for building the tree again.
    """

    tree: Path
    wheel: Path
    site: Path
    compilers: Path
    compiled: list[str]
    environ: dict[str, str]


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    return make_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build_environment(tmp_path_factory.mktemp("build") / "env")


@pytest.fixture(scope="module")
def built(upstream: Upstream, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(upstream, python, tmp_path_factory.mktemp("built"), "here")


def build(upstream: Upstream, python: Path, folder: Path, name: str) -> Built:
    """Build the older commit in a clone with the name, where compiled files tell neither the place nor the day."""
    tree = check_out(upstream.main, upstream.older, folder / name)
    environ = plain_environ() | counting_compilers(folder / "compilers")
    environ |= {"CXXFLAGS": f"-ffile-prefix-map={tree}=.", "SOURCE_DATE_EPOCH": EPOCH, "MAX_JOBS": "2"}
    run(python, "setup.py", "build", "bdist_wheel", cwd=tree, environ=environ)
    (wheel,) = (tree / "dist").iterdir()
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    compilers = folder / "compilers"
    return Built(
        tree=tree, wheel=wheel, site=site, compilers=compilers, compiled=compiled_sources(compilers), environ=environ
    )


def plain_environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run(*argv: str | Path, cwd: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [str(word) for word in argv], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(site: Path, expression: str) -> str:
    """Evaluate an expression where the built package is imported first."""
    program = f"import sample_npu; from sample_npu import _C, core, shapes, version; print(({expression}))"
    environ = plain_environ() | {"PYTHONPATH": str(site)}
    return run(sys.executable, "-c", program, cwd=site.parent, environ=environ).rstrip("\n")


# --- repositories ----------------------------------------------------------------------------------------------


def test_the_ids_are_the_same_in_every_folder_and_for_every_user(
    upstream: Upstream, own_places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_places / "ignored").write_text("*.py\n")
    (own_places / ".gitconfig").write_text(f"[core]\n\texcludesFile = {own_places}/ignored\n\tautocrlf = true\n")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    other = make_upstream(tmp_path / "a longer place" / "upstream")
    assert (other.older, other.newer, other.ops_older) == (upstream.older, upstream.newer, upstream.ops_older)


def test_a_bare_clone_has_the_older_commit_too(upstream: Upstream, tmp_path: Path) -> None:
    mirror = clone_bare(upstream.main, tmp_path / "mirror.git")
    assert git(mirror, "rev-list", "main").split() == [upstream.newer, upstream.older]


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "file"])
def test_submodules_are_checked_out_by_either_address(tmp_path: Path, absolute: bool) -> None:
    upstream = make_upstream(tmp_path / "upstream", absolute=absolute)
    tree = check_out(upstream.main, upstream.older, tmp_path / "tree")
    address = git(tree / HEADERS, "config", "--file", ".gitmodules", "submodule.inner.url").strip()
    assert address == (upstream.inner.as_uri() if absolute else "../sample_inner.git")
    assert git(tree / HEADERS, "rev-parse", "HEAD").strip() == upstream.headers_older
    assert (tree / HEADERS / "inner/include/sample/limits.h").is_file()
    assert list((tree / UNUSED).iterdir()) == []


def test_git_converts_a_file_that_a_byte_exact_checkout_leaves_alone(upstream: Upstream, tmp_path: Path) -> None:
    tree = check_out(upstream.main, upstream.older, tmp_path / "tree")
    raw = git(tree, "cat-file", "blob", "HEAD:tools/build.bat")
    assert "\r" not in raw
    assert (tree / "tools/build.bat").read_bytes() == raw.replace("\n", "\r\n").encode()


# --- patches ---------------------------------------------------------------------------------------------------


def test_the_patches_are_a_series_that_applies_in_its_order(upstream: Upstream, tmp_path: Path) -> None:
    kinds: list[Kind] = [kind for kind in MAIN_KINDS if kind != "gitlink"]
    patches = make_patches(upstream, kinds, tmp_path / "series")
    series = load_series(tmp_path / "series", name="sample_npu/1.2")
    assert [patch.witness for patch in series.patches] == [EDITS[kind].witness for kind in kinds]
    assert [patch.changes[0].part for patch in series.patches] == ["python", "python", "native", "native", "native"]
    tree = check_out(upstream.main, upstream.older, tmp_path / "tree")
    git(tree, "apply", *map(str, patches))
    assert "value < -largest" in (tree / HEADERS / "include/sample/checked.h").read_text()


def test_the_newer_commit_has_the_first_fix_and_takes_the_second(upstream: Upstream, tmp_path: Path) -> None:
    first, second = make_patches(upstream, ["python", "python-second"], tmp_path / "series")
    tree = check_out(upstream.main, upstream.newer, tmp_path / "tree")
    git(tree, "apply", "--check", "--reverse", str(first))
    git(tree, "apply", "--check", str(second))
    assert git(tree / HEADERS, "rev-parse", "HEAD").strip() == upstream.headers_newer


# --- builds ----------------------------------------------------------------------------------------------------


def test_the_base_is_built_and_gives_the_wrong_answers(built: Built, upstream: Upstream) -> None:
    version = f"1.2.0+git{upstream.older[:7]}"
    assert built.wheel.name.startswith(f"sample_npu-{version}-cp")
    assert ask(built.site, "sample_npu.__version__, version.git_version") == str((version, upstream.older))
    faults = "core.answer(), shapes.numel(()), _C.clamp(9, 0, 5), hasattr(_C, 'subtract'), _C.headers_release()"
    assert ask(built.site, faults) == "(41, 0, 9, False, 1)"
    assert ask(built.site, "core.is_error(-1_000_000, -1)") == "False"
    assert built.compiled == SOURCES


def test_the_projects_own_tests_pass_on_the_build(built: Built) -> None:
    environ = plain_environ() | {"PYTHONPATH": str(built.site)}
    printed = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", built.tree / "tests",
                  cwd=built.site, environ=environ)  # fmt: skip
    assert printed.splitlines()[-1].startswith("2 passed")


def test_the_library_is_found_beside_the_extension_only(built: Built) -> None:
    found = {path.name: run_paths(path) for path in built.site.rglob("*.so")}
    (extension,) = (name for name in found if name.startswith("_C."))
    assert found == {extension: ["$ORIGIN/lib"], "libsample_npu.so": []}


def run_paths(path: Path) -> list[str]:
    with path.open("rb") as file:
        tags = list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())
    return [getattr(tag, tag.entry.d_tag[3:].lower()) for tag in tags if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")]


def test_two_folders_give_the_same_wheel(built: Built, upstream: Upstream, python: Path, tmp_path: Path) -> None:
    other = build(upstream, python, tmp_path, "a-longer-name-than-the-first")
    assert other.wheel.name == built.wheel.name
    assert other.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_flags_are_what_keeps_the_place_and_the_day_out(built: Built, upstream: Upstream) -> None:
    assert ask(built.site, "_C.build_info()") == f"sample_npu 1.2.0+git{upstream.older[:7]}, built on Sep  1 2026"
    program = (
        "from sample_npu import _C\ntry:\n    _C.add(1_000_000, 1)\nexcept OverflowError as fault:\n    print(fault)"
    )
    printed = run(sys.executable, "-c", program, cwd=built.site, environ=plain_environ())
    assert printed == "1000001 is out of bounds (./third_party/sample_headers/include/sample/checked.h)\n"


def test_each_patch_compiles_only_its_own_objects(
    built: Built, upstream: Upstream, python: Path, tmp_path: Path
) -> None:
    tree = built.tree
    compiled: dict[str, list[str]] = {}
    for kind, patch in zip(MAIN_KINDS, make_patches(upstream, MAIN_KINDS, tmp_path / "series"), strict=True):
        git(tree, "apply", *(["--index"] if kind == "gitlink" else []), str(patch))
        if kind == "gitlink":
            git(tree, "submodule", "--quiet", "update", HEADERS)
        before = compiled_sources(built.compilers)
        run(python, "setup.py", "build", cwd=tree, environ=built.environ)
        compiled[kind] = added(before, compiled_sources(built.compilers))
    assert compiled == {
        "python": [],
        "python-second": [],
        "native": ["clamp.cpp"],
        "template": ["bindings.cpp"],
        "gitlink": ["build_info.cpp"],
        "submodule": ["add.cpp", "total.cpp"],
    }
    (site,) = (tree / "build").glob("lib.*")
    mended = "core.answer(), shapes.numel(()), _C.clamp(9, 0, 5), _C.subtract(5, 3), _C.headers_release()"
    assert ask(site, mended) == "(42, 1, 5, 2, 2)"
    assert ask(site, "core.is_error(-1_000_000, -1)") == "True"


def added(before: list[str], after: list[str]) -> list[str]:
    rest = list(after)
    for name in before:
        rest.remove(name)
    return rest


def test_the_build_backend_gives_the_same_package(
    built: Built, upstream: Upstream, python: Path, tmp_path: Path
) -> None:
    tree = check_out(upstream.main, upstream.older, tmp_path / "tree")
    wheel = pip_wheel(python, tree, tmp_path / "wheels", SOURCE_DATE_EPOCH=EPOCH)
    assert wheel.name == built.wheel.name
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(built.wheel) as plain:
        assert archive.namelist() == plain.namelist()
        assert any(name == "sample_npu/_generated_operators.py" for name in archive.namelist())


def test_the_operators_package_is_built_from_its_subfolder(upstream: Upstream, python: Path, tmp_path: Path) -> None:
    shapes = []
    for commit in (upstream.ops_older, upstream.ops_newer):
        tree = check_out(upstream.ops, commit, tmp_path / commit / "tree")
        wheel = pip_wheel(python, tree / "torch_extension", tmp_path / commit)
        program = (
            f"import sys; sys.path.insert(0, {str(wheel)!r}); from sample_ops.ops.attention import softmax_shape as f;"
            "print(f((1, 128, 64, 512), (1, 128, 1, 512)), f((128, 64, 512), (128, 1, 512), 'TND'))"
        )
        shapes.append(run(sys.executable, "-c", program, cwd=tmp_path, environ=plain_environ()))
    assert shapes == ["(1, 1, 128, 64.0) (1, 128, 64.0)\n", "(1, 1, 128, 64) (1, 128, 64)\n"]


def pip_wheel(python: Path, project: Path, into: Path, **environ: str) -> Path:
    """Build a wheel by the project's own build backend."""
    run(
        sys.executable, "-m", "pip", "--python", python, "wheel", "--quiet", "--disable-pip-version-check",
        "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", into, project, cwd=into.parent,
        environ=plain_environ() | environ,
    )  # fmt: skip
    return next(into.glob("*.whl"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("", "[Errno 2] No such file or directory: 'git'", id="no git"),
        pytest.param(None, "fatal: not a git repository (or any of the parent directories): .git", id="no repository"),
    ],
)
def test_a_version_without_a_commit_is_refused(
    upstream: Upstream, python: Path, tmp_path: Path, path: str | None, reason: str
) -> None:
    tree = check_out(upstream.main, upstream.older, tmp_path / "tree")
    if path is None:
        shutil.rmtree(tree / ".git")
    environ = plain_environ() | {"GIT_CEILING_DIRECTORIES": str(tmp_path)} | ({} if path is None else {"PATH": path})
    done = subprocess.run(
        [python, "setup.py", "--version"], cwd=tree, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"sample_npu: `git rev-parse HEAD` gives no commit for the version: {reason}\n"
        "sample_npu: build in a clone with git on PATH, or set BUILD_WITHOUT_SHA=1\n"
    )
    environ["BUILD_WITHOUT_SHA"] = "1"
    assert run(python, "setup.py", "--version", cwd=tree, environ=environ) == "1.2.0\n"


def test_a_tree_without_its_submodules_is_refused(upstream: Upstream, python: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(tmp_path, "clone", "--quiet", upstream.main.as_uri(), str(tree))
    done = subprocess.run(
        [python, "setup.py", "build"], cwd=tree, env=plain_environ(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "sample_npu: no headers in third_party/sample_headers/include, third_party/sample_headers/inner/include\n"
        "sample_npu: run `git submodule update --init --recursive`\n"
    )


# --- what surrounds them ---------------------------------------------------------------------------------------


def test_our_own_suite_collects_none_of_it() -> None:
    root = Path(__file__).parents[2]
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/projects"]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


def test_every_call_of_a_compiler_is_counted(tmp_path: Path) -> None:
    environ = plain_environ() | counting_compilers(tmp_path / "compilers")
    (tmp_path / "a b/csrc").mkdir(parents=True)
    (tmp_path / "a b/csrc/one.c").write_text("int one;\n")
    run("gcc", "-c", "a b/csrc/one.c", "-o", "one.o", cwd=tmp_path, environ=environ)
    run(environ["CC"], "-E", "-c", "a b/csrc/one.c", "-o", "one.i", cwd=tmp_path, environ=environ)
    assert compiler_calls(tmp_path / "compilers") == [
        ["gcc", "-c", "a b/csrc/one.c", "-o", "one.o"],
        ["cc", "-E", "-c", "a b/csrc/one.c", "-o", "one.i"],
    ]
    assert compiled_sources(tmp_path / "compilers") == ["one.c"]


def test_a_call_that_cannot_be_counted_fails(tmp_path: Path) -> None:
    environ = counting_compilers(tmp_path)
    (tmp_path / "calls.txt").unlink()
    (tmp_path / "calls.txt").mkdir()
    done = subprocess.run([environ["CC"], "--version"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout == ""
