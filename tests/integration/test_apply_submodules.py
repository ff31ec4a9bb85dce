"""Applying patches that move, add or remove submodules of real repositories, and patches of the files in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.series_cases import TRAILERS, edit_diff, make_source, patch_text, read_tree, run_git, write_tree
from toolkit.errors import ApplyError
from toolkit.model import AppliedPatch, PatchedTree, Series, SourceTree
from toolkit.series import apply_series, load_series, require_known_acceptance, split_series

SUB = "third_party/sub"
LINES = b"".join(b"line %d\n" % number for number in range(20))
FILES = {"pkg/a.py": LINES, "setup.py": b"one\ntwo\n"}
HINT = "write the patch again for this base, or drop it if upstream has solved the same in its own way"


@dataclass(frozen=True)
class Upstream:
    """A repository with one submodule at the first of its own repository's `commits`, to make patches in."""

    folder: Path
    submodule: Path
    commits: tuple[str, ...]

    @property
    def checkout(self) -> Path:
        return self.folder / SUB

    def move(self, commit: str) -> None:
        run_git(self.checkout, "checkout", "--quiet", commit)

    def add(self, path: str) -> None:
        run_git(self.folder, "-c", "protocol.file.allow=always", "submodule", "add", str(self.submodule), path)

    def edit(self, path: str, content: bytes) -> None:
        (self.folder / path).write_bytes(content)

    def commit(self) -> None:
        run_git(self.folder, "add", "--all")
        run_git(self.folder, "commit", "--quiet", "-m", f"change\n\nIt fails without it.\n\n{TRAILERS}")

    def write_series(self, count: int, *options: str) -> Series:
        folder = self.folder.parent / "patches"
        run_git(self.folder, "format-patch", "-o", str(folder), *options, f"-{count}")
        return load_series(folder, name="sample/1.0")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    submodule = write_tree(tmp_path / "sub", {"README": b"sub\n"})
    run_git(submodule, "init", "--quiet")
    commits = []
    for number in range(4):
        write_tree(submodule, {"inc/sub.h": LINES + b"%d\n" % number})
        run_git(submodule, "add", "--all")
        run_git(submodule, "commit", "--quiet", "-m", "step")
        commits.append(run_git(submodule, "rev-parse", "HEAD").decode().strip())
    folder = write_tree(tmp_path / "upstream", FILES)
    run_git(folder, "init", "--quiet")
    made = Upstream(folder=folder, submodule=submodule, commits=tuple(commits))
    made.add(SUB)
    made.move(commits[0])
    made.commit()
    return made


def base_tree(tmp_path: Path, gitlinks: Mapping[str, str], *, files: Mapping[str, bytes] | None = None) -> SourceTree:
    entry = f'[submodule "{SUB}"]\n\tpath = {SUB}\n\turl = {tmp_path / "sub"}\n'.encode()
    return replace(make_source(tmp_path, {".gitmodules": entry, **FILES, **(files or {})}), gitlinks=gitlinks)


def apply_to(tmp_path: Path, series: Series, source: SourceTree, *, accept: Sequence[str] = ()) -> PatchedTree:
    return apply_series(series, source, into=tmp_path / "out", accept_upstream=accept, scratch=tmp_path / "scratch")


def refusal(tmp_path: Path, series: Series, source: SourceTree, *, accept: Sequence[str] = ()) -> ApplyError:
    """Return the error, after a look that nothing was left."""
    with pytest.raises(ApplyError) as raised:
        apply_to(tmp_path, series, source, accept=accept)
    assert not {path.name for path in tmp_path.iterdir()} & {"out", ".part-out"}
    assert not (tmp_path / "scratch" / "apply").exists()
    return raised.value


# --- what goes in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--full-index",), ("-U0",)], ids=["default", "full index", "no context"])
def test_a_patch_that_only_moves_a_submodule_has_effect(
    tmp_path: Path, upstream: Upstream, options: Sequence[str]
) -> None:
    old, new, *_ = upstream.commits
    upstream.move(new)
    upstream.commit()
    done = apply_to(tmp_path, upstream.write_series(1, *options), base_tree(tmp_path, {SUB: old}))
    assert done.applied == (AppliedPatch(name="0001-change", status="clean"),)
    assert (done.gitlinks, done.changed, read_tree(done.root)) == ({SUB: new}, (), {})
    assert done.series.native == ("0001-change",)


