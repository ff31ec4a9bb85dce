"""A series on its way to upstream: as mails that `git am` takes, or as a branch in a clone of the user's.

In the clone nothing is touched but its objects and one new ref: they are made aside, and come in when all is whole.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ApplyError, FetchError, UsageError
from toolkit.files import temporary_directory
from toolkit.git import WorkTree, git_in
from toolkit.git.command import GitCommand, base_environment
from toolkit.git.refs import objects_folder
from toolkit.model import Patch, Series
from toolkit.project import Project
from toolkit.series import Line, load_series, read_line
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.gitlinks import is_gitlink
from toolkit.series.mail import Mail, parse_mail
from toolkit.series.place import find_misplacement
from toolkit.upkeep.arriving import AUTHOR
from toolkit.upkeep.bases import obtain_tree, this_interpreter
from toolkit.upkeep.roundtrip import commit_patches, has_modes, read_again
from toolkit.upkeep.trailers import without_trailers
from toolkit.work import Means

NUMBERED = b"Subject: [PATCH %d/%d] "
NAMED = b"Subject: [PATCH] "


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedPatch:
    """One patch as upstream gets it: `mail` is the whole mail, with the paths of upstream's repository."""

    name: str
    subject: str
    mail: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedBranch:
    """A branch that was made in a clone: its commits, in order, on the one that it begins at."""

    name: str
    onto: str
    commits: tuple[str, ...]


def export_mails(
    project: Project, means: Means, name: str, *, numbers: Collection[int] = (), keep_trailers: bool = False
) -> list[ExportedPatch]:
    """Write a series, or some patches of it, as mails in order, each without the trailers that are only ours.

    Raises ApplyError where the chosen patches do not apply strictly without the others.
    """
    series = load_series(project.series_folder(name), name=name)
    line = read_line(project.series_folder(name), name=name)
    chosen = _choose(series, numbers)
    with temporary_directory("toolkit-export-") as scratch:
        worktree, commits = _commit_on_home(chosen, line, name.partition("/")[0], means, scratch / "tree")
        return _write_mails(chosen, commits, worktree, line.subfolder, keep_trailers)


def export_branch(
    patches: Sequence[ExportedPatch], repository: Path, *, branch: str, onto: str, committer: str,
    environ: Mapping[str, str],
) -> ExportedBranch:  # fmt: skip
    """Make a branch of mails in a clone, on what `onto` names there.

    Its work tree, index, HEAD and configuration stay as they are. `committer` is `Name <address>`, empty for whom the
    clone's configuration names. Raises ApplyError, and has changed nothing, where a patch does not apply strictly.
    """
    clone = _Clone(repository)
    clone.require_free(branch)
    if committer and not AUTHOR.match(committer):
        raise UsageError(f"--committer {committer!r} is not NAME <ADDRESS>")
    start = clone.commit_of(onto)
    person = committer or clone.identity(environ)
    with temporary_directory("toolkit-branch-") as scratch:
        commits = clone.commit_aside(patches, start, person, scratch)
        clone.take_in(commits[-1], start, scratch)
    clone.create(branch, commits[-1])
    return ExportedBranch(name=branch, onto=start, commits=tuple(commits))


def _choose(series: Series, numbers: Collection[int]) -> list[Patch]:
    if unknown := sorted(set(numbers) - {patch.number for patch in series.patches}):
        raise UsageError(
            f"series {series.name!r} has no patch {unknown[0]}",
            hint=f"it has {', '.join(str(patch.number) for patch in series.patches)}",
        )
    return [patch for patch in series.patches if not numbers or patch.number in numbers]


