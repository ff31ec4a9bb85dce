"""A git work tree of ours that people work in: a base as its first commit, and one commit a patch on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolkit.errors import ApplyError, WorkTreeError
from toolkit.files import remove_tree
from toolkit.git.command import RAW_FILES, Answer, GitCommand, base_environment, failure, refuse_full_disk
from toolkit.git.history import BASE_REF, DEFAULT_CONTEXT, Commit, History
from toolkit.git.listing import GITLINK, Listing, parse_listing
from toolkit.git.repository import read_blobs

BRANCH = "series"
NAME = "toolkit"
ADDRESS = "toolkit@example.invalid"
BASE_DATE = "946684800 +0000"
"""When the base's commit was made: the same for all, so that the same files give the same commit."""

OWN_SETTINGS = """\
[core]
\tautocrlf = false
\tsplitIndex = false
\tfsmonitor = false
\tignoreCase = false
\tprecomposeUnicode = false
\tfileMode = {has_modes}
[gc]
\tauto = 0
"""
"""What the repository says itself, as its user's own configuration may say something else."""

UNMOVED = (
    "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "rerere.enabled=false",
    "-c", "merge.conflictStyle=diff3", "-c", "core.editor=true", "-c", "advice.mergeConflict=false",
)  # fmt: skip
"""What no setting in the repository may change in the commands that we run."""

SPEED = ("-c", "core.looseCompression=0", "-c", "core.fsync=none", "-c", "core.preloadIndex=true")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pick:
    """What became of a commit that was put on top of another history.

    `status` is `done`, `empty` where all of its change is there already (it is left out), or `conflict`: then `paths`
    are those in conflict and the work tree waits. `commit` is the new one's id, None unless it is done.
    """

    status: Literal["done", "empty", "conflict"]
    commit: str | None = None
    paths: tuple[str, ...] = ()