def test_a_submodule_moves_together_with_files(tmp_path: Path, upstream: Upstream) -> None:
    old, new, *_ = upstream.commits
    upstream.move(new)
    upstream.edit("pkg/a.py", LINES.replace(b"line 7\n", b"x\n"))
    upstream.edit(".gitmodules", (upstream.folder / ".gitmodules").read_bytes() + b"\tbranch = main\n")
    upstream.commit()
    moved_on = {"pkg/a.py": b"import os\n" + LINES}
    done = apply_to(tmp_path, upstream.write_series(1), base_tree(tmp_path, {SUB: old, "x": old}, files=moved_on))
    assert done.applied[0].offsets == ("pkg/a.py: hunk #1 succeeded at 6 (offset 1 line)",)
    assert (done.gitlinks, [file.path for file in done.changed]) == ({SUB: new}, [".gitmodules", "pkg/a.py"])
    assert read_tree(done.root)[".gitmodules"].endswith(b"branch = main\n")


def test_a_submodule_is_added_with_its_entry(tmp_path: Path, upstream: Upstream) -> None:
    old, *_, newest = upstream.commits
    upstream.add("third_party/other")
    upstream.commit()
    done = apply_to(tmp_path, upstream.write_series(1), base_tree(tmp_path, {SUB: old}))
    assert (done.gitlinks, [file.path for file in done.changed]) == ({"third_party/other": newest}, [".gitmodules"])


def test_a_submodule_is_removed_with_its_entry(tmp_path: Path, upstream: Upstream) -> None:
    run_git(upstream.folder, "rm", "--quiet", "-f", SUB)
    upstream.commit()
    done = apply_to(tmp_path, upstream.write_series(1), base_tree(tmp_path, {SUB: upstream.commits[0]}))
    assert (done.gitlinks, read_tree(done.root)) == ({SUB: None}, {".gitmodules": b""})


def test_patches_move_the_same_submodule_one_after_the_other(tmp_path: Path, upstream: Upstream) -> None:
    for commit in upstream.commits[1:]:
        upstream.move(commit)
        upstream.commit()
    done = apply_to(tmp_path, upstream.write_series(3), base_tree(tmp_path, {SUB: upstream.commits[0]}))
    assert [patch.status for patch in done.applied] == ["clean"] * 3
    assert done.gitlinks == {SUB: upstream.commits[-1]}


def test_a_submodule_that_an_earlier_patch_adds_may_be_removed_for_files(tmp_path: Path, upstream: Upstream) -> None:
    """Its place is free again for the next patch, as the place of a file would be."""
    run_git(upstream.folder, "rm", "--quiet", "-f", SUB)
    upstream.commit()
    write_tree(upstream.folder / SUB, {"inc/sub.h": LINES})
    upstream.commit()
    done = apply_to(tmp_path, upstream.write_series(2), base_tree(tmp_path, {SUB: upstream.commits[0]}))
    assert (done.gitlinks, sorted(read_tree(done.root))) == ({SUB: None}, [".gitmodules", f"{SUB}/inc/sub.h"])


# --- what is upstream --------------------------------------------------------------------------------------------


def test_a_move_that_is_upstream_is_refused_until_the_recipe_accepts_it(tmp_path: Path, upstream: Upstream) -> None:
    _, new, *_ = upstream.commits
    upstream.move(new)
    upstream.edit("setup.py", b"one\n2\n")
    upstream.commit()
    series, source = upstream.write_series(1), base_tree(tmp_path, {SUB: new}, files={"setup.py": b"one\n2\n"})
    assert refusal(tmp_path, series, source).message == (
        "patch 0001-change has nothing to do: sample 1.0, or an earlier patch, has all of its change"
    )
    done = apply_to(tmp_path, series, source, accept=["0001-change"])
    assert (done.applied[0].status, done.gitlinks, done.changed) == ("upstream", {}, ())


@pytest.mark.parametrize(
    ("at", "setup", "details"),
    [
        pytest.param(
            1, b"one\ntwo\n", ["hunk #1 of setup.py: not in the base", f"submodule {SUB}: in the base already"],
            id="moved, not edited",
        ),
        pytest.param(
            0, b"one\n2\n", ["hunk #1 of setup.py: in the base already", f"submodule {SUB}: not in the base"],
            id="edited, not moved",
        ),
        pytest.param(
            2, b"one\n2\n",
            ["hunk #1 of setup.py: in the base already", f"submodule {SUB}: in conflict with the base"],
            id="edited, at another commit",
        ),
    ],
)  # fmt: skip
def test_a_patch_that_is_half_upstream_is_refused_piece_by_piece(
    tmp_path: Path, upstream: Upstream, at: int, setup: bytes, details: list[str]
) -> None:
    upstream.move(upstream.commits[1])
    upstream.edit("setup.py", b"one\n2\n")
    upstream.commit()
    source = base_tree(tmp_path, {SUB: upstream.commits[at]}, files={"setup.py": setup})
    fault = refusal(tmp_path, upstream.write_series(1), source, accept=["0001-change"])
    assert fault.message == "patch 0001-change does not apply to sample 1.0: it is partly there"
    assert fault.details == tuple(details)


