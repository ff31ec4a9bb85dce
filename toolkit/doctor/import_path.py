"""What would win on the target's sys.path, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.current import MANIFEST_FILE
from toolkit.doctor.asked import Asked
from toolkit.doctor.installed import normalized, read_installed, version_in
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.pth import read_editable_finders
from toolkit.doctor.survey import NAMES, Found, Survey
from toolkit.envfile import OVERLAY, PYTHONPATH
from toolkit.model import Observation

TOLD = {"torch": "torch.version", "torch_npu": "torch_npu.version", "triton": "triton.owner"}
"""The lines that say what it means that a package is not found."""

LOUD = 3
"""How many files or places a line names at most."""


def examine_path(asked: Asked, survey: Survey) -> list[Observation]:
    """Look at PYTHONPATH, the .pth files and editable finders, and at where each package would come from."""
    return [
        _python_path(asked),
        _pth(survey),
        *_finders(survey),
        _user_site(survey),
        *(_package(name, asked, survey) for name in NAMES),
    ]


# --- the path itself ---------------------------------------------------------------------------------------------


def _python_path(asked: Asked) -> Observation:
    text = asked.environ.get(PYTHONPATH, "")
    if not text:
        return good("path.pythonpath", "PYTHONPATH is not set")
    entries = text.split(os.pathsep)
    faults = list(_entry_faults(entries, asked.cwd))
    if not faults:
        return good("path.pythonpath", f"PYTHONPATH has {_counted(entries, 'entry', 'entries')}: {text}")
    clean = os.pathsep.join(
        dict.fromkeys(str(asked.cwd / one) for one in entries if one and (asked.cwd / one).exists())
    )
    do = f"export PYTHONPATH={clean}" if clean else "unset PYTHONPATH"
    return doubtful("path.pythonpath", f"PYTHONPATH={text}: {'; '.join(faults)}", do)


def _entry_faults(entries: list[str], cwd: Path) -> Iterator[str]:
    for number, entry in enumerate(entries, 1):
        if not entry:
            yield f"entry {number} is empty, which is the working directory of each process"
        elif not os.path.isabs(entry):
            yield f"entry {number} ({entry}) is relative to the working directory of each process"
        elif not os.path.exists(entry):
            yield f"entry {number} ({entry}) does not exist"


def _pth(survey: Survey) -> Observation:
    """A .pth line whose folder is gone is what a moved source tree leaves: the import fails, or another wins."""
    if survey.complaints:
        return doubtful(
            "path.pth", f"fails at each start: {survey.complaints[0]}",
            "install what it is for again, or remove the file",
        )  # fmt: skip
    gone = [line for line in survey.pth_lines if line.folder is not None and not line.folder.exists()]
    if gone:
        shown = "; ".join(f"{line.file.name} names {line.folder}" for line in gone[:LOUD])
        return doubtful(
            "path.pth", f"{shown}: not there (in {gone[0].file.parent})",
            "install what it is for again, or uninstall it",
        )  # fmt: skip
    folders = [line for line in survey.pth_lines if line.folder is not None]
    running = sorted({line.file.name for line in survey.pth_lines if line.code})
    seen = f"{_counted(folders, 'folder', 'folders')} added by .pth files"
    return good("path.pth", seen + (f"; code is run at each start by {', '.join(running)}" if running else ""))


def _finders(survey: Survey) -> Iterator[Observation]:
    """Editable installs that work by a finder: it comes after sys.path, and names folders that may be gone."""
    folders = [*([survey.user_site] if survey.user_site else []), *survey.site_folders]
    mapped = [
        (name, place, finder.file)
        for finder in read_editable_finders(folders)
        for name, place in finder.places.items()
        if name in NAMES
    ]
    gone = [one for one in mapped if not _is_importable(one[1])]
    if gone:
        name, place, file = gone[0]
        yield bad(
            "path.finders", f"the editable install of {name} is at {place}, which is not there ({file})",
            f"install {name} again from where its source is now, or uninstall it",
        )  # fmt: skip
    elif mapped:
        shown = ", ".join(f"{name} in {place}" for name, place, _ in mapped)
        yield good("path.finders", f"editable finders bring {shown}")
    else:
        yield good("path.finders", "no editable finder brings any of the packages")


def _is_importable(place: Path) -> bool:
    return place.exists() or place.with_suffix(".py").exists()


def _user_site(survey: Survey) -> Observation:
    """Every interpreter of that version shares the user's site-packages, virtual environments that see them too."""
    if survey.user_site is None:
        return good("path.user_site", "the user's site-packages are not on the path")
    there = [name for name, found in survey.winners.items() if found.kind == "user"]
    if not there:
        return good("path.user_site", f"{survey.user_site} has none of the packages that win")
    if not (survey.prefix / "pyvenv.cfg").is_file():
        return good("path.user_site", f"{', '.join(there)} {'come' if there[1:] else 'comes'} from {survey.user_site}")
    return doubtful(
        "path.user_site", f"{', '.join(there)} would come from {survey.user_site}, not from the virtual environment",
        "export PYTHONNOUSERSITE=1, or uninstall there",
    )  # fmt: skip


# --- the packages ------------------------------------------------------------------------------------------------


