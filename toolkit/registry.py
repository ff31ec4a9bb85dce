"""What a package registry has, asked through pip: which wheel serves a target, and its bytes.

The user's own index settings reach pip; all else that could change its answer does not. No address is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from toolkit.errors import FetchError, HashMismatchError, LockError, StorageError, UsageError
from toolkit.files import temporary_directory
from toolkit.model import Progress, Target
from toolkit.platforms import accepted_platforms, python_version
from toolkit.process import PREFIXES_OF_PIP, Completed, compose_env, last_lines, run, stop_running

T = TypeVar("T")
R = TypeVar("R")

OLDEST_PIP = (23, 1)
"""What pyproject.toml asks for; the report with its hashes is what must be there."""

RAW_PROGRESS_PIP = (24, 1)
"""The first with `--progress-bar raw`."""

PIPS_AT_ONCE = 4
STOP_INTERVAL = 0.1

METADATA_ALONE = ("--use-feature=fast-deps",)
"""Where an index has no metadata files, pip reads what a wheel needs by range requests and does not download it."""

PIP_SETTINGS = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_CONSTRAINT": "", "PIP_REQUIREMENT": "", "PIP_EDITABLE": "", "PIP_QUIET": "",
    "PIP_VERBOSE": "", "PYTHONUNBUFFERED": "1",
}  # fmt: skip


VERSIONS = re.compile(r"satisfies the requirement (.*?)(?: \(from .*?\))? \(from versions: (.*)\)$", re.MULTILINE)
"""How pip says that a requirement cannot be met, and which versions could be had."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFile:
    """A wheel or an sdist as a registry lists it; `yanked` is the reason, maybe empty, for which it was taken back."""

    file: str
    sha256: str
    yanked: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedWheel:
    """A wheel that pip would install; `needs` are its own requirements as its metadata writes them."""

    distribution: str
    version: str
    file: str
    sha256: str
    needs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NoWheel:
    """A registry has none for a target; `why` says which versions have one, or what pip said."""

    target: Target
    why: str


def require_pip(env: Mapping[str, str]) -> tuple[int, int]:
    """Return the version of the pip beside this interpreter; UsageError where there is none, or too old a one."""
    with temporary_directory("toolkit-pip-") as folder:
        done = run_pip(["--version"], folder=folder, env=env)
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise UsageError(
            f"{sys.executable} has no pip",
            hint=f"give it one: {sys.executable} -m ensurepip --upgrade",
            details=last_lines(done.stderr),
        )
    version = int(found[1]), int(found[2])
    if version < OLDEST_PIP:
        raise UsageError(
            f"pip {version[0]}.{version[1]} of {sys.executable} is too old, expected {OLDEST_PIP[0]}.{OLDEST_PIP[1]} "
            "or newer",
            hint=f"upgrade it: {sys.executable} -m pip install --upgrade pip",
        )
    return version


def find_wheel(distribution: str, version: str, target: Target, *, env: Mapping[str, str]) -> PublishedFile | NoWheel:
    """Return the wheel that pip would choose for a target, without downloading it.

    Raises LockError where the registry does not answer.
    """
    requirement = f"{distribution}=={version}"
    with temporary_directory("toolkit-pip-") as folder:
        report = folder / "report.json"
        words: list[str | Path] = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", report]
        words += ["--no-deps", *_selection(target), "--target", folder / "none", requirement]
        done = run_pip(words, folder=folder, env=env)
        if done.returncode != 0:
            return _no_wheel(requirement, target, done)
        return _with_reason(read_report(report, requirement, target), done)