# --- what is refused ---------------------------------------------------------------------------------------------


def test_a_move_from_another_commit_than_the_recorded_is_a_conflict(tmp_path: Path, upstream: Upstream) -> None:
    old, new, other, _ = upstream.commits
    upstream.move(new)
    upstream.edit("setup.py", b"one\n2\n")
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, {SUB: other}))
    assert fault.message == (
        f"patch 0001-change does not apply to sample 1.0: the base records submodule {SUB} at {other}, expected {old}"
    )
    assert (fault.details, fault.hint) == ((), HINT)


def test_a_move_does_not_hide_a_conflict_in_a_file(tmp_path: Path, upstream: Upstream) -> None:
    old, new, *_ = upstream.commits
    upstream.move(new)
    upstream.edit("setup.py", b"one\n2\n")
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, {SUB: old}, files={"setup.py": b"0\n"}))
    assert (
        fault.message == "patch 0001-change does not apply to sample 1.0: hunk #1 of setup.py conflicts at setup.py:1"
    )


def test_a_submodule_that_the_base_lacks_is_refused_with_the_near_miss(tmp_path: Path, upstream: Upstream) -> None:
    upstream.move(upstream.commits[1])
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, {"3rdparty/sub": upstream.commits[0]}))
    assert fault.message == (
        f"patch 0001-change does not apply to sample 1.0: the base has no submodule {SUB}; did you mean 3rdparty/sub?"
    )


def test_patches_that_move_a_submodule_there_and_back_are_refused(tmp_path: Path, upstream: Upstream) -> None:
    old, new, *_ = upstream.commits
    for commit in (new, old):
        upstream.move(commit)
        upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(2), base_tree(tmp_path, {SUB: old}))
    assert fault.message == f"series 'sample/1.0' names {SUB}, which did not change"
    assert fault.hint == "0001-change, 0002-change cancel each other out there; drop or fold them"


def test_nothing_is_left_where_a_later_move_does_not_fit(tmp_path: Path, upstream: Upstream) -> None:
    old, new, other, last = upstream.commits
    upstream.edit("setup.py", b"one\n2\n")
    upstream.commit()
    upstream.move(other)
    upstream.commit()
    upstream.move(last)
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(3), base_tree(tmp_path, {SUB: new}))
    assert fault.message == (
        f"patch 0002-change does not apply to sample 1.0: the base records submodule {SUB} at {new}, expected {old}"
    )


@pytest.mark.parametrize(
    ("files", "gitlinks", "obstacle"),
    [
        pytest.param({"third_party/other": b""}, {}, "a file there already", id="file"),
        pytest.param({"third_party": b""}, {}, "a file third_party", id="file as folder"),
        pytest.param({"third_party/other/a": b""}, {}, "a folder of that name", id="folder"),
        pytest.param({}, {"third_party": "1" * 40}, "a submodule third_party", id="within another"),
        pytest.param({}, {"third_party/other/inner": "1" * 40}, "a folder of that name", id="around another"),
    ],
)
def test_a_new_submodule_needs_its_place_free(
    tmp_path: Path, upstream: Upstream, files: dict[str, bytes], gitlinks: dict[str, str], obstacle: str
) -> None:
    upstream.add("third_party/other")
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, gitlinks, files=files))
    assert fault.message == f"patch 0001-change adds third_party/other, but the base has {obstacle}"


def test_a_new_submodule_that_the_base_has_at_another_commit_is_a_conflict(tmp_path: Path, upstream: Upstream) -> None:
    upstream.add("third_party/other")
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, {"third_party/other": "1" * 40}))
    assert fault.message == (
        "patch 0001-change does not apply to sample 1.0: it adds third_party/other, but the base has a submodule there"
        " already"
    )


def test_a_new_submodule_without_gitmodules_is_refused(tmp_path: Path, upstream: Upstream) -> None:
    """So is one on a release wheel, which has neither submodules nor that file."""
    upstream.add("third_party/other")
    run_git(upstream.folder, "reset", "--quiet", ".gitmodules")
    run_git(upstream.folder, "checkout", "--quiet", ".gitmodules")
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), make_source(tmp_path, FILES))
    assert fault.message == (
        "patch 0001-change adds submodule third_party/other, but no .gitmodules says where it comes from"
    )
    assert fault.hint == (
        "add its entry to .gitmodules in the same patch, as `git submodule add` does; a release wheel has no submodules"
    )


