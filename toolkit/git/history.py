"""Reading what was committed in a work tree, whatever its user has configured: the commits, and each as a patch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import WorkTreeError
from toolkit.git.command import RAW_FILES, GitCommand, base_environment

BASE_REF = "refs/toolkit/base"

DEFAULT_CONTEXT = 3

ATTRIBUTES = RAW_FILES.rstrip("\n") + " !diff !merge\n"
"""What the reader goes by: no file of the tree says how another is to be shown."""

NORMAL_FORM = (
    "--zero-commit", "--no-signature", "--full-index", "--find-renames", "--stat=72", "--summary", "--binary",
    "--no-numbered", "--subject-prefix=PATCH", "--no-from", "--no-attach", "--no-thread", "--no-base", "--no-notes",
    "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
    "--diff-algorithm=myers",
)  # fmt: skip
"""`git format-patch` with nothing in its answer that the commit does not decide: no id, date or version of anything."""

LOG_FORMAT = "%H%n%P%n%T%n%an <%ae>%n%ad%n%B"


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One commit. `author` is `Name <address>`, `date` git's raw form such as `1788220800 +0000`."""

    id: str
    tree: str
    subject: str
    body: str
    author: str
    date: str

    @property
    def message(self) -> str:
        """Subject and body, as they go into a commit."""
        return f"{self.subject}\n\n{self.body}\n" if self.body else f"{self.subject}\n"


class History:
    """The commits of a work tree, read through a repository of our own that lends the work tree's objects and index.

    The user's repository may have any configuration, attributes, hooks, replaced objects or grafts: none is seen.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._own = self.folder / ".git" / "toolkit"
        variables = {
            "GIT_DIR": str(self._own),
            "GIT_WORK_TREE": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self.folder / ".git" / "objects"),
            "GIT_INDEX_FILE": str(self.folder / ".git" / "index"),
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        self._git = GitCommand(self.folder, base_environment(os.environ, self._own / "home") | variables)

    def prepare(self, *, has_modes: bool) -> None:
        """Make the repository that reads; without `has_modes` it sees no file's mode change."""
        for folder in ("info", "objects", "refs"):
            (self._own / folder).mkdir(parents=True, exist_ok=True)
        (self._own / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
        modes = "true" if has_modes else "false"
        settings = f"[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tfileMode = {modes}\n"
        (self._own / "config").write_text(settings, encoding="ascii")
        (self._own / "info" / "attributes").write_text(ATTRIBUTES, encoding="ascii")
        (self._own / "info" / "exclude").write_text("__pycache__/\n", encoding="ascii")

    def commits(self, base: str, head: str) -> list[Commit]:
        """List the commits from `base`, which is left out, to `head` in their order.

        Raises WorkTreeError where they are no line of commits on the base: a merge, or another history.
        """
        if self._git.attempt("merge-base", "--is-ancestor", base, head).code != 0:
            raise WorkTreeError(
                f"the base is no longer below what is checked out in {self.folder}",
                hint=f"go back to a commit of the series: git -C {self.folder} checkout series",
            )
        words = ("log", "--reverse", "--topo-order", "-z", "--encoding=UTF-8", "--date=raw", "--no-show-signature")
        raw = self._git.output(*words, f"--format=tformat:{LOG_FORMAT}", f"{base}..{head}").decode("utf-8", "replace")
        return [self._read_commit(entry) for entry in raw.split("\0") if entry]

    def export(self, commit: str, context: int = DEFAULT_CONTEXT) -> bytes:
        """Return a commit as a patch in normal form, with that many lines of context."""
        return self._git.output("format-patch", "--stdout", "-1", *NORMAL_FORM, f"-U{context}", commit)

    def tree(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return self._git.output("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def blob(self, commit: str, path: str) -> bytes | None:
        """Return the bytes of a file as a commit has it, None where it has none of that name."""
        answer = self._git.attempt("cat-file", "blob", f"{commit}:{path}")
        return answer.stdout if answer.code == 0 else None

    def uncommitted(self, head: str) -> list[str]:
        """List the paths that differ from a commit in the index or on disk, those that no commit has among them."""
        (self._own / "HEAD").write_text(f"{head}\n", encoding="ascii")
        raw = self._git.output(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"
        )
        return sorted(entry[3:] for entry in os.fsdecode(raw).split("\0") if entry)

    def unmerged(self) -> list[str]:
        """List the paths that are in conflict."""
        raw = os.fsdecode(self._git.output("ls-files", "--unmerged", "-z"))
        return sorted({entry.partition("\t")[2] for entry in raw.split("\0") if entry})

    def _read_commit(self, entry: str) -> Commit:
        name, parents, tree, author, date, message = entry.split("\n", 5)
        if " " in parents:
            raise WorkTreeError(
                f"commit {name[:12]} in {self.folder} is a merge, and a series is a line of commits",
                hint="put its change on the line instead: git rebase, or git cherry-pick -m 1",
            )
        subject, body = split_message(message)
        return Commit(id=name, tree=tree, subject=subject, body=body, author=author, date=date)


def split_message(message: str) -> tuple[str, str]:
    """Return subject and body of a commit's message; git joins the lines of its first paragraph to the subject."""
    lines = message.strip("\n").split("\n")
    end = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
    return " ".join(line.strip() for line in lines[:end]), "\n".join(lines[end:]).strip("\n")
