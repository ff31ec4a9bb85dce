"""Which sdist of a release a registry has, and its bytes, through pip; nothing of the project is run for that.

pip wants a source archive's metadata before it will say or keep anything, and asks the project's own build backend
for it: code of a stranger, with build requirements that nobody pinned. So the backend's place is taken here, with
the name and the version that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import FetchError, LockError
from toolkit.files import temporary_directory
from toolkit.model import Progress
from toolkit.process import Completed
from toolkit.registry import PIP_SETTINGS, PublishedFile, download_words, no_answer, no_download, read_report, run_pip
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


def find_sdist(distribution: str, version: str, *, env: Mapping[str, str]) -> PublishedFile:
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
        found = read_report(report, requirement)
    if not found.file.endswith(SUFFIX):
        raise LockError(
            f"the sdist of {requirement} is {found.file}, expected a {SUFFIX}", hint="use a git base for it"
        )
    return found


def download_sdist(
    distribution: str, version: str, sdist: PublishedFile,
    *, pip: tuple[int, int], into: Path, env: Mapping[str, str], progress: Progress | None,
) -> Path:  # fmt: skip
    """Download an sdist into an empty folder and return its path there; its hash is checked by pip.

    `pip` is what `require_pip` returned. Raises HashMismatchError for other bytes, FetchError where they cannot be
    had, StorageError where the disk is full.
    """
    words = download_words(f"{distribution}=={version}", sdist, pip=pip, into=into)
    done = _run_pip(distribution, version, words, folder=into, env=env, progress=progress)
    if done.returncode != 0:
        raise no_download(sdist, done, into)
    if not (into / sdist.file).is_file():
        raise FetchError(f"pip did not bring {sdist.file}", hint="resolve anew: toolkit lock --upgrade")
    return into / sdist.file


def _run_pip(
    distribution: str, version: str, words: list[str | Path],
    *, folder: Path, env: Mapping[str, str], progress: Progress | None = None,
) -> Completed:  # fmt: skip
    program = ["-c", PIP, distribution, version]
    return run_pip([*words, *SELECTION], folder=folder, env=env, program=program, settings=SETTINGS, progress=progress)


def _no_sdist(requirement: str, done: Completed) -> LockError:
    versions = re.search(r"\(from versions: (.*)\)", done.stderr)
    if versions is None or "Retrying (" in done.stderr:
        return no_answer(f"which sdist {requirement} has", done)
    return LockError(
        f"{requirement} has no sdist at the registry",
        hint=f"versions with an sdist: {versions[1]}; change the version in the recipe, or use a git base",
    )