def test_a_file_is_not_put_where_a_submodule_is(tmp_path: Path, upstream: Upstream) -> None:
    write_tree(upstream.folder / "new", {"inc/sub.h": LINES})
    upstream.commit()
    fault = refusal(tmp_path, upstream.write_series(1), base_tree(tmp_path, {"new": upstream.commits[0]}))
    assert fault.message == "patch 0001-change adds new/inc/sub.h, but the base has a submodule new"


def test_a_file_in_a_submodule_is_none_of_the_main_trees(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "patches", {"0001-change.patch": patch_text(edit_diff(f"{SUB}/sub.h")).encode()})
    fault = refusal(tmp_path, load_series(folder, name="s"), base_tree(tmp_path, {SUB: "1" * 40}))
    assert fault.message == (
        f"patch 0001-change does not apply to sample 1.0: {SUB}/sub.h lies in submodule {SUB},"
        " whose files are not among the base's own"
    )


def test_a_submodule_in_another_folder_is_removed_and_added(tmp_path: Path, upstream: Upstream) -> None:
    """git writes that as a rename, in which nothing tells a submodule from a file."""
    run_git(upstream.folder, "mv", SUB, "third_party/moved")
    upstream.commit()
    source = base_tree(tmp_path, {SUB: upstream.commits[0]})
    fault = refusal(tmp_path, upstream.write_series(1), source)
    assert fault.message == (
        f"patch 0001-change does not apply to sample 1.0: {SUB} is a submodule of the base, not a file;"
        " export with `git format-patch --no-renames`"
    )
    done = apply_to(tmp_path, upstream.write_series(1, "--no-renames"), source)
    assert done.gitlinks == {"third_party/moved": upstream.commits[0], SUB: None}


# --- both parts of a series --------------------------------------------------------------------------------------


def test_a_series_goes_into_the_tree_and_into_its_submodules(tmp_path: Path, upstream: Upstream) -> None:
    """The submodule's patch has the lower number, and is written for the commit that the later one moves it to."""
    old, new, *_ = upstream.commits
    run_git(upstream.submodule, "checkout", "--quiet", new)
    write_tree(upstream.submodule, {"inc/sub.h": b"new\n" + LINES + b"1\n"})
    run_git(upstream.submodule, "commit", "--quiet", "--all", "-m", f"change\n\nIt fails without it.\n\n{TRAILERS}")
    prefixes = (f"--src-prefix=a/{SUB}/", f"--dst-prefix=b/{SUB}/")
    run_git(upstream.submodule, "format-patch", "-1", *prefixes, "-o", str(tmp_path / "patches"))
    upstream.move(new)
    upstream.commit()
    whole = upstream.write_series(1, "--start-number=2")

    source = base_tree(tmp_path, {SUB: old})
    main, inner = split_series(whole, source.gitlinks)
    accepted = [patch.name for patch in whole.patches]
    moved = apply_to(tmp_path, main, source, accept=accepted)
    assert (moved.gitlinks, moved.changed) == ({SUB: new}, ())
    (tmp_path / "inner").mkdir()
    below = make_source(tmp_path / "inner", {f"{SUB}/inc/sub.h": LINES + b"1\n"})
    done = apply_to(tmp_path / "inner", inner, below, accept=accepted)
    assert [*done.applied, *moved.applied] == [AppliedPatch(name=name, status="clean") for name in accepted]
    assert read_tree(done.root) == {f"{SUB}/inc/sub.h": b"new\n" + LINES + b"1\n"}


def test_an_accepted_name_that_neither_part_has_is_refused(tmp_path: Path, upstream: Upstream) -> None:
    upstream.move(upstream.commits[1])
    upstream.commit()
    whole = upstream.write_series(1)
    for part in (whole, *split_series(whole, [SUB])):
        with pytest.raises(ApplyError) as raised:
            require_known_acceptance(part, ["0001-change", "0001-chnge"])
        assert raised.value.message == "accept_upstream names '0001-chnge', which is no patch of series 'sample/1.0'"
        assert raised.value.hint == "did you mean 0001-change?"
    _, inner = split_series(whole, [SUB])
    fault = refusal(tmp_path, inner, make_source(tmp_path, {}), accept=["0001-chnge"])
    assert fault.message == "accept_upstream names '0001-chnge', which is no patch of series 'sample/1.0'"


def test_a_part_without_patches_changes_nothing(tmp_path: Path, upstream: Upstream) -> None:
    upstream.move(upstream.commits[1])
    upstream.commit()
    _, inner = split_series(upstream.write_series(1), [SUB])
    done = apply_to(tmp_path, inner, make_source(tmp_path, {}), accept=["0001-change"])
    assert (done.applied, done.changed, done.gitlinks, read_tree(done.root)) == ((), (), {}, {})
