"""Which sdist of a release a registry has, and its bytes, through pip; nothing of the project is run for that.

pip wants a source archive's metadata before it will say or keep anything, and asks the project's own build backend
for it: code of a stranger, with build requirements that nobody pinned. So the backend's place is taken here, with
the name and the version that were asked for.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from toolkit.errors import FetchError, HashMismatchError, LockError, StorageError
from toolkit.files import temporary_directory
from toolkit.process import PREFIXES_OF_PIP, Completed, compose_env, last_lines, run
from toolkit.registry import PIP_SETTINGS
from toolkit.tarballs import SUFFIX

PIP = """
import os, runpy, sys
from pip._vendor.pyproject_hooks import BuildBackendHookCaller

name, version = sys.argv[1:3]

def write_metadata(self, metadata_directory, config_settings=None, _allow_fallback=True):
    folder = "%s-%s.dist-info" % (name.replace("-", "_"), version)
    os.mkdir(os.path.join(metadata_directory, folder))
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w", encoding="utf-8") as stream:
        stream.write("Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (name, version))
    return folder

def refuse(self, *args, **kwargs):
    raise SystemExit("pip would run the build backend of %s" % name)

BuildBackendHookCaller.prepare_metadata_for_build_wheel = write_metadata
BuildBackendHookCaller._call_hook = refuse
sys.argv[:] = ["pip", *sys.argv[3:]]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""

SELECTION = ("--no-deps", "--no-binary=:all:", "--no-build-isolation", "--ignore-requires-python")
"""The build's own interpreter and its pinned requirements come later; here there is nothing to build."""

SETTINGS = {**PIP_SETTINGS, "PIP_ONLY_BINARY": "", "PIP_USE_PEP517": "1", "PIP_CHECK_BUILD_DEPENDENCIES": "0"}
"""With PEP 517 there is a backend to stand in for, whatever the project has; else pip runs its setup.py."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedSdist:
    """A source archive as a registry lists it."""

    file: str
    sha256: str


def find_sdist(distribution: str, version: str, *, env: Mapping[str, str]) -> PublishedSdist:
    """Return a release's sdist; LockError where there is none that can be used, or the registry does not answer.

    pip downloads it for that, as it knows no other way.
    """
    requirement = f"{distribution}=={version}"
    with temporary_directory("toolkit-pip-") as folder:
        report = folder / "report.json"
        words: list[str | Path] = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", report]
        done = _run_pip(distribution, version, [*words, requirement], folder=folder, env=env)
        if done.returncode != 0:
            raise _no_sdist(requirement, done)
        return _read_report(report, requirement)


def download_sdist(
    distribution: str, version: str, sdist: PublishedSdist, *, into: Path, env: Mapping[str, str]
) -> Path:
    """Download an sdist into an empty folder and return its path there; its hash is checked by pip.

    Raises HashMismatchError for other bytes, FetchError where they cannot be had, StorageError where the disk is full.
    """
    wanted = into / "wanted.txt"
    wanted.write_text(f"{distribution}=={version} --hash=sha256:{sdist.sha256}\n", encoding="utf-8")
    words: list[str | Path] = ["download", "--no-cache-dir", "--progress-bar=off", "--require-hashes"]
    words += ["--dest", into, "--requirement", wanted]
    done = _run_pip(distribution, version, words, folder=into, env=env)
    if done.returncode != 0:
        raise _no_download(sdist, done, into)
    if not (into / sdist.file).is_file():
        raise FetchError(f"pip did not bring {sdist.file}", hint="resolve anew: toolkit lock --upgrade")
    return into / sdist.file


def _run_pip(
    distribution: str, version: str, words: list[str | Path], *, folder: Path, env: Mapping[str, str]
) -> Completed:
    composed = compose_env(env, {**SETTINGS, "TMPDIR": str(folder)}, prefixes=PREFIXES_OF_PIP)
    argv = [sys.executable, "-c", PIP, distribution, version, *words, *SELECTION]
    return run(argv, cwd=folder, env=composed, check=False)


def _read_report(report: Path, requirement: str) -> PublishedSdist:
    download = json.loads(report.read_text(encoding="utf-8"))["install"][0]["download_info"]
    file = unquote(urlsplit(download["url"]).path.rpartition("/")[2])
    sha256 = download.get("archive_info", {}).get("hashes", {}).get("sha256")
    if sha256 is None:
        raise LockError(f"the registry gives no sha256 for {requirement}")
    if not file.endswith(SUFFIX):
        raise LockError(f"the sdist of {requirement} is {file}, expected a {SUFFIX}", hint="use a git base for it")
    return PublishedSdist(file=file, sha256=sha256)


def _no_sdist(requirement: str, done: Completed) -> LockError:
    versions = re.search(r"\(from versions: (.*)\)", done.stderr)
    if versions is None or "Retrying (" in done.stderr:
        return LockError(
            f"the registry did not answer which sdist {requirement} has",
            hint="is the network up, and is the index of `pip config list` the right one?",
            details=last_lines(done.stderr),
        )
    return LockError(
        f"{requirement} has no sdist at the registry",
        hint=f"versions with an sdist: {versions[1]}; change the version in the recipe, or use a git base",
    )


def _no_download(sdist: PublishedSdist, done: Completed, into: Path) -> FetchError | StorageError:
    actual = re.search(r"^\s*Got\s+([0-9a-f]{64})$", done.stderr, re.MULTILINE)
    if actual:
        return HashMismatchError(what=sdist.file, expected=sdist.sha256, actual=actual[1], origin="the registry")
    if "No space left on device" in done.stderr:
        return StorageError(f"cannot write: {into} is full", hint="free or choose another place with --store")
    return FetchError(
        f"pip could not download {sdist.file}",
        hint="is the network up, and does the index of `pip config list` still have it?",
        details=last_lines(done.stdout, done.stderr),
    )
