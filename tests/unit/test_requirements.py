from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement as ParsedRequirement

from tests.wheels import make_wheel
from toolkit.errors import LockError
from toolkit.files import sha256_file
from toolkit.model import BuildSpec, Contract, Requirement, Target
from toolkit.process import run
from toolkit.registry import ask_side_by_side
from toolkit.requirements import (
    BuildTable,
    Distribution,
    LockedRequirement,
    covers_target,
    make_build_spec,
    marker_environment,
    requirements_for,
    resolve_requirements,
    trace_needs,
)
from toolkit.schema import find_faults, format_place

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
CP311 = Target(python_tag="cp311", platform=X86)
HERE = platform.machine()
THERE = "aarch64" if HERE == "x86_64" else "x86_64"
ELSEWHERE = Target(python_tag="cp311", platform=f"manylinux_2_28_{THERE}")
"""A target on which markers do not hold as they hold on this machine."""


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


def add(index: Path, name: str, version: str = "1.0", *needs: str, tag: str = "py3-none-any", extra: str = "") -> Path:
    """Add a wheel to the index; `needs` are its requirements, `extra` one that it provides."""
    metadata = "".join(f"Requires-Dist: {need}\n" for need in needs) + (f"Provides-Extra: {extra}\n" if extra else "")
    return make_wheel(index, name, version, tag=tag, metadata=metadata)


def pip_env(index: Path, **more: str) -> dict[str, str]:
    own = {"PATH": os.environ["PATH"], "HOME": str(index), "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    return {**own, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), **more}


def resolve(index: Path, requires: Sequence[str], *targets: Target, **more: str) -> tuple[LockedRequirement, ...]:
    """Resolve for targets that together are a whole contract."""
    contract = Contract(
        python_tags=tuple(dict.fromkeys(target.python_tag for target in targets or [CP311])),
        platforms=tuple(dict.fromkeys(target.platform for target in targets or [CP311])),
        torch="2.12.0",
    )
    return resolve_requirements(requires, contract, component="c", env=pip_env(index, **more), progress=None)


def entry(wheel: Path, target: Target = CP311, **changed: str) -> LockedRequirement:
    name, version = wheel.name.split("-")[:2]
    return LockedRequirement(**{
        "distribution": name.replace("_", "-"), "version": version, "file": wheel.name,
        "sha256": sha256_file(wheel), "python_tag": target.python_tag, "platform": target.platform, **changed,
    })  # fmt: skip


# --- the recipe's table ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "place", "what"),
    [
        pytest.param(
            ["wheel", "torch @ https://example.org/torch.whl"], "requires[1]",
            "'torch @ https://example.org/torch.whl' is not a pip requirement without an address or an option, "
            "such as 'setuptools<82'", id="an address"),
        pytest.param(["-r more.txt"], "requires[0]",
                     "'-r more.txt' is not a pip requirement without an address or an option, such as 'setuptools<82'",
                     id="an option"),
        pytest.param(["ninja\nwheel"], "requires[0]",
                     "'ninja\\nwheel' is not a pip requirement without an address or an option, such as "
                     "'setuptools<82'", id="two lines"),
        pytest.param(["torch = 2.12.0"], "",
                     "'torch = 2.12.0' is not a requirement: expected ", id="not PEP 508"),
        pytest.param(["pyyaml", "PyYAML>=6"], "", "'pyyaml' is asked for twice: 'pyyaml' and 'PyYAML>=6'",
                     id="a name twice"),
    ],
)  # fmt: skip
def test_what_a_recipe_may_not_require_is_told_with_its_place(requires: list[str], place: str, what: str) -> None:
    faults = find_faults({"requires": requires}, BuildTable)
    assert [format_place(fault.where) for fault in faults] == [place]
    # How the parser's own words go on differs between the releases of packaging.
    assert [fault.what[: len(what)] if what.endswith(" ") else fault.what for fault in faults] == [what]


def test_a_name_may_stand_twice_under_different_markers() -> None:
    requires = ["numpy<2; python_version < '3.12'", "numpy>=2; python_version >= '3.12'", "torch[opt-einsum]==2.12.0"]
    assert find_faults({"requires": requires}, BuildTable) == []


