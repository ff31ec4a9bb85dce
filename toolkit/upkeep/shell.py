"""Letting a person work in a work tree: his shell or a command, and his editor for a message."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO

from toolkit.errors import UsageError, WorkTreeError
from toolkit.git import author_of, editor_of, person_environment
from toolkit.process import describe_code, run_in_terminal

MESSAGE_FILE = "PATCH_MESSAGE"
COMMENT = "#"


def work_in(
    folder: Path, command: str | None, *, environ: Mapping[str, str], author: str, stdout: IO[str] | None = None
) -> None:
    """Run a command in a folder, or the user's own shell, with his own settings, and wait for its end.

    Commits that are made there where git knows no name get `author`. Raises WorkTreeError where a command fails; what
    a shell ends with says nothing, it is the code of whatever was typed last.
    """
    variables = person_environment(environ)
    if author_of(folder, environ) is None:
        name, _, address = author.rstrip(">").rpartition(" <")
        for role in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address}
    argv = ["/bin/sh", "-c", command] if command is not None else [environ.get("SHELL") or "/bin/sh"]
    code = run_in_terminal(argv, cwd=folder, env=variables, stdout=stdout)
    if command is not None and code != 0:
        raise WorkTreeError(f"`{command}` ended with {describe_code(code)}")


def edit_text(
    folder: Path, text: str, *, environ: Mapping[str, str], is_terminal: bool, stdout: IO[str] | None = None
) -> str:
    """Let the user's editor change a text, and return it without the lines that begin with `#`.

    Raises UsageError where nobody could type: no terminal, and no editor that a program could play.
    """
    chosen = any(environ.get(name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR"))
    editor = editor_of(folder, environ) if chosen or is_terminal else None
    if editor is None:
        raise UsageError("there is no terminal to write the patch's message in", hint="give it with --message FILE")
    path = folder / ".git" / MESSAGE_FILE
    path.write_text(text, encoding="utf-8")
    argv = ["/bin/sh", "-c", f'{editor} "$@"', editor, str(path)]
    code = run_in_terminal(argv, cwd=folder, env=person_environment(environ), stdout=stdout)
    if code != 0:
        raise UsageError(f"the editor {editor!r} ended with {describe_code(code)}")
    return without_comments(read_message(path))


def read_message(path: Path) -> str:
    """Return the text of a file with a message; UsageError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"the message in {path} is not UTF-8: byte {fault.start} is 0x{fault.object[fault.start]:02x}",
            hint="write it in UTF-8 and give it with --message FILE",
        ) from fault


def without_comments(text: str) -> str:
    """Return a message without the template's remarks."""
    return "\n".join(line.rstrip() for line in text.splitlines() if not line.startswith(COMMENT)).strip()
