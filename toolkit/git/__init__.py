"""The only place that talks to git, through GitPython, and never in anybody else's repository or configuration."""

from toolkit.git.checkout import check_out_commit
from toolkit.git.command import git_version
from toolkit.git.fetching import Limits, Refusal, fetch_commit
from toolkit.git.history import Commit, History, split_message
from toolkit.git.listing import EXECUTABLE, GITLINK, SYMLINK, Listing, TreeEntry, gitlinks, path_fault
from toolkit.git.mails import Draft, render_mails
from toolkit.git.person import author_of, editor_of, person_environment
from toolkit.git.repository import (
    Tree,
    TreeEdit,
    commit_time,
    edit_tree,
    git_in,
    is_marked,
    make_repository,
    missing_part,
    read_blobs,
    read_settings,
    read_tree,
)
from toolkit.git.workspace import Attempt, HunkOffset, Workspace, isolated_environment
from toolkit.git.worktree import Pick, WorkTree

__all__ = [
    "EXECUTABLE", "GITLINK", "SYMLINK", "Attempt", "Commit", "Draft", "History", "HunkOffset", "Limits", "Listing",
    "Pick", "Refusal", "Tree", "TreeEdit", "TreeEntry", "WorkTree", "Workspace", "author_of", "check_out_commit",
    "commit_time", "edit_tree", "editor_of", "fetch_commit", "git_in", "git_version", "gitlinks", "is_marked",
    "isolated_environment", "make_repository", "missing_part", "path_fault", "person_environment", "read_blobs",
    "read_settings", "read_tree", "render_mails", "split_message",
]  # fmt: skip
