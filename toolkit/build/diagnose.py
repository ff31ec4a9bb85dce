"""Find the first real cause in the log of a build that failed.

`RULES` is an ordered table: what ends a build for sure stands before what often follows from something else. CMake,
ninja and setuptools all report that a step of theirs failed; why stands further up, in the step's own words.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BuildError, SandboxError, StorageError, ToolkitError
from toolkit.process import describe_code

ASK_FEWER_JOBS = "use fewer jobs with --jobs"
BRING_IT = "what a build downloads must come with it: as a submodule, in `requires`, or switched off in `env`"
STAY_INSIDE = "a build may write only in its own folder, HOME and TMPDIR; set what leads it elsewhere in `env`"
NOT_SEEN = (
    "a build does not see the machine's {}: it may read there what `env` or `pass_env` names by its path, and write "
    "only in its own folder, HOME and TMPDIR"
)
REQUIRE_IT = "add it to `requires` in `[component.base.build]`, and run `toolkit lock`"

READ_LIMIT = 4 << 20
"""How many bytes of a log's beginning and end are looked at, each."""

QUOTED_SOURCE = re.compile(r"^ *\d* \|.*$", re.MULTILINE)
"""Lines of sources that a compiler shows with its messages: what stands in them did not happen."""

QUOTE_LIMIT = 400
PATH_QUOTES = "'\"\u2018\u2019`"
"""What tools put around a path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How one cause shows itself. `pattern` may name the group `quote`, else the whole match is quoted.

    Where it names `path`, only a path outside the build's folder counts, and it is what is quoted. With `remark`, the
    cause is worth telling even where another one ended the build.
    """

    pattern: re.Pattern[str]
    cause: str = "{}"
    hint: str = ""
    error: type[ToolkitError] = BuildError
    remark: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Why a build failed: the error to raise, its words and what to do, and what else the log shows."""

    cause: str
    hint: str = ""
    error: type[ToolkitError] = BuildError
    remarks: tuple[str, ...] = ()


def _rule(
    pattern: str, cause: str = "{}", hint: str = "", error: type[ToolkitError] = BuildError, *, remark: bool = False
) -> Rule:
    return Rule(pattern=re.compile(pattern, re.MULTILINE), cause=cause, hint=hint, error=error, remark=remark)


def _outside(pattern: str) -> Rule:
    return _rule(pattern, "the build writes outside its folder: {}", STAY_INSIDE, remark=True)


def _line_with(*words: str) -> str:
    return rf"^.*(?:{'|'.join(words)}).*$"


PATH = rf"(?P<path>/[^{PATH_QUOTES}:\s]+)"
MISSING = "No such file or directory"
REFUSED = "(?:Read-only file system|Permission denied)"
COMPILER = r"(?:[\w.+-]*-)?(?:cc1(?:plus)?|gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|ld)(?:-[\d.]+)?"

RULES = (
    _rule(r"^bwrap: .*$", "its sandbox could not be set up: {}", "build with --sandbox off", SandboxError),
    _rule(_line_with("Killed signal terminated program", "fatal error: Killed", "internal compiler error: Killed",
                     r"^Killed$", "virtual memory exhausted", "out of memory allocating", r"^MemoryError\b",
                     r"(?:fork|Errno 12\]).*Cannot allocate memory", r"terminate called .*std::bad_alloc"),
          "a compiler ran out of memory: {}", ASK_FEWER_JOBS),
    _rule(_line_with("No space left on device", "Disk quota exceeded"),
          "the disk is full: {}", "free some space, or choose another place with --store", StorageError),
    _rule(r"^[^\s:][^:\n]*:\d+(?::\d+)?: (?:fatal )?error: .*$"),
    _rule(rf"^(?:\S*/)?{COMPILER}: (?:fatal )?error: .*$"),
    _rule(_line_with("Temporary failure in name resolution", "Name or service not known", "Network is unreachable",
                     "Could not resolve (?:host|proxy)", "Failed to resolve", "NewConnectionError",
                     "No address associated with hostname", "Couldn't resolve host"),
          "the build asked for the network, which a build does not have: {}", BRING_IT, remark=True),
    _outside(rf"{REFUSED}: ?[{PATH_QUOTES}]?{PATH}"),
    _outside(rf"(?:^|[{PATH_QUOTES}\s]){PATH}[{PATH_QUOTES}]?: {REFUSED}"),
    _outside(rf"\({REFUSED}\):\s+{PATH}"),
    _outside(rf"cannot create directory: {PATH}\.\s+Maybe need"),
    _outside(_line_with("Read-only file system")),
    _rule(r"^CMake Error[^\n]*(?:\n+  [^\n]*)*"),
    _rule(_line_with("undefined reference to", "multiple definition of", "cannot find -l")),
    _rule(r"^ERROR Missing dependencies:\s*(?P<quote>(?:\n\s+\S[^\n]*)+)",
          "the build's environment lacks {}", REQUIRE_IT),
    _rule(r"^ModuleNotFoundError: No module named .*$", "{}", f"if the build imports it from elsewhere, {REQUIRE_IT}"),
    _rule(r"^ninja: (?:error|fatal): .*$"),
    _rule(r"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)+(?P<quote>(?!subprocess\.)[^\s][^\n]*)"),
    _rule(r"^FAILED: [^\n]*\n[^\n]*\n(?P<quote>(?!ninja:)[^\n]+)"),
    _rule(r"^(?:FAILED: |make(?:\[\d+\])?: \*\*\* |error: |ERROR ).*$"),
    _rule(r"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)+(?P<quote>[^\s][^\n]*)"),
)  # fmt: skip


MISSING_PATHS = (
    re.compile(rf"{MISSING}: ?[{PATH_QUOTES}]?{PATH}"),
    re.compile(rf"(?:^|[{PATH_QUOTES}\s]){PATH}[{PATH_QUOTES}]?: {MISSING}"),
)
"""How tools say that something is not there."""


def _hide_nothing(_path: Path) -> Path | None:
    return None


def diagnose(
    log_file: Path, code: int, *, work: Path, tree_root: Path,
    hidden: Callable[[Path], Path | None] = _hide_nothing,
) -> Diagnosis:  # fmt: skip
    """Find the cause in a build's log, its words with paths from the tree's top; else the exit code is all there is.

    `hidden` returns the folder that the sandbox hides, for a path in one: the hint says so where that is not there.
    """
    text = _read(log_file)
    found = [(rule, quote) for rule in RULES if (quote := _find(rule, text, work, tree_root))]
    if not found:
        return _of_code(code)
    rule, quote = found[0]
    told = {other.hint: other.cause.format(words) for other, words in reversed(found) if other.remark}
    told.pop(rule.hint, None)
    remarks = tuple(f"the log also shows that {words}" for words in told.values())
    hint = rule.hint or _explain_missing(quote, hidden)
    return Diagnosis(cause=rule.cause.format(quote), hint=hint, error=rule.error, remarks=remarks)


def _explain_missing(quote: str, hidden: Callable[[Path], Path | None]) -> str:
    missing = [Path(match["path"]) for pattern in MISSING_PATHS if (match := pattern.search(quote))]
    folders = [folder for path in missing if (folder := hidden(path))]
    return NOT_SEEN.format(folders[0]) if folders else ""


def _of_code(code: int) -> Diagnosis:
    """Say what an exit code does; shells and bubblewrap make a signal's number 128 larger."""
    end = describe_code(128 - code if code > 128 else code)
    killed = end == describe_code(-signal.SIGKILL)
    return Diagnosis(
        cause=f"its build ended with {end}", hint=f"where memory was short, {ASK_FEWER_JOBS}" if killed else ""
    )


def _find(rule: Rule, text: str, work: Path, tree_root: Path) -> str | None:
    for match in rule.pattern.finditer(text):
        groups = match.groupdict()
        if "path" not in groups:
            return _shorten(groups.get("quote") or match[0], tree_root)
        if not Path(groups["path"]).is_relative_to(work):
            return str(groups["path"])
    return None


def _shorten(quote: str, tree_root: Path) -> str:
    words = " ".join(quote.replace(f"{tree_root}/", "").split())
    return words if len(words) <= QUOTE_LIMIT else f"{words[:QUOTE_LIMIT]}…"


def _read(log_file: Path) -> str:
    """Read a log without its first line, which is the command; of a very long one the beginning and the end."""
    with log_file.open("rb") as stream:
        stream.readline()
        raw = stream.read(READ_LIMIT)
        stream.seek(max(stream.tell(), log_file.stat().st_size - READ_LIMIT))
        raw += stream.read()
    return QUOTED_SOURCE.sub("", raw.decode("utf-8", "replace"))
