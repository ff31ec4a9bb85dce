"""`triton/`, which more than one distribution owns: whose files are there, and whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.doctor.asked import Asked
from toolkit.doctor.installed import Damage, Installed, damage_of, read_installed, record_of
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.survey import Found, Survey
from toolkit.doctor.torches import BACKEND
from toolkit.model import Observation

PACKAGE = "triton"
INIT = f"{PACKAGE}/__init__.py"
BACKENDS = f"{PACKAGE}/backends/"
ASCEND = "triton-ascend"
WITHOUT_TRITON = ("dvm", "mlir", "ascendc")
"""The backends that generate no Triton code."""

AGAIN = f"pip uninstall -y triton {ASCEND}, then pip install {ASCEND}: in this order, and nothing else of triton after"


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A distribution whose RECORD has `triton/`, and how the files there differ from it."""

    installed: Installed
    damage: Damage


def examine_triton(asked: Asked, survey: Survey) -> list[Observation]:
    """Say whose `triton/` would be imported, and whether all of it is that one's."""
    found = survey.winners.get(PACKAGE)
    owners = _owners(asked, survey, found) if found is not None else []
    if found is None or (found.is_namespace and not owners):
        return [_absent(asked, survey)]
    if not owners:
        return [_nobodys(found)]
    if len(owners) == 1:
        return [*_single(owners[0], asked), *_backend(found, asked, survey)]
    return [_shared(owners, asked), *_backend(found, asked, survey)]


def _owners(asked: Asked, survey: Survey, found: Found) -> list[Owner]:
    """List those that own the folder that would be imported, whatever they are called, and whatever is left of it."""
    named = read_installed(survey.path, asked.cwd, lambda name: PACKAGE in name)
    here = [one for one in named if one.site.resolve() == found.place.parent.resolve()]
    return [
        Owner(installed=one, damage=damage_of(one, PACKAGE, _decides))
        for one in here
        if any(line.path == INIT for line in record_of(one))
    ]


def _decides(path: str) -> bool:
    return path == INIT or (path.startswith(BACKENDS) and path.endswith(".py"))


def _absent(asked: Asked, survey: Survey) -> Observation:
    if "torch_npu" not in survey.winners or not _wants_triton(asked):
        return good("triton.owner", "no triton is found; only the Triton backend needs it")
    return doubtful(
        "triton.owner", f"no triton is found, and {BACKEND} does not name a backend that does without",
        f"pip install {ASCEND}, or set {BACKEND}=dvm",
    )  # fmt: skip


def _nobodys(found: Found) -> Observation:
    return doubtful(
        "triton.owner", f"{found.place} belongs to no installed distribution ({found.why})",
        f"take it off the path unless it is meant; pip install {ASCEND} for the NPU's",
    )  # fmt: skip


def _single(owner: Owner, asked: Asked) -> Iterator[Observation]:
    one, damage = owner.installed, owner.damage
    yield good("triton.owner", f"triton/ in {one.site} is {one}'s alone")
    if damage.is_none:
        yield good("triton.whole", str(damage))
    else:
        say = bad if _wants_triton(asked) else doubtful
        yield say(
            "triton.whole", f"{one}: {damage}: another distribution's install or removal went over it",
            f"pip install --force-reinstall --no-deps {one.name}=={one.version}",
        )  # fmt: skip


def _shared(owners: Sequence[Owner], asked: Asked) -> Observation:
    """Two own the folder: who was installed last has the files that both name, and removing one breaks the other."""
    names = " and ".join(str(owner.installed) for owner in owners)
    whole = [owner for owner in owners if owner.damage.is_none]
    if len(whole) == 1 and whole[0].installed.name == ASCEND:
        return doubtful(
            "triton.owner", f"{names} both own triton/; the files are {ASCEND}'s, whole, until the other is removed or "
            "updated",
            AGAIN,
        )  # fmt: skip
    say = bad if _wants_triton(asked) and len(whole) < len(owners) else doubtful
    if len(whole) == 1:
        other = next(owner for owner in owners if owner is not whole[0])
        seen = f"the files are {whole[0].installed}'s; of {other.installed}: {other.damage}"
    elif whole:
        seen = "their files do not differ"
    else:
        seen = "a mixture: " + "; ".join(f"of {owner.installed} {owner.damage}" for owner in owners)
    return say("triton.owner", f"{names} both own triton/; {seen}", AGAIN)


def _backend(found: Found, asked: Asked, survey: Survey) -> Iterator[Observation]:
    """Look for the Ascend backend, without which Triton has no driver for an NPU."""
    if (found.place / "backends" / "ascend" / "__init__.py").is_file():
        yield good("triton.backend", "has the Ascend backend")
    elif "torch_npu" in survey.winners and _wants_triton(asked):
        yield bad(
            "triton.backend", f"{found.place}/backends has no ascend: 0 active drivers on an NPU", AGAIN
        )  # fmt: skip
    else:
        yield good("triton.backend", "has no Ascend backend, and nothing here asks for Triton on an NPU")


def _wants_triton(asked: Asked) -> bool:
    """Whether the backend that training would get generates Triton code: all that is not named does."""
    of_recipe = asked.wanted.env.get(BACKEND, "") if asked.wanted else ""
    return asked.environ.get(BACKEND, of_recipe) not in WITHOUT_TRITON