def _package(name: str, asked: Asked, survey: Survey) -> Observation:
    """Say where a package comes from and what that hides, and whether that can be meant."""
    observed = f"path.{name}"
    others = survey.others.get(name, ())
    if name in survey.faults:
        return bad(observed, survey.faults[name], "uninstall what brought the finder, or install it again")
    found = survey.winners.get(name)
    if found is None:
        return _absent(observed, name, asked)
    if found.is_namespace:
        return _namespace(observed, found, asked, survey)
    seen = _told(found, others)
    if lost := _lost_overlay(name, found, others, asked):
        return bad(observed, f"{seen}; {lost.words}", _regain(lost, found, asked))
    hidden = [one for one in others if not one.is_namespace]
    if found.kind == "folder" and hidden:
        return doubtful(
            observed, seen, "start from another folder, or say that it is meant: put the folder first on PYTHONPATH"
        )
    if found.why.startswith("the empty") and hidden:
        return doubtful(observed, seen, "take the empty entry out of PYTHONPATH")
    if found.kind == "user" and hidden:
        return doubtful(observed, seen, "export PYTHONNOUSERSITE=1, or uninstall there")
    return good(observed, seen)


def _absent(observed: str, name: str, asked: Asked) -> Observation:
    if name in TOLD:
        return good(observed, f"not found: see {TOLD[name]}")
    components = asked.wanted.components if asked.wanted else ()
    if name in {part.import_name for part in components}:
        return doubtful(
            observed, f"not found; the recipe {asked.recipe} brings it, in an overlay",
            f"activate the overlay: source its env.sh, or `toolkit run --recipe {asked.recipe} -- CMD`",
        )  # fmt: skip
    return good(observed, "not found, and the recipe does not bring it" if asked.wanted else "not found")


def _namespace(observed: str, found: Found, asked: Asked, survey: Survey) -> Observation:
    """A folder without `__init__.py` wins before any finder is asked; what is in it is not the package."""
    brought = [finder.file.name for finder in read_editable_finders(survey.site_folders) if found.name in finder.places]
    instead = f"; the editable install by {brought[0]} is hidden by it" if brought else ""
    seen = f"{found.place} wins, a folder without __init__.py: an empty namespace package, found through {found.why}"
    if found.kind in ("site", "user"):
        do = f"install what it is of again, or remove it: rm -r {shlex.quote(str(found.place))}"
    elif found.kind == "folder":
        do = f"start from another folder than {asked.cwd}"
    else:
        do = f"take {found.place.parent} off the path"
    return bad(observed, seen + instead, do)


def _told(found: Found, others: tuple[Found, ...]) -> str:
    seen = f"{_named(found)} wins, through {found.why}"
    hidden = [f"{_named(one)} ({one.why})" for one in others if not one.is_namespace]
    more = f" and {len(hidden) - LOUD} more" if len(hidden) > LOUD else ""
    return seen + (f"; it hides {', '.join(hidden[:LOUD])}{more}" if hidden else "")


def _named(found: Found) -> str:
    """Name a place with its version, where it says one."""
    version = version_in(found.place)
    if not version:
        beside = found.place.parent
        installed = read_installed([str(beside)], beside, lambda name: name == normalized(found.name))
        version = installed[0].version if installed else ""
    return f"{found.place} ({version})" if version else str(found.place)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lost:
    """An overlay that has the package and does not win, with the words for it."""

    root: Path
    words: str
    is_on_path: bool


def _regain(lost: _Lost, found: Found, asked: Asked) -> str:
    """Say how the overlay would win: where it is on the path, only what stands before it can be taken away."""
    again = f"source {lost.root / 'env.sh'} again, after what sets PYTHONPATH"
    if found.kind == "folder":
        elsewhere = f"start from another folder than {asked.cwd}"
        return elsewhere if lost.is_on_path else f"{elsewhere}, and {again}"
    if found.why.startswith("the empty") and lost.is_on_path:
        return "take the empty entry out of PYTHONPATH"
    return again


def _lost_overlay(name: str, found: Found, others: tuple[Found, ...], asked: Asked) -> _Lost | None:
    """Return the overlay that has the package and does not win; None where none is lost.

    One that was put on PYTHONPATH by hand is known by its manifest.
    """
    if active := asked.environ.get(OVERLAY):
        site = Path(active) / "site"
        if _is_in(found, site) or not (site / name).is_dir():
            return None
        is_on_path = any(_is_in(one, site) for one in others)
        where = "further back" if is_on_path else "and is not on the path"
        words = f"the active overlay {active} has it too, {where}"
        return _Lost(root=Path(active), words=words, is_on_path=is_on_path)
    if _is_of_overlay(found):
        return None
    for one in filter(_is_of_overlay, others):
        root = one.place.parent.parent
        return _Lost(root=root, words=f"the overlay {root} has it too, further back", is_on_path=True)
    return None


def _is_in(found: Found, site: Path) -> bool:
    return os.path.realpath(found.place.parent) == os.path.realpath(site)


def _is_of_overlay(found: Found) -> bool:
    site = found.place.parent
    return site.name == "site" and (site.parent / MANIFEST_FILE).is_file()


def _counted(items: Sequence[object], one: str, many: str) -> str:
    return f"{len(items)} {one if len(items) == 1 else many}"
