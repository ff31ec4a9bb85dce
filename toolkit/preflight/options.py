"""Hold the options against what an acceptance run must have: types, steps, seed, batch, metrics, and what is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.observed import bad, doubtful, good
from toolkit.launch import CONFIG_FILE, Launch, is_switch
from toolkit.launch.facts import OPTIONS
from toolkit.model import Observation

if TYPE_CHECKING:
    from toolkit.preflight.acceptance import OptionTable, PathTable
    from toolkit.preflight.subject import Subject

SLIP = 2
"""How many letters a slip changes."""

UNSEEN = "run preflight with the arguments and variables that the run will have, or look there yourself"


def examine_options(subject: Subject) -> list[Observation]:
    """Look at each option that an acceptance run must have, and at each path that must be there."""
    wanted = subject.acceptance
    seen = [_examine_option(subject.launch, one, _sibling(wanted.option, at)) for at, one in enumerate(wanted.option)]
    seen += [one for path in wanted.path for one in _examine_path(subject, path)]
    seen += _examine_spelling(subject.launch)
    seen += _examine_names(subject)
    order = list(dict.fromkeys(one.name for one in seen))
    return sorted(seen, key=lambda one: order.index(one.name))


def said(launch: Launch, name: str) -> str:
    """Write an option as it was given, and what it was given as before, if it was."""
    if name not in launch.options:
        return f"{name} = {launch.option(name)} in {launch.config_path}"
    option = launch.options[name]
    earlier = [value if value is not None else "unknown" for value in option.earlier]
    replaced = f" (the last of {len(earlier) + 1}: before it {', '.join(earlier)})" if earlier else ""
    return f"{option.written}{replaced}"


def unseen(launch: Launch, name: str) -> str:
    """Say why nobody can know an option's value."""
    if name in launch.options:
        return f"{launch.options[name].written}: what that is, only the shell will know"
    if CONFIG_FILE in launch.options:
        return f"--{name} is not given, and {launch.options[CONFIG_FILE].written}, which cannot be read, may say it"
    return f"--{name} is not seen, and there are arguments that cannot be seen"


def _sibling(options: Sequence[OptionTable], at: int) -> str:
    """Return the option of the same line, told before, that has the same reason; "" where there is none."""
    one = options[at]
    return next((other.name for other in options[:at] if (other.check, other.why) == (one.check, one.why)), "")


def _examine_option(launch: Launch, wanted: OptionTable, sibling: str) -> Observation:
    """Look at one option; the reason is not repeated where the line of `sibling` has it."""
    is_told = bool(sibling) and launch.option(sibling) is not None and not _is_given(launch, sibling)
    why = f"as for --{sibling}" if is_told else wanted.why
    name, value = f"preflight.{wanted.check}", launch.option(wanted.name)
    proposal = _proposed(wanted)
    if value is None:
        return doubtful(name, unseen(launch, wanted.name), UNSEEN)
    if not _is_given(launch, wanted.name):
        return _graded(name, wanted.absent, f"--{wanted.name} is not given: {why}", f"add {proposal}")
    if _fits(value, wanted):
        return good(name, said(launch, wanted.name))
    expected = " or ".join(wanted.values) or ("a value" if wanted.least is None else f"at least {wanted.least}")
    seen = f"{said(launch, wanted.name)}, expected {expected}: {why}"
    return _graded(name, wanted.otherwise, seen, f"make it {proposal}")


def _is_given(launch: Launch, name: str) -> bool:
    return name in launch.options or name in (launch.config or {})


def _fits(value: str, wanted: OptionTable) -> bool:
    if wanted.least is not None:
        return value.isdecimal() and len(value) < 19 and int(value) >= wanted.least
    return value in wanted.values if wanted.values else value != ""


def _proposed(wanted: OptionTable) -> str:
    """Return how the option would be right; a switch takes no value."""
    if wanted.values in (("true",), ("false",)):
        return f"--{wanted.name}" if wanted.values == ("true",) else f"--{_negated(wanted.name)}"
    value = wanted.values[0] if wanted.values else wanted.example
    return f"--{wanted.name}={wanted.least if wanted.least is not None else value}"


def _negated(name: str) -> str:
    head, dot, last = name.rpartition(".")
    return f"{head}{dot}no-{last}"


def _examine_spelling(launch: Launch) -> Iterator[Observation]:
    """Yield switches that are given a value, which the trainer's command line refuses."""
    for option in launch.options.values():
        if is_switch(option.name) and option.value is not None and re.search(r"[= ]", option.written):
            right = option.name if option.value == "true" else _negated(option.name)
            seen = f"{option.written}: torchtitan's command line takes no value for a switch"
            yield doubtful("preflight.options", seen, f"write --{right}")


def _examine_names(subject: Subject) -> Iterator[Observation]:
    """Yield options that are spelled nearly as one that is looked at: it would be taken for not given."""
    wanted = subject.acceptance
    known = {
        *OPTIONS.values(), *(one.name for one in wanted.option), *(one.name for one in wanted.path),
        *wanted.folders.fresh_options, *wanted.processes.degrees, wanted.processes.expert_degree, CONFIG_FILE,
        "compile.enable", "compile.components", "debug.deterministic", "debug.deterministic_warn_only",
    }  # fmt: skip
    for name, option in subject.launch.options.items():
        near = [one for one in sorted(known) if name not in known and _is_near(name, one)]
        if near:
            seen = f"{option.written}: --{name} is none of the options that are looked at here"
            yield doubtful("preflight.options", seen, f"did you mean --{near[0]}?")


def _is_near(one: str, other: str) -> bool:
    """Whether two names differ in a letter or two at one place, as a slip of the fingers leaves them."""
    start = _shared(one, other)
    end = _shared(one[start:][::-1], other[start:][::-1])
    return max(len(one), len(other)) - start - end <= SLIP


def _shared(one: str, other: str) -> int:
    """Count the letters that two texts begin with alike."""
    at = 0
    while one[at : at + 1] and one[at : at + 1] == other[at : at + 1]:
        at += 1
    return at


def _graded(name: str, grade: str, seen: str, do: str) -> Observation:
    return {"fail": bad, "warn": doubtful}[grade](name, seen, do) if grade != "ok" else good(name, seen)


# --- paths -------------------------------------------------------------------------------------------------------


def _examine_path(subject: Subject, wanted: PathTable) -> Iterator[Observation]:
    launch, name = subject.launch, f"preflight.{wanted.check}"
    if wanted.unless and launch.option(wanted.unless) != "true":
        return  # Its switch is off, which has a line of its own.
    value = launch.option(wanted.name)
    if value is None:
        yield doubtful(name, unseen(launch, wanted.name), UNSEEN)
    elif value == "" and wanted.absent != "ok":
        yield _graded(name, wanted.absent, f"--{wanted.name} is not given: {wanted.why}", f"add --{wanted.name}=PATH")
    elif value:
        yield _examine_place(name, subject.place(value), said(launch, wanted.name), is_remote="://" in value)


def _examine_place(name: str, path: Path, written: str, *, is_remote: bool) -> Observation:
    if is_remote:
        return good(name, f"{written}, not on this machine")
    if not path.exists():
        above = next((one for one in path.parents if one.exists()), Path("/"))
        return bad(name, f"{written}: there is no {path}", f"mend the path: what is there is {above}")
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return bad(name, f"{written}: {path} cannot be read by this user", "ask for the right to read it")
    if path.is_dir() and not any(path.iterdir()):
        return doubtful(
            name, f"{written}: {path} is an empty folder", "fill it before the run starts, or mend the path"
        )
    return good(name, f"{written} is there")