# --- the lock's entries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        pytest.param({"file": "../ninja-1.0-py3-none-any.whl"},
                     "'../ninja-1.0-py3-none-any.whl' is not a plain file name", id="a path"),
        pytest.param({"file": "ninja-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"},
                     "'ninja-1.0-cp312-cp312-manylinux_2_28_x86_64.whl' is not a wheel for cp311-manylinux_2_28_x86_64",
                     id="another target's"),
        pytest.param({"version": "1.1"}, "'ninja-1.0-py3-none-any.whl' is not a wheel of ninja==1.1", id="a version"),
        pytest.param({"distribution": "wheel"}, "'ninja-1.0-py3-none-any.whl' is not a wheel of wheel==1.0",
                     id="a name"),
        pytest.param({"version": "1.0-1"}, "'1.0-1' is not a version in PEP 440 normal form, such as '81.0.0'",
                     id="an odd version"),
    ],
)  # fmt: skip
def test_an_entry_that_contradicts_itself_is_refused(changed: Mapping[str, str], what: str) -> None:
    table = {
        "distribution": "ninja", "version": "1.0", "file": "ninja-1.0-py3-none-any.whl", "sha256": "ab" * 32,
        "python_tag": "cp311", "platform": X86, **changed,
    }  # fmt: skip
    assert [fault.what for fault in find_faults(table, LockedRequirement)] == [what]


@pytest.mark.parametrize("version", ["1!2.0", "25", "2.12.0+cpu", "1.0rc1.post2.dev3"])
def test_an_entry_may_have_any_version(version: str) -> None:
    table = {
        "distribution": "x", "version": version, "file": f"x-{version}-py3-none-any.whl", "sha256": "ab" * 32,
        "python_tag": "cp311", "platform": X86,
    }  # fmt: skip
    assert find_faults(table, LockedRequirement) == []


# --- resolving ---------------------------------------------------------------------------------------------------


def test_every_target_gets_its_wheels_and_what_they_need(index: Path) -> None:
    native = {
        place: add(index, "native_part", "2.0", "leaf>=1", tag=f"cp311-cp311-{place}") for place in (X86, ARM)
    }  # fmt: skip
    add(index, "leaf", "0.9")
    leaf = add(index, "Leaf", "1.5")
    arm = Target(python_tag="cp311", platform=ARM)
    seen: list[tuple[int, int | None]] = []
    contract = Contract(python_tags=("cp311",), platforms=(X86, ARM), torch="2.12.0")
    found = resolve_requirements(
        ["Native.Part"], contract, component="c", env=pip_env(index), progress=lambda *counts: seen.append(counts)
    )
    assert found == (
        entry(leaf, arm, distribution="leaf"), entry(native[ARM], arm),
        entry(leaf, distribution="leaf"), entry(native[X86]),
    )  # fmt: skip
    assert seen == [(1, 2), (2, 2)]
    assert str(index) not in repr(found)


def test_a_local_build_is_recorded_as_such_whatever_the_user_constrains(index: Path, tmp_path: Path) -> None:
    wheel = add(index, "torch", "2.13.0+cpu")
    (tmp_path / "constraints.txt").write_text("torch<2\n")
    assert resolve(index, ["torch==2.13.0"], PIP_CONSTRAINT=str(tmp_path / "constraints.txt")) == (entry(wheel),)
    assert entry(wheel).version == "2.13.0+cpu"


def test_markers_of_the_recipe_are_the_targets_own(index: Path) -> None:
    old, new = add(index, "tool", "1.0"), add(index, "tool", "2.0")
    requires = ["tool<2; python_version < '3.12'", "tool; python_version >= '3.12'", "absent; sys_platform == 'win32'"]
    cp312 = Target(python_tag="cp312", platform=X86)
    assert resolve(index, requires, CP311, cp312) == (entry(old), entry(new, cp312))


def test_nothing_asked_for_on_a_target_asks_nobody(tmp_path: Path) -> None:
    assert resolve(tmp_path, ["tool; sys_platform == 'win32'"]) == ()


def test_what_only_this_machine_would_need_is_left_out(index: Path) -> None:
    tool = add(index, "tool", "1.0", f"host_part; platform_machine == '{HERE}'", "part; extra == 'all'", extra="all")
    add(index, "host_part", "1.0", "host_leaf")
    add(index, "host_leaf")
    part = add(index, "part")
    assert resolve(index, ["tool[all]==1.0"], ELSEWHERE) == (entry(part, ELSEWHERE), entry(tool, ELSEWHERE))


def test_what_pip_leaves_out_for_this_machine_is_asked_for_and_what_that_needs_too(index: Path) -> None:
    add(index, "tool", "1.0", f"part>=1.0; platform_machine == '{THERE}'")
    add(index, "part", "1.5", f"screw; platform_machine == '{THERE}'", f"nail; platform_machine != '{THERE}'")
    add(index, "screw", "2.0")
    add(index, "nail", "2.0")
    found = resolve(index, ["tool"], ELSEWHERE)
    assert [(one.distribution, one.version) for one in found] == [("part", "1.5"), ("screw", "2.0"), ("tool", "1.0")]


