"""What is to be run, decided without running anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import ProofError, UsageError
from toolkit.prove import CheckSpec, Job, PlannedCheck, load_catalogue, plan_checks

VERIFY = Path(__file__).parents[3] / "verify"


def spec(name: str, **changed: Any) -> CheckSpec:
    usual: dict[str, Any] = {
        "module": "m", "summary": "s", "group": name, "sides": ("overlay",), "env": {}, "static": False,
        "witness": False,
    }  # fmt: skip
    return CheckSpec(name=name, **{**usual, **changed})


def witness(name: str, **changed: Any) -> CheckSpec:
    return spec(name, **{"sides": ("base", "overlay"), "witness": True, **changed})


def catalogue(*specs: CheckSpec) -> dict[str, CheckSpec]:
    return {each.name: each for each in specs}


def planned(name: str, side: Any = "overlay", wanted: Any = "pass") -> PlannedCheck:
    return PlannedCheck(name=name, side=side, wanted=wanted)


def write_catalogue(folder: Path, content: str) -> Path:
    (folder / "checks.json").write_text(content)
    return folder


def test_checks_come_before_witnesses_and_each_witness_has_a_process_on_each_side() -> None:
    known = catalogue(witness("red"), spec("a", group="g"), spec("b", group="g"))

    plan = plan_checks(known, wanted=["a", "b"], witnesses=["red"])

    assert plan.checks == (planned("a"), planned("b"), planned("red", "base", "fail"), planned("red"))
    assert plan.jobs == (
        Job(name="overlay-a", side="overlay", env={}, checks=(planned("a"), planned("b"))),
        Job(name="base-red", side="base", env={}, checks=(planned("red", "base", "fail"),)),
        Job(name="overlay-red", side="overlay", env={}, checks=(planned("red"),)),
    )
    assert plan.unloadable == ()


def test_a_group_is_split_where_the_environment_differs() -> None:
    known = catalogue(spec("a", group="g"), spec("b", group="g", env={"X": "1"}), spec("c", group="g"))

    jobs = plan_checks(known, wanted=["a", "b", "c"], witnesses=[]).jobs

    assert [(job.name, dict(job.env), [check.name for check in job.checks]) for job in jobs] == [
        ("overlay-a", {}, ["a", "c"]),
        ("overlay-b", {"X": "1"}, ["b"]),
    ]


def test_witnesses_never_share_a_process_even_with_equal_environments() -> None:
    known = catalogue(witness("one"), witness("two"))

    assert len(plan_checks(known, wanted=[], witnesses=["one", "two"]).jobs) == 4


def test_a_name_given_twice_is_planned_once() -> None:
    known = catalogue(spec("a"), witness("red"))

    plan = plan_checks(known, wanted=["a", "a", "red"], witnesses=["red"])

    assert [check.name for check in plan.checks] == ["a", "red", "red"]


def test_a_witness_whose_change_is_upstream_is_wanted_green_on_both_sides() -> None:
    known = catalogue(witness("red"), witness("other"))

    plan = plan_checks(known, wanted=[], witnesses=["red", "other"], upstream={"red"})

    assert [(check.name, check.side, check.wanted) for check in plan.checks] == [
        ("red", "base", "pass"),
        ("red", "overlay", "pass"),
        ("other", "base", "fail"),
        ("other", "overlay", "pass"),
    ]


def test_without_loading_only_static_checks_are_for_a_process() -> None:
    known = catalogue(spec("files", static=True, group="g"), spec("imports", group="g"), witness("red"))

    plan = plan_checks(known, wanted=["files", "imports"], witnesses=["red"], can_load=False)

    assert [[check.name for check in job.checks] for job in plan.jobs] == [["files"]]
    assert plan.unloadable == (planned("imports"), planned("red", "base", "fail"), planned("red"))


@pytest.mark.parametrize(
    ("wanted", "witnesses", "message"),
    [
        pytest.param(["filez"], [], "there is no check 'filez'; did you mean 'files'?", id="near miss"),
        pytest.param(["xyz"], [], "there is no check 'xyz'", id="nothing near"),
        pytest.param([], ["files"], "'files' is a check, not a witness", id="check as witness"),
        pytest.param(
            ["xyz"], ["files", "abc"],
            "there is no check 'xyz'; there is no check 'abc'; 'files' is a check, not a witness",
            id="all at once",
        ),
    ],
)  # fmt: skip
def test_names_that_do_not_fit_are_refused_together(wanted: list[str], witnesses: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_checks(catalogue(spec("files"), witness("red")), wanted=wanted, witnesses=witnesses)

    assert (str(caught.value), caught.value.hint) == (message, "known checks and witnesses: files, red")


def test_the_shipped_catalogue_is_in_its_form_and_names_modules_that_are_there() -> None:
    shipped = load_catalogue(VERIFY)

    assert {"origins", "manifest", "contract", "distribution", "dvm-backend", "dvm-codegen"} <= shipped.keys()
    assert [name for name, each in shipped.items() if each.static] == ["manifest"]
    present = {path.relative_to(VERIFY.parent).as_posix() for path in VERIFY.rglob("*.py")}
    checks = [each for each in shipped.values() if not each.witness]
    assert [each.module for each in checks if f"{each.module.replace('.', '/')}.py" not in present] == []


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        pytest.param({"statik": True}, "Object contains unknown field `statik` - at `$[...]`", id="unknown key"),
        pytest.param({"env": {"A": 1}}, "Expected `str`, got `int` - at `$[...].env[...]`", id="wrong type"),
        pytest.param({"sides": ["left"]}, "Invalid enum value 'left' - at `$[...].sides[0]`", id="unknown side"),
        pytest.param({"module": None}, "Expected `str`, got `null` - at `$[...].module`", id="no module"),
    ],
)
def test_a_catalogue_that_is_not_in_its_form_is_refused(tmp_path: Path, entry: dict[str, Any], fault: str) -> None:
    usual = {"module": "m", "summary": "s", "sides": ["overlay"], "env": {}, "static": False}
    folder = write_catalogue(tmp_path, json.dumps({"a": {**usual, **entry}}))

    with pytest.raises(ProofError) as caught:
        load_catalogue(folder)

    assert str(caught.value) == f"cannot read the catalogue of checks {tmp_path / 'checks.json'}: {fault}"


@pytest.mark.parametrize("name", ["../a", "A", "a_b", "a/b", ""])
def test_a_check_whose_name_is_not_fit_for_a_log_file_is_refused(tmp_path: Path, name: str) -> None:
    entry = {"module": "m", "summary": "s", "sides": ["overlay"], "env": {}, "static": False}

    with pytest.raises(ProofError, match="matching regex"):
        load_catalogue(write_catalogue(tmp_path, json.dumps({name: entry})))


@pytest.mark.parametrize("content", ["", "[]", "\x00"])
def test_a_garbled_catalogue_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ProofError, match="cannot read the catalogue"):
        load_catalogue(write_catalogue(tmp_path, content))


def test_a_missing_catalogue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match="No such file"):
        load_catalogue(tmp_path)


def test_a_witness_without_a_negative_control_is_refused(tmp_path: Path) -> None:
    entry = {"module": "m", "summary": "s", "sides": ["overlay"], "env": {}, "static": False, "witness": True}

    with pytest.raises(ProofError) as caught:
        load_catalogue(write_catalogue(tmp_path, json.dumps({"half": entry})))

    assert str(caught.value) == f"witnesses that do not run on both sides in {tmp_path / 'checks.json'}: half"


def test_a_witness_beside_another_is_red_and_green_with_it() -> None:
    known = catalogue(witness("launches"), witness("numbers", beside="launches"))

    carried = plan_checks(known, wanted=["numbers"], witnesses=["launches"])
    upstream = plan_checks(known, wanted=["numbers"], witnesses=["launches"], upstream=["launches"])

    assert [check.wanted for check in carried.checks if check.name == "numbers"] == ["fail", "pass"]
    assert [check.wanted for check in upstream.checks if check.name == "numbers"] == ["pass", "pass"]


def test_a_check_stands_beside_a_witness_of_the_catalogue(tmp_path: Path) -> None:
    entry = {"module": "m", "summary": "s", "sides": ["base", "overlay"], "env": {}, "static": False, "witness": True}
    write_catalogue(tmp_path, json.dumps({"numbers": {**entry, "beside": "lunches"}, "launches": entry}))

    with pytest.raises(ProofError) as caught:
        load_catalogue(tmp_path)
    assert str(caught.value) == f"checks in {tmp_path / 'checks.json'} that stand beside no witness: numbers"
    assert caught.value.hint == '"beside" names the witness that the patch names for the same fault'
