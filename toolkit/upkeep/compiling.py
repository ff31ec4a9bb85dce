"""Whether the Python files that a series patches still compile, after each patch of it.

Compiled means read by this interpreter's compiler in the grammar of the oldest target; nothing is run.
"""

from __future__ import annotations

import ast
import shutil
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from toolkit.git import Attempt, Workspace
from toolkit.model import Patch, SourceTree
from toolkit.series.diff import FileDiff, Hunk
from toolkit.series.lines import PatchFault, placed_hunks
from toolkit.series.undone import ReadPatch

OLDEST = (3, 10)
"""The grammar of the oldest interpreter that an overlay can be for."""

NOT_APPLYING = "does not apply to "
"""How a fault begins that no compiler has seen."""

SURROUNDINGS = ("", "if 1:\n    pass\n", "try:\n    pass\n", "match 1:\n    case 1:\n        pass\n")
"""What may stand above a piece of a file whose first line goes on with a statement (`else:`, `except:`)."""


def faults_on_base(
    patches: Sequence[ReadPatch], tree: SourceTree, *, label: str, scratch: Path, is_home: bool
) -> Iterator[tuple[Patch, PatchFault]]:
    """Apply the Python part of each patch in turn to a base, and compile every file that it changes.

    A file that did not compile before the patch is no fault of it. The first patch that does not apply ends it, but
    on a base other than the series' home one whose change is there already is left out.
    """
    with Workspace(scratch) as workspace:
        _lay_out(patches, tree, workspace.tree)
        for one in patches:
            files = [file for file in one.files if _is_python(file)]
            before = {file.path: _fault_in(_read(workspace.tree / file.old_path)) for file in files}
            diff = b"".join(file.raw for file in files)
            attempt = workspace.apply(diff) if files else None
            if attempt and not attempt.fits:
                if not is_home and workspace.check(diff, reverse=True).fits:
                    continue
                why = f"{NOT_APPLYING}{label}: {_first_message(attempt)}; see `toolkit patch status`"
                yield one.patch, PatchFault(what=why)
                return
            after = {file.path: _fault_in(_read(workspace.tree / file.path)) for file in files}
            yield from ((one.patch, fault) for fault in _new_faults(one, before, after))


def faults_alone(patches: Sequence[ReadPatch]) -> Iterator[tuple[Patch, PatchFault]]:
    """Compile what stands alone in the patches themselves: whole new files, and hunks that compiled before."""
    for one in patches:
        for placed in placed_hunks(one.raw, one.files):
            if not _is_python(placed.file):
                continue
            is_new = placed.file.kind == "added" and placed.file.old_path == placed.file.path
            fault = _fault_in(b"".join(placed.hunk.after)) if is_new else _fault_in_piece(placed.hunk)
            if fault:
                what = f"{placed} does not compile: {_described(fault)}"
                yield one.patch, PatchFault(what=what, line=_line_in(one, placed.file.path, fault) or placed.line)


def _lay_out(patches: Sequence[ReadPatch], tree: SourceTree, target: Path) -> None:
    named = {path for one in patches for file in one.files if _is_python(file) for path in (file.path, file.old_path)}
    for path in sorted(named & tree.members):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree.root / path, target / path)


def _is_python(file: FileDiff) -> bool:
    return all(PurePosixPath(path).suffix in (".py", ".pyi") for path in (file.path, file.old_path))


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _first_message(attempt: Attempt) -> str:
    """Return what git says first of a place; before that it shows the lines that it looked for."""
    messages = [message.removeprefix("error: ") for message in attempt.messages]
    return next((message for message in messages if not message.startswith("while searching")), "git does not say why")


def _new_faults(
    one: ReadPatch, before: Mapping[str, SyntaxError | None], after: Mapping[str, SyntaxError | None]
) -> Iterator[PatchFault]:
    for path, fault in after.items():
        if fault and not before[path]:
            at = f"line {fault.lineno}: " if fault.lineno else ""
            what = f"{path} does not compile with it: {at}{_described(fault)}"
            yield PatchFault(what=what, line=_line_in(one, path, fault))


def _fault_in(source: bytes) -> SyntaxError | None:
    """Compile a module; the compiler's warnings are not what is asked about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(ast.parse(source, feature_version=OLDEST), "<patched>", "exec", dont_inherit=True)
        except SyntaxError as fault:
            return fault
        except ValueError as fault:  # A NUL byte, for one, in the words of some versions.
            return SyntaxError(str(fault))
    return None


def _fault_in_piece(hunk: Hunk) -> SyntaxError | None:
    """Judge a hunk by itself, where what it had before is whole by itself: what it lacks above or below is not seen."""
    own = next((above for above in SURROUNDINGS if _parse_piece(above, hunk.before) is None), None)
    if own is None or any(_parse_piece(above, hunk.after) is None for above in SURROUNDINGS):
        return None
    return _parse_piece(own, hunk.after)


def _parse_piece(above: str, lines: Sequence[bytes]) -> SyntaxError | None:
    """Parse a piece of a file below what may stand above it."""
    text = textwrap.dedent(b"".join(lines).decode("utf-8", "replace"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(above + text, feature_version=OLDEST)
        except SyntaxError as fault:
            return fault
        except ValueError as fault:
            return SyntaxError(str(fault))
    return None


def _described(fault: SyntaxError) -> str:
    text = f": {fault.text.strip()!r}" if fault.text and fault.text.strip() else ""
    return f"{fault.msg}{text}"


def _line_in(one: ReadPatch, path: str, fault: SyntaxError) -> int:
    """Return the line of the patch file that adds the line with the fault, 0 where that is none, or not just one."""
    wanted = (fault.text or "").strip().encode()
    found = [
        number
        for placed in placed_hunks(one.raw, one.files)
        if placed.file.path == path
        for number, line in placed.added()
        if line.strip() == wanted
    ]
    return found[0] if wanted and len(found) == 1 else 0