def test_what_pip_left_out_and_is_nowhere_is_an_error_that_says_who_needs_it(index: Path) -> None:
    add(index, "tool", "1.0", f"Extra_Part>=1.0; platform_machine == '{THERE}'")
    with pytest.raises(LockError) as caught:
        resolve(index, ["tool"], ELSEWHERE)
    assert caught.value.message == "c: what its build requires cannot be had for every target"
    assert list(caught.value.details) == [
        f"{ELSEWHERE}: tool 1.0 needs Extra_Part>=1.0: no wheel of Extra_Part>=1.0; versions with a wheel for it: none"
    ]
    assert caught.value.hint == "change `requires` of its [component.base.build], or [target], in the recipe"


def test_a_requirement_without_a_wheel_is_reported_for_each_target(index: Path) -> None:
    add(index, "tool", "1.0", "part>=3")
    add(index, "part", "2.0", tag="cp311-cp311-manylinux_2_28_aarch64")
    with pytest.raises(LockError) as caught:
        resolve(index, ["tool"], CP311, Target(python_tag="cp311", platform=ARM))
    assert list(caught.value.details) == [
        "cp311-manylinux_2_28_x86_64: no wheel of part>=3; versions with a wheel for it: none",
        "cp311-manylinux_2_28_aarch64: no wheel of part>=3; versions with a wheel for it: 2.0",
    ]


def test_a_conflict_is_told_in_pips_words(index: Path) -> None:
    add(index, "tool", "1.0", "part>=2")
    add(index, "part", "1.0")
    add(index, "part", "2.0")
    with pytest.raises(LockError) as caught:
        resolve(index, ["tool", "part<2"])
    assert list(caught.value.details) == [
        "cp311-manylinux_2_28_x86_64: these cannot all be had: The user requested part<2; tool 1.0 depends on part>=2"
    ]


def test_all_that_is_wrong_with_what_is_asked_for_is_told(tmp_path: Path) -> None:
    with pytest.raises(LockError) as caught:
        resolve(tmp_path, ["tool", "-r more.txt", "torch @ https://example.org/t.whl"])
    assert caught.value.message == "c: what its build requires is not clear"
    assert [detail.partition(": ")[0] for detail in caught.value.details] == [
        "'-r more.txt' is not a requirement",
        "'torch @ https://example.org/t.whl' names an address, expected a release at the registry",
    ]
    with pytest.raises(LockError) as twice:
        resolve(tmp_path, ["tool", "Tool>1; python_version >= '3'"])
    assert list(twice.value.details) == [
        "'tool' is asked for twice: 'tool' and 'Tool>1; python_version >= \"3\"'"
    ]  # fmt: skip