def list_releases(distribution: str, *, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the final and post releases that the registry has for this machine, oldest first; none that was yanked.

    An unknown distribution has none. Raises LockError where the registry does not answer.
    """
    with temporary_directory("toolkit-pip-") as folder:
        done = run_pip(["index", "versions", distribution], folder=folder, env=env)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode == 0 and found:
        return tuple(sorted(found[1].split(", "), key=Version))
    if "Retrying (" in done.stderr or "No matching distribution found" not in done.stderr:
        raise no_answer(f"which releases of {distribution} there are", done)
    return ()


def resolve_wheels(
    requirements: Sequence[str], target: Target, *, env: Mapping[str, str]
) -> tuple[ResolvedWheel, ...] | NoWheel:
    """Return the wheels that pip would install on a target for requirements and what they need in turn.

    Environment markers are evaluated by pip for the interpreter that it runs in, not for the target. Installs nothing,
    and downloads only what the registry gives no metadata of. Raises LockError where the registry does not answer.
    """
    for features in (METADATA_ALONE, ()):  # Some pips lack the feature, some servers cannot do what it asks of them.
        with temporary_directory("toolkit-pip-") as folder:
            report = folder / "report.json"
            words: list[str | Path] = ["install", "--dry-run", "--ignore-installed", "--progress-bar", "off", *features]
            words += ["--report", report, *_selection(target), "--target", folder / "none", *requirements]
            done = run_pip(words, folder=folder, env=env)
            if done.returncode == 0:
                items = json.loads(report.read_text(encoding="utf-8"))["install"]
                return tuple(_resolved_wheel(item, target) for item in items)
        if why := _why_unresolved(done):
            return NoWheel(target=target, why=why)
        if "Retrying (" in done.stderr:
            break
    raise no_answer(f"what {', '.join(requirements)} needs on {target}", done)


def download_wheel(
    distribution: str, version: str, wheel: PublishedFile, target: Target,
    *, pip: tuple[int, int], into: Path, env: Mapping[str, str], progress: Progress | None,
) -> Path:  # fmt: skip
    """Download a wheel into an empty folder and return its path there; its hash is checked by pip.

    `pip` is what `require_pip` returned. Raises HashMismatchError for other bytes, FetchError where they cannot be
    had, StorageError where the disk is full.
    """
    words = [*download_words(f"{distribution}=={version}", wheel, pip=pip, into=into), "--no-deps", *_selection(target)]
    done = run_pip(words, folder=into, env=env, progress=progress)
    if done.returncode != 0:
        raise no_download(wheel, done, into, target)
    if not (into / wheel.file).is_file():
        arrived = ", ".join(sorted(path.name for path in into.glob("*.whl"))) or "no wheel"
        raise FetchError(f"pip brought {arrived}, expected {wheel.file}", hint="resolve anew: toolkit lock --upgrade")
    return into / wheel.file


def ask_side_by_side(ask: Callable[[T], R], questions: Sequence[T], *, progress: Progress | None = None) -> list[R]:
    """Return the answers in the questions' order, got from a few pips at a time; `progress` counts questions.

    On an interrupt, or when a question raises, those that run are stopped and no more are started.
    """
    with ThreadPoolExecutor(PIPS_AT_ONCE) as pool:
        futures = [pool.submit(ask, question) for question in questions]
        try:
            for count, future in enumerate(as_completed(futures), 1):
                future.result()
                if progress is not None:
                    progress(count, len(futures))
        except BaseException:
            for future in futures:
                future.cancel()
            # Asked again and again, because a thread may be just about to start its pip.
            while wait(futures, timeout=STOP_INTERVAL).not_done:
                stop_running()
            raise
        return [future.result() for future in futures]


# --- what pip is told and says, of any file ----------------------------------------------------------------------


def run_pip(
    words: Sequence[str | Path], *, folder: Path, env: Mapping[str, str], program: Sequence[str] = ("-m", "pip"),
    settings: Mapping[str, str] = PIP_SETTINGS, progress: Progress | None = None,
) -> Completed:  # fmt: skip
    """Run pip from a folder of ours, which holds its temporary files too, so that no other disk need have room.

    `program` is what this interpreter is to run. `progress` hears of a download where `words` ask for the raw bar.
    """
    composed = compose_env(env, {**settings, "TMPDIR": str(folder)}, prefixes=PREFIXES_OF_PIP)
    argv = [sys.executable, *program, *words]
    return run(argv, cwd=folder, env=composed, check=False, on_line=_progress_reader(progress))


def download_words(
    requirement: str, published: PublishedFile, *, pip: tuple[int, int], into: Path
) -> list[str | Path]:  # fmt: skip
    """Return the words that make pip download one file of that hash and no other; `pip` is its version."""
    wanted = into / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{published.sha256}\n", encoding="utf-8")
    bar = "raw" if pip >= RAW_PROGRESS_PIP else "off"
    words: list[str | Path] = ["download", "--no-cache-dir", "--progress-bar", bar, "--require-hashes"]
    return [*words, "--dest", into, "--requirement", wanted]


def read_report(report: Path, requirement: str, target: Target | None = None) -> PublishedFile:
    """Return the file that a report of pip names first; LockError where the registry gives no sha256 of it."""
    item = json.loads(report.read_text(encoding="utf-8"))["install"][0]
    return _published_file(item, requirement, target)


def no_answer(question: str, done: Completed) -> LockError:
    """Return the error for a registry that did not answer."""
    return LockError(
        f"the registry did not answer {question}",
        hint="is the network up, and is the index of `pip config list` the right one?",
        details=last_lines(done.stderr),
    )


def no_download(
    published: PublishedFile, done: Completed, into: Path, target: Target | None = None
) -> FetchError | StorageError:
    """Return the error for a download that failed, by what pip said of it."""
    actual = re.search(r"^\s*Got\s+([0-9a-f]{64})$", done.stderr, re.MULTILINE)
    if actual:
        return HashMismatchError(
            what=published.file, expected=published.sha256, actual=actual[1], origin="the registry"
        )
    if "No space left on device" in done.stderr:
        return StorageError(f"cannot write: {into} is full", hint="free or choose another place with --store")
    return FetchError(
        f"pip could not download {published.file}{f' for {target}' if target else ''}",
        hint="is the network up, and does the index of `pip config list` still have it?",
        details=last_lines(done.stdout, done.stderr),
    )


def _progress_reader(progress: Progress | None) -> Callable[[str], None] | None:
    if progress is None:
        return None

    def read(line: str) -> None:
        if found := re.fullmatch(r"Progress (\d+) of (\d+)", line):
            progress(int(found[1]), int(found[2]) or None)

    return read


def _published_file(item: Mapping[str, Any], requirement: str, target: Target | None) -> PublishedFile:
    download = item["download_info"]
    sha256 = download.get("archive_info", {}).get("hashes", {}).get("sha256")
    if sha256 is None:
        raise LockError(f"{f'{target}: ' if target else ''}the registry gives no sha256 for {requirement}")
    return PublishedFile(file=unquote(urlsplit(download["url"]).path.rpartition("/")[2]), sha256=sha256)


def _with_reason(published: PublishedFile, done: Completed) -> PublishedFile:
    """Add why a file was yanked, which pip says in a warning where it takes one all the same, as it is pinned."""
    reason = re.search(r"^\s*Reason for being yanked: (.*)$", done.stderr, re.MULTILINE)
    if reason is None:
        return published
    return replace(published, yanked="" if reason[1] == "<none given>" else reason[1].strip())


# --- wheels ------------------------------------------------------------------------------------------------------


def _selection(target: Target) -> list[str | Path]:
    """Return the options that make pip choose for a target instead of for the interpreter it runs in."""
    major, minor = python_version(target.python_tag)
    words = ["--only-binary=:all:", "--python-version", f"{major}.{minor}", "--implementation", "cp"]
    # Without these pip takes the flags of the interpreter that it runs in, a free-threaded build's `t` for one.
    words += [f"--abi={abi}" for abi in (target.python_tag, "abi3", "none")]
    return [*words, *(f"--platform={platform}" for platform in accepted_platforms(target.platform))]


def _resolved_wheel(item: Mapping[str, Any], target: Target) -> ResolvedWheel:
    metadata = item["metadata"]
    name, version = metadata["name"], metadata["version"]
    wheel = _published_file(item, f"{name}=={version}", target)
    return ResolvedWheel(
        distribution=name, version=version, file=wheel.file, sha256=wheel.sha256,
        needs=tuple(metadata.get("requires_dist", ())),
    )  # fmt: skip


def _no_wheel(requirement: str, target: Target, done: Completed) -> NoWheel:
    versions = VERSIONS.search(done.stderr)
    if versions is None or "Retrying (" in done.stderr:
        raise no_answer(f"which wheel of {requirement} is for {target}", done)
    return NoWheel(target=target, why=f"versions with a wheel for it: {versions[2]}")


def _why_unresolved(done: Completed) -> str:
    """Say in one line why pip found no answer; empty where it says nothing of the kind."""
    if "Retrying (" in done.stderr:
        return ""
    if versions := VERSIONS.search(done.stderr):
        return f"no wheel of {versions[1]}; versions with a wheel for it: {versions[2]}"
    if conflict := re.search(r"^The conflict is caused by:\n((?:[ ]+\S.*\n)+)", done.stdout, re.MULTILINE):
        return "these cannot all be had: " + "; ".join(line.strip() for line in conflict[1].splitlines())
    return ""