def _commit_on_home(
    patches: Sequence[Patch], line: Line, component: str, means: Means, folder: Path
) -> tuple[WorkTree, list[str]]:
    """Make a work tree of a series' home with a commit for each of some patches."""
    paths = {path for patch in patches for change in patch.changes for path in (change.path, change.old_path)}
    found = obtain_tree(
        line.home, line, paths, component=component, means=means, interpreter=this_interpreter(means), into=folder
    )
    worktree = WorkTree(folder)
    worktree.start(gitlinks=found.tree.gitlinks, has_modes=has_modes(found.base))
    return worktree, commit_patches([read_again(patch) for patch in patches], worktree)


# --- mails -----------------------------------------------------------------------------------------------------


def _write_mails(
    patches: Sequence[Patch], commits: Sequence[str], worktree: WorkTree, subfolder: str, keep_trailers: bool
) -> list[ExportedPatch]:
    """Commit the same trees below the subfolder, with upstream's messages, and write those commits as mails."""
    parent = _commit(worktree, worktree.base, "base\n", subfolder, author="", date="")
    exported = []
    for number, (patch, commit) in enumerate(zip(patches, commits, strict=True), 1):
        read = read_again(patch)
        message = read.message if keep_trailers else without_trailers(read.message)
        parent = _commit(worktree, commit, message, subfolder, parent, author=read.mail.author, date=read.mail.date)
        mail = worktree.export(parent, read.context)
        if len(patches) > 1:
            mail = mail.replace(NAMED, NUMBERED % (number, len(patches)), 1)
        exported.append(ExportedPatch(name=patch.name, subject=patch.subject, mail=mail))
    return exported


def _commit(
    worktree: WorkTree, commit: str, message: str, subfolder: str, *parents: str, author: str, date: str
) -> str:  # fmt: skip
    person, when = author or "base <base@example.invalid>", date or "946684800 +0000"
    git = git_in(worktree.folder / ".git", **_identity(person, when, person, when))
    tree = worktree.tree(commit)
    for part in reversed(subfolder.split("/") if subfolder else []):
        tree = git.output("mktree", "-z", stdin=f"040000 tree {tree}\t{part}\0".encode()).decode().strip()
    return _commit_tree(git, tree, parents, message)