def test_a_registry_that_does_not_answer_is_no_missing_wheel(index: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound, but not listening: connecting is refused.
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(LockError) as caught:
            resolve(index, ["tool"], PIP_NO_INDEX="0", PIP_INDEX_URL=url, PIP_FIND_LINKS="", PIP_RETRIES="1")
    assert caught.value.message == "the registry did not answer what tool needs on cp311-manylinux_2_28_x86_64"


def test_a_question_that_fails_stops_the_others() -> None:
    started = threading.Event()

    def ask(question: int) -> None:
        if question == 0:
            started.wait(10)
            raise LockError("no answer")
        started.set()
        run(["sleep", "60"], cwd=Path("/"), env=os.environ)

    began = time.monotonic()
    with pytest.raises(LockError, match="no answer"):
        ask_side_by_side(ask, range(20))
    assert time.monotonic() - began < 20


# --- one target's requirements -----------------------------------------------------------------------------------


def test_a_targets_requirements_are_sorted_by_name(index: Path) -> None:
    wheels = [add(index, name) for name in ("zeta", "Alpha", "beta")]
    arm = [entry(wheels[0], Target(python_tag="cp311", platform=ARM))]
    found = requirements_for([*map(entry, wheels), *arm], CP311)
    assert [wanted.distribution for wanted in found] == ["Alpha", "beta", "zeta"]
    assert found[1] == Requirement(
        distribution="beta", version="1.0", file="beta-1.0-py3-none-any.whl", sha256=sha256_file(wheels[2])
    )
    assert requirements_for([], CP311) == ()


@pytest.mark.parametrize(
    ("requires", "has_entry", "covered"),
    [
        pytest.param((), False, True, id="nothing is needed"),
        pytest.param(("tool",), True, True, id="what is needed is there"),
        pytest.param(("tool",), False, False, id="what is needed is not there"),
        pytest.param(("tool; python_version < '3.11'",), False, True, id="nothing is needed on this target"),
        pytest.param(("tool; python_version < '3.12'",), False, False, id="it is needed on this target"),
        pytest.param(("no ! requirement",), False, False, id="what is needed cannot be read"),
    ],
)
def test_a_lock_covers_a_target_that_has_what_it_needs(
    index: Path, requires: tuple[str, ...], has_entry: bool, covered: bool
) -> None:
    tool = add(index, "tool")
    locked = [entry(tool, Target(python_tag="cp312", platform=X86)), *([entry(tool)] if has_entry else [])]
    assert covers_target(requires, locked, CP311) == covered
    assert covers_target(requires, locked[1:], CP311) == covered


def test_a_build_that_needs_nothing_on_one_target_is_made_there(index: Path) -> None:
    build = BuildTable(requires=("tool; python_version < '3.11'",), env={"A": "1"}, pass_env=("B",))
    elsewhere = [entry(add(index, "tool"), Target(python_tag="cp310", platform=X86))]
    assert make_build_spec(build, elsewhere, CP311, subfolder="a") == BuildSpec(
        backend="pep517", requirements=(), env={"A": "1"}, pass_env=("B",), subfolder="a"
    )


@pytest.mark.parametrize(("locked", "known"), [(True, "cp311-manylinux_2_28_x86_64"), (False, "no target")])
def test_a_target_without_requirements_is_answered_with_those_that_have_some(
    index: Path, locked: bool, known: str
) -> None:
    entries = [entry(add(index, "tool"))] if locked else []
    with pytest.raises(LockError) as caught:
        make_build_spec(BuildTable(requires=("tool",)), entries, Target(python_tag="cp312", platform=ARM), subfolder="")
    assert caught.value.message == "the lock has no build requirements for cp312-manylinux_2_28_aarch64"
    assert caught.value.hint == f"it has them for {known}; add the target to the recipe and run `toolkit lock`"


# --- closures ----------------------------------------------------------------------------------------------------


def test_distributions_that_need_each_other_are_followed_prereleases_too() -> None:
    known = {
        "a": Distribution(version="1.0rc1", needs=("B[x]>0",)), "b": Distribution(version="2", needs=("a>=1.0a1",)),
        "c": Distribution(version="3", needs=()),
    }  # fmt: skip
    needed, lacks = trace_needs([ParsedRequirement("a<2")], known, marker_environment(CP311))
    assert (needed, lacks) == (frozenset({"a", "b"}), [])


TOOLS = {
    "tool": Distribution(version="1.0", needs=("Part[more]>=2; extra == 'all'", "leaf<2; os_name == 'posix'")),
    "part": Distribution(version="2.0", needs=("leaf; extra == 'more'", "absent; extra == 'other'")),
    "leaf": Distribution(version="1.0", needs=("absent; sys_platform == 'win32'",)),
}


@pytest.mark.parametrize(
    ("asked", "needed", "lacks"),
    [
        pytest.param(["tool"], {"tool", "leaf"}, [], id="no extras"),
        pytest.param(["Tool[all]"], {"tool", "part", "leaf"}, [], id="extras of extras"),
        pytest.param(["part[other,more]"], {"part", "leaf"}, ["part 2.0 needs absent"], id="nothing of that name"),
        pytest.param(["part[more]<2", "leaf"], {"leaf"}, ["the recipe needs part[more]<2, and there is 2.0"],
                     id="another version"),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_followed_to_what_it_needs(asked: list[str], needed: set[str], lacks: list[str]) -> None:
    found = trace_needs(map(ParsedRequirement, asked), TOOLS, marker_environment(CP311))
    assert (found[0], [str(lack) for lack in found[1]]) == (needed, lacks)


@pytest.mark.parametrize(
    ("full", "marker", "holds"),
    [
        pytest.param("", "python_full_version < '3.11.1'", True, id="the tag's first release"),
        pytest.param("3.11.9", "python_full_version < '3.11.1'", False, id="a given release"),
        pytest.param("", "platform_machine == 'x86_64' and os_name == 'posix'", True, id="machine"),
        pytest.param("", "sys_platform == 'linux' and platform_system == 'Linux'", True, id="system"),
        pytest.param("", "implementation_name == 'cpython' and platform_python_implementation == 'CPython'", True,
                     id="implementation"),
        pytest.param("", "extra == 'x'", False, id="no extra"),
    ],
)  # fmt: skip
def test_markers_are_evaluated_for_the_target(full: str, marker: str, holds: bool) -> None:
    parsed = ParsedRequirement(f"x; {marker}").marker
    assert parsed is not None
    assert parsed.evaluate(marker_environment(CP311, full)) is holds