class WorkTree:
    """A repository of our own in `folder`, with its files in the open; it stays until it is removed.

    What is done here sees nobody's configuration, hooks or templates; its user may work in it with his own. All that
    is read goes through `History`, which no setting reaches.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.history = History(self.folder)
        self._own = self.folder / ".git"
        variables = {"GIT_DIR": str(self._own), "GIT_WORK_TREE": str(self.folder), "GIT_NO_REPLACE_OBJECTS": "1"}
        self._environment = base_environment(os.environ, self._own / "home") | variables
        self._git = GitCommand(self.folder, self._environment | _identity("COMMITTER", NAME, ADDRESS, BASE_DATE))

    # --- making it -----------------------------------------------------------------------------------------------

    def start(
        self, *, files: Mapping[str, bytes] | None = None, gitlinks: Mapping[str, str] | None = None,
        has_modes: bool = True,
    ) -> str:  # fmt: skip
        """Commit the base: all that lies in the folder, and `files` besides; return the commit.

        The folder may have been filled before (`Source.lay_out`), but not with a repository. `gitlinks` are the
        submodules that the base records, by path; their folders are made, and stay empty. Without `has_modes` the
        modes of the files are no matter: in a wheel they are what packed it.
        """
        if self._own.exists():
            raise WorkTreeError(f"there is a repository in {self.folder} already", hint="remove that folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        for path, raw in (files or {}).items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(raw)
        try:
            return self._commit_base(gitlinks or {}, has_modes)
        except BaseException:
            remove_tree(self._own)
            raise

    def add_patch(self, diff: bytes, message: str, *, author: str, date: str) -> str:
        """Apply a diff, its context exact, to what is checked out, and commit it; return the commit.

        `author` is `Name <address>`, `date` git's raw form. Raises ApplyError, with the tree as it was, where git
        finds that it does not fit.
        """
        self.apply(diff)
        return self.commit(message, author=author, date=date)

    def apply(self, diff: bytes) -> None:
        """Apply a diff, its context exact, to the files and the index; ApplyError, with both as they were, if not."""
        source = self._own / "toolkit" / "input.diff"
        source.write_bytes(diff)
        answer = self._run("apply", "--index", "--whitespace=nowarn", "-p1", str(source))
        if answer.code != 0:
            refuse_full_disk(answer.stderr, self.folder)
            raise ApplyError("git cannot apply the diff", details=_error_lines(answer.stderr))

    def commit(self, message: str, *, author: str, date: str, amend: bool = False) -> str:
        """Commit what the index holds on top of HEAD, or with `amend` in its place; return the commit."""
        return self._commit(["HEAD^" if amend else "HEAD"], message, author=author, date=date)

    def stage_all(self) -> None:
        """Take every change on disk into the index: what was edited, removed, or is new and not ignored."""
        self._output("add", "--all")

    # --- reading it ----------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the base was committed here."""
        return self._run("rev-parse", "--verify", "--quiet", BASE_REF).code == 0 if self._own.is_dir() else False

    @property
    def base(self) -> str:
        """The base's commit."""
        return self._name_of(BASE_REF)

    @property
    def head(self) -> str:
        """The commit that is checked out."""
        return self._name_of("HEAD")

    def commits(self) -> list[Commit]:
        """List the commits from the base, which is left out, to HEAD; WorkTreeError where they are no line."""
        return self.history.commits(self.base, self.head)

    def uncommitted(self) -> list[str]:
        """List the paths with changes that are in no commit, new files too."""
        return self.history.uncommitted(self.head)

    def is_clean(self) -> bool:
        """Whether all that is there is committed."""
        return not self.uncommitted()

    def export(self, commit: str, context: int = DEFAULT_CONTEXT) -> bytes:
        """Return a commit as a patch in normal form."""
        return self.history.export(commit, context)

    def tree(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self.history.tree(commit)

    def members(self) -> frozenset[str]:
        """List the files of the base."""
        return frozenset(path for path, entry in self._base_entries().items() if entry.mode != GITLINK)

    def write_base(self, paths: Iterable[str], into: Path) -> None:
        """Write those files of the base below `into`, as they were before any patch."""
        entries = [self._base_entries()[path] for path in paths]
        blobs = read_blobs(self._git, sorted({entry.id for entry in entries}))
        into.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            (into / entry.path).parent.mkdir(parents=True, exist_ok=True)
            (into / entry.path).write_bytes(blobs[entry.id])
            (into / entry.path).chmod(int(entry.mode[3:], 8))

    # --- moving in it --------------------------------------------------------------------------------------------

    def checkout(self, commit: str) -> None:
        """Let the branch, the index and the files be those of a commit; changes that are in no commit are lost.

        Ends a pick that waits. Files that no commit has stay.
        """
        self._output("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
        self._output("reset", "--quiet", "--hard", commit)

    def uncommit(self) -> None:
        """Take the last commit back, and leave its change in the files."""
        self._output("reset", "--quiet", "--mixed", "HEAD^")

    def pick(self, commit: str) -> Pick:
        """Put a commit's change on top of HEAD by a three-way merge; author, date and message stay.

        In a conflict the tree is left with it, for a person: `unmerged` lists what is to be resolved, and
        `finish_pick` goes on.
        """
        answer = self._run("cherry-pick", "--allow-empty", "--cleanup=verbatim", commit)
        if answer.code == 0:
            return Pick(status="done", commit=self.head)
        if paths := self.history.unmerged():
            return Pick(status="conflict", paths=tuple(paths))
        if self.is_picking and self.is_clean():
            self.checkout(self.head)
            return Pick(status="empty")
        refuse_full_disk(answer.stderr, self.folder)
        raise failure("cherry-pick", answer)

    @property
    def is_picking(self) -> bool:
        """Whether a pick waits to be finished."""
        return (self._own / "CHERRY_PICK_HEAD").exists()

    @property
    def unfinished(self) -> str:
        """The command that its user has begun there and not ended, such as `git rebase`; empty where there is none."""
        marks = {"rebase-merge": "git rebase", "rebase-apply": "git rebase", "MERGE_HEAD": "git merge"}
        marks |= {"REVERT_HEAD": "git revert", "BISECT_LOG": "git bisect"}
        return next((command for mark, command in marks.items() if (self._own / mark).exists()), "")

    def unmerged(self) -> list[str]:
        """List the paths that are in conflict still."""
        return self.history.unmerged()

    def finish_pick(self) -> Pick:
        """Commit a pick whose conflicts a person has resolved and added; WorkTreeError where some are not."""
        if paths := self.unmerged():
            raise WorkTreeError(
                f"{', '.join(paths)} in {self.folder}: the conflict is not resolved",
                hint=f"edit, then: git -C {self.folder} add {' '.join(paths)}",
            )
        if self.is_clean():
            self.checkout(self.head)
            return Pick(status="empty")
        self._output("cherry-pick", "--continue")
        return Pick(status="done", commit=self.head)

    def keep(self, names: Mapping[str, str]) -> None:
        """Give commits names below `refs/patches/`, by which a person finds them and nothing removes them."""
        old = self._output("for-each-ref", "--format=%(refname:lstrip=2)", "refs/patches/").decode().split("\n")
        gone = [f"delete refs/patches/{name}\n" for name in old if name and name not in names]
        here = [f"update refs/patches/{name} {commit}\n" for name, commit in names.items()]
        self._output("update-ref", "--stdin", stdin="".join(gone + here).encode())

    # --- below ---------------------------------------------------------------------------------------------------

    def _base_entries(self) -> Listing:
        raw = self._output("ls-tree", "-r", "-z", "--full-tree", self.base)
        return parse_listing(raw, what=f"the base in {self.folder}")

    def _commit_base(self, gitlinks: Mapping[str, str], has_modes: bool) -> str:
        self._output("init", "--quiet", "--template=", f"--initial-branch={BRANCH}")
        with (self._own / "config").open("a", encoding="ascii") as stream:
            stream.write(OWN_SETTINGS.format(has_modes="true" if has_modes else "false"))
        (self._own / "info").mkdir(exist_ok=True)
        (self._own / "info" / "attributes").write_text(RAW_FILES, encoding="ascii")
        (self._own / "info" / "exclude").write_text("__pycache__/\n", encoding="ascii")
        self.history.prepare(has_modes=has_modes)
        for path in gitlinks:
            (self.folder / path).mkdir(parents=True, exist_ok=True)
        self._git.output(*SPEED, "add", "--all", "--force")
        if gitlinks:
            entries = "".join(f"{GITLINK} {commit}\t{path}\0" for path, commit in gitlinks.items())
            self._output("update-index", "-z", "--index-info", stdin=entries.encode())
        commit = self._commit([], "base\n", author=f"{NAME} <{ADDRESS}>", date=BASE_DATE)
        refs = f"create {BASE_REF} {commit}\ncreate refs/tags/base {commit}\n"
        self._output("update-ref", "--stdin", stdin=refs.encode())
        return commit

    def _commit(self, parents: Iterable[str], message: str, *, author: str, date: str) -> str:
        """Commit the index. The committer and his date follow the author's date, so that the id repeats."""
        tree = self._output("write-tree").decode().strip()
        name, _, address = author.rstrip(">").rpartition(" <")
        variables = _identity("AUTHOR", name, address, date) | _identity("COMMITTER", NAME, ADDRESS, date)
        git = GitCommand(self.folder, self._environment | variables)
        words = [word for parent in parents for word in ("-p", parent)]
        raw = git.output("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *words, stdin=message.encode())
        commit = raw.decode().strip()
        self._output("update-ref", "HEAD", commit)
        return commit

    def _name_of(self, revision: str) -> str:
        answer = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if answer.code != 0:
            raise WorkTreeError(f"{self.folder} has no commit {revision!r}", hint="remove that folder and begin again")
        return answer.stdout.decode().strip()

    def _run(self, *words: str, stdin: bytes = b"") -> Answer:
        return self._git.attempt(*UNMOVED, *words, stdin=stdin)

    def _output(self, *words: str, stdin: bytes = b"") -> bytes:
        return self._git.output(*UNMOVED, *words, stdin=stdin)


def _identity(role: str, name: str, address: str, date: str) -> dict[str, str]:
    return {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address, f"GIT_{role}_DATE": date}


def _error_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith(("error:", "fatal:"))]