def _commit_tree(git: GitCommand, tree: str, parents: Sequence[str], message: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    made = git.output("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *words, stdin=message.encode())
    return made.decode().strip()


def _identity(author: str, date: str, committer: str, committed: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for role, person, when in (("AUTHOR", author, date), ("COMMITTER", committer, committed)):
        name, _, address = person.rstrip().removesuffix(">").rpartition(" <")
        found |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address}
        found |= {f"GIT_{role}_DATE": when} if when else {}
    return found


# --- branches --------------------------------------------------------------------------------------------------


class _Clone:
    """A repository of the user's, which is given commits and one ref."""

    def __init__(self, place: Path) -> None:
        objects = objects_folder(place)
        if objects is None:
            raise FetchError(f"{place} has no git repository", hint="name a folder with a clone: --repository DIR")
        self.place = place
        self._objects = objects.absolute()
        dot_git = place / ".git"
        lead = dot_git.read_text(encoding="utf-8").strip().removeprefix("gitdir: ") if dot_git.is_file() else ""
        self._own = (place / lead if lead else dot_git if dot_git.is_dir() else place).absolute()
        self._git = self._command()

    def require_free(self, branch: str) -> None:
        """Raise UsageError for a branch that is there, or has a name that none can have."""
        if (
            branch == "HEAD"
            or branch.startswith("-")
            or self._git.attempt("check-ref-format", f"refs/heads/{branch}").code != 0
        ):
            raise UsageError(f"{branch!r} is no name for a branch", hint="see `git help check-ref-format`")
        if self._git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").code == 0:
            raise UsageError(
                f"{self.place} has a branch {branch!r} already", hint="name another, or take that one away yourself"
            )

    def commit_of(self, ref: str) -> str:
        """Return the commit that a ref names; UsageError where there is none."""
        found = self._git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.code != 0:
            raise UsageError(f"{self.place} has no commit {ref!r}", hint="name a branch, tag or commit with --onto")
        return found.stdout.decode().strip()

    def identity(self, environ: Mapping[str, str]) -> str:
        """Return who commits there, as git would say itself; UsageError where no configuration does."""
        seen = {name: environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if name in environ}
        git = GitCommand(self._own, {**seen, "GIT_DIR": str(self._own)})
        found = [git.attempt("config", "--get", f"user.{key}").stdout.decode().strip() for key in ("name", "email")]
        if not all(found):
            raise UsageError(
                f"nothing says who commits in {self.place}: no user.name and user.email",
                hint='say it: --committer "NAME <ADDRESS>"',
            )
        return f"{found[0]} <{found[1]}>"

    def commit_aside(
        self, patches: Sequence[ExportedPatch], start: str, committer: str, scratch: Path
    ) -> list[str]:  # fmt: skip
        """Apply mails to a commit's tree, one commit each, and keep all that is new below `scratch`."""
        (scratch / "objects").mkdir()
        git = self._command(**self._aside(scratch))
        git.output("read-tree", start)
        commits = [start]
        for patch in patches:
            mail = parse_mail(patch.mail, [])
            self._apply(git, patch, mail, scratch)
            tree = git.output("write-tree").decode().strip()
            writer = self._command(**self._aside(scratch), **_identity(mail.author, mail.date, committer, ""))
            commits.append(_commit_tree(writer, tree, commits[-1:], f"{mail.subject}\n\n{mail.body}".strip() + "\n"))
        return commits[1:]

    def take_in(self, tip: str, start: str, scratch: Path) -> None:
        """Bring what was made aside into the clone's own objects."""
        pack = self._command(**self._aside(scratch)).output(
            "pack-objects", "--quiet", "--revs", "--stdout", stdin=f"{tip}\n^{start}\n".encode()
        )
        self._git.output("unpack-objects", "-q", stdin=pack)

    def create(self, branch: str, commit: str) -> None:
        """Make the branch; a failure where it has come to be meanwhile."""
        zero = "0" * len(commit)
        self._git.output("update-ref", "-m", "toolkit patch export", f"refs/heads/{branch}", commit, zero)

    def _apply(self, git: GitCommand, patch: ExportedPatch, mail: Mail, scratch: Path) -> None:
        files = parse_diff(mail.diff, [])
        source = scratch / "input.diff"
        source.write_bytes(b"".join(file.raw for file in files))
        answer = git.attempt(
            "apply", "--cached", "--check", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1", str(source)
        )
        lines = [line for line in answer.stderr.splitlines() if line.startswith(("error:", "fatal:"))]
        if answer.code == 0:
            lines = [fault for file in files if (fault := _misplacement(git, file))]
        if lines:
            raise ApplyError(
                f"patch {patch.name} does not apply to what was asked for in {self.place}; no branch was made",
                details=lines,
                hint="name another commit with --onto, or move the series there first: toolkit patch rebase",
            )
        git.output("apply", "--cached", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1", str(source))

    def _aside(self, scratch: Path) -> dict[str, str]:
        return {
            "GIT_INDEX_FILE": str(scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{self._objects}"',
        }

    def _command(self, **variables: str) -> GitCommand:
        """Return the way to run git there: with the clone's own settings, but none that runs or converts anything."""
        environment = base_environment(os.environ, self._own / "no-home") | {
            "GIT_DIR": str(self._own), "GIT_NO_REPLACE_OBJECTS": "1", "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": os.devnull,
        }  # fmt: skip
        return GitCommand(self._own, environment | variables)


def _misplacement(git: GitCommand, file: FileDiff) -> str:
    """Say why a hunk that git would take cannot be trusted to be in its place, or nothing."""
    if not file.is_edit or is_gitlink(file):
        return ""
    raw = git.output("cat-file", "blob", f":{file.old_path}")
    found = find_misplacement(file, raw, reverse=False)
    return f"hunk #{found.hunk} of {file.path} fits at line {found.line}, but {found.reason}" if found else ""
