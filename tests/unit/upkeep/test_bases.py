"""Any base's files: release wheels from a folder and from a server on this machine, commits from real repositories."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.repositories import commit_files, git, make_upstream, snapshot
from tests.wheels import make_wheel
from toolkit.errors import FetchError, SourceError, StoreError, UsageError
from toolkit.files import sha256_file
from toolkit.model import Interpreter
from toolkit.project import Project
from toolkit.series import Line
from toolkit.store import Store
from toolkit.upkeep.bases import BaseTree, find_base, lay_out_base, obtain_tree
from toolkit.upkeep.words import parse_against
from toolkit.work import Means

PYTHON = Interpreter(
    executable=Path(sys.executable),
    version=".".join(map(str, sys.version_info[:3])),
    python_tag="cp311",
    platforms=("manylinux_2_31_x86_64", "manylinux_2_28_x86_64"),
    torch=None,
)
OWN = "cp311-cp311-manylinux_2_28_x86_64"
OTHERS = ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_aarch64")
FILES = {"part/core.py": "answer = 41\n", "part/other.py": "# other\n"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def means(tmp_path: Path, index: Path) -> Means:
    """Return means whose pip finds the wheels of a folder, of a project without recipes."""
    root = tmp_path / "project"
    for folder in ("recipes", "patches"):
        (root / folder).mkdir(parents=True)
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index), "PIP_RETRIES": "0",
    }  # fmt: skip
    project = Project(
        root=root, recipes=(root / "recipes",), patches=(root / "patches",), verify=root, overlays=root / "overlays"
    )
    return Means(project=project, store=Store(tmp_path / "store"), environ=environ)


@pytest.fixture
def upstream(tmp_path: Path) -> tuple[Path, str, str]:
    """Return a repository whose paths of patches begin in `below`, its first commit, and one on branch `next`."""
    folder = tmp_path / "upstream"
    first = make_upstream(folder, {"below/core.py": "answer = 41\n", "README": "top\n", "below/other.py": "# other\n"})
    git(folder, "tag", "v1")
    git(folder, "checkout", "--quiet", "-b", "next")
    second = commit_files(folder, {"below/core.py": "answer = 42\n"})
    return folder, first, second


def put_in_store(means: Means, wheel: Path) -> Path:
    """Put a wheel where a download would have left it, and take it out of the index."""
    entry = means.store.root / "base" / sha256_file(wheel)
    entry.mkdir(parents=True)
    return wheel.rename(entry / wheel.name)


def obtain(word: str, means: Means, tmp_path: Path, *, line: Line | None = None) -> BaseTree:
    return obtain_tree(
        word, line, ["part/core.py", "core.py", "absent.py"], component="part", means=means, interpreter=PYTHON,
        into=tmp_path / "into",
    )  # fmt: skip


def line_of(*covers: str, upstream: str = "", subfolder: str = "below") -> Line:
    return Line(name="part/1", covers=covers, upstream=(upstream,) if upstream else (), subfolder=subfolder)


# --- releases ----------------------------------------------------------------------------------------------------


def test_only_the_files_that_are_asked_for_leave_the_wheel(index: Path, means: Means, tmp_path: Path) -> None:
    put_in_store(means, make_wheel(index, "part", "1.0", FILES, tag=OWN))
    found = obtain("part==1.0", replace(means, offline=True), tmp_path)
    assert snapshot(tmp_path / "into") == {"part/core.py": b"answer = 41\n"}
    assert {"part/core.py", "part/other.py"} <= found.tree.members
    assert found.read_file("part/other.py") == b"# other\n"
    assert (found.label, found.coverage, found.remark) == ("part==1.0", "part==1.0", "")


@pytest.mark.parametrize("tag", OTHERS, ids=["interpreter", "machine"])
def test_a_release_without_a_wheel_for_this_target_is_read_from_another(
    index: Path, means: Means, tmp_path: Path, tag: str
) -> None:
    put_in_store(means, make_wheel(index, "part", "1.0", FILES, tag=tag))
    found = obtain("part==1.0", replace(means, offline=True), tmp_path)
    assert found.read_file("part/core.py") == b"answer = 41\n"
    assert found.remark == f"read from part-1.0-{tag}.whl, as there is none for cp311-manylinux_2_31_x86_64"


def test_a_wheel_that_was_damaged_in_the_store_is_not_read(index: Path, means: Means, tmp_path: Path) -> None:
    kept = put_in_store(means, make_wheel(index, "part", "1.0", FILES, tag=OWN))
    kept.write_bytes(kept.read_bytes()[:-20])
    with pytest.raises(StoreError, match=r"is damaged: part-1\.0-.*\.whl is missing or has other bytes"):
        obtain("part==1.0", replace(means, offline=True), tmp_path)


def test_a_wheel_that_was_published_damaged_is_refused(index: Path, means: Means, tmp_path: Path) -> None:
    wheel = make_wheel(index, "part", "1.0", FILES)
    wheel.write_bytes(wheel.read_bytes()[:-30])
    put_in_store(means, wheel)
    with pytest.raises(SourceError) as caught:
        obtain("part==1.0", replace(means, offline=True), tmp_path)
    assert caught.value.message == "part-1.0-py3-none-any.whl is not a whole zip archive: File is not a zip file"


# --- commits -----------------------------------------------------------------------------------------------------


def test_a_clone_is_read_where_it_is(upstream: tuple[Path, str, str], means: Means, tmp_path: Path) -> None:
    folder, first, _ = upstream
    before = snapshot(folder)
    found = obtain(f"git:{folder}@v1", means, tmp_path, line=line_of("git:x"))
    assert (found.label, found.coverage) == (f"v1 ({first[:12]})", f"git:{first}")
    assert snapshot(tmp_path / "into") == {"core.py": b"answer = 41\n"}
    assert found.tree.members == {"core.py", "other.py"}
    assert found.read_file("other.py") == b"# other\n"
    assert snapshot(folder) == before
    assert not means.store.root.exists()


def test_nothing_of_a_clones_configuration_is_obeyed(
    upstream: tuple[Path, str, str], means: Means, tmp_path: Path
) -> None:
    folder, _, second = upstream
    trap = tmp_path / "trap"
    (folder / ".git" / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {trap}"\n\tworktree = /nowhere\n'
        f"[extensions]\n\tunheardOf = true\n[include]\n\tpath = {tmp_path}/nothing\n",
        encoding="utf-8",
    )
    found = obtain(f"git:{folder}@next", means, tmp_path, line=line_of("git:x"))
    assert found.read_file("core.py") == b"answer = 42\n"
    assert found.coverage == f"git:{second}"
    assert not trap.exists()


@pytest.mark.parametrize("form", ["bare", "uri", "relative"])
def test_a_clone_may_be_named_in_any_way(
    upstream: tuple[Path, str, str], means: Means, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, second = upstream
    monkeypatch.chdir(tmp_path)
    if form == "bare":
        git(tmp_path, "clone", "--quiet", "--bare", str(folder), "bare.git")
        folder = tmp_path / "bare.git"
    url = {"bare": str(folder), "uri": folder.as_uri(), "relative": "upstream"}[form]
    assert obtain(f"git:{url}@next", means, tmp_path, line=line_of("git:x")).coverage == f"git:{second}"


def test_a_ref_that_does_not_exist_is_refused(upstream: tuple[Path, str, str], means: Means, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        obtain(f"git:{upstream[0]}@nxt", means, tmp_path, line=line_of("git:x"))
    assert caught.value.message == f"{upstream[0]} has no ref 'nxt'"
    assert caught.value.hint == "near it are next"


def test_a_commit_that_a_clone_lacks_is_refused(upstream: tuple[Path, str, str], means: Means, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        obtain(f"git:{upstream[0]}@{'0' * 39}1", means, tmp_path, line=line_of("git:x"))
    assert caught.value.message == (
        f"part: commit {'0' * 39}1 is not whole in {upstream[0] / '.git'}: there is no commit {'0' * 39}1"
    )


def test_an_address_that_cannot_be_reached_is_an_error(means: Means, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"the refs of https://127\.0\.0\.1:1/x\.git cannot be read: "):
        obtain("git:https://127.0.0.1:1/x.git@main", means, tmp_path)


def test_offline_no_address_is_asked_what_a_ref_names(means: Means, tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        obtain("git:https://127.0.0.1:1/x.git@main", replace(means, offline=True), tmp_path)
    assert caught.value.message == "git:https://127.0.0.1:1/x.git@main: offline nobody is asked what 'main' names"


def test_a_covered_commit_comes_from_the_lines_upstream(
    upstream: tuple[Path, str, str], means: Means, tmp_path: Path
) -> None:
    folder, first, _ = upstream
    line = line_of(f"git:{first}", upstream=folder.as_uri())
    found = obtain(f"git:{first}", means, tmp_path, line=line)
    assert found.read_file("core.py") == b"answer = 41\n"
    assert means.store.root in found.base.path.parents
    again = obtain(f"git:{first}", replace(means, offline=True), tmp_path / "again", line=line)
    assert again.base == found.base


def test_a_covered_commit_comes_from_a_mirror(upstream: tuple[Path, str, str], means: Means, tmp_path: Path) -> None:
    folder, first, _ = upstream
    line = line_of(f"git:{first}", upstream="https://127.0.0.1:1/gone.git")
    mirrored = replace(means, environ={**means.environ, "TOOLKIT_MIRROR_PART": str(folder)})
    assert obtain(f"git:{first}", mirrored, tmp_path, line=line).coverage == f"git:{first}"


def test_a_commit_without_an_address_is_refused(means: Means, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        obtain(f"git:{'a' * 40}", means, tmp_path, line=line_of(f"git:{'a' * 40}"))
    assert caught.value.message == f"nothing says where commit {'a' * 40} is"


def test_a_subfolder_that_is_not_there_is_an_error(
    upstream: tuple[Path, str, str], means: Means, tmp_path: Path
) -> None:
    with pytest.raises(SourceError) as caught:
        obtain(f"git:{upstream[0]}@v1", means, tmp_path, line=line_of("git:x", subfolder="elsewhere"))
    assert caught.value.message == f"part@{upstream[1][:12]} has no folder 'elsewhere'"


def test_a_base_is_laid_out_as_often_as_there_are_series(index: Path, means: Means, tmp_path: Path) -> None:
    put_in_store(means, make_wheel(index, "part", "1.0", FILES))
    found = find_base(
        parse_against("part==1.0"), None, component="part", means=replace(means, offline=True), interpreter=PYTHON,
        scratch=tmp_path / "s",
    )  # fmt: skip
    for number, paths in enumerate((["part/core.py"], ["part/other.py"])):
        lay_out_base(found, paths, tmp_path / str(number))
    assert [list(snapshot(tmp_path / str(number))) for number in range(2)] == [["part/core.py"], ["part/other.py"]]
