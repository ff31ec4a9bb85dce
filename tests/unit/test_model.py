"""The values between the rooms, and the digests over them."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from pathlib import Path

import pytest

from toolkit import model
from toolkit.model import (
    CheckResult,
    FileChange,
    Lock,
    LockedComponent,
    Patch,
    Proof,
    Series,
    Target,
    framed_digest,
    key_difference,
    make_key,
)

VALUES = [
    value
    for _, value in inspect.getmembers(model, inspect.isclass)
    if value.__module__.startswith(f"{model.__name__}.") and dataclasses.is_dataclass(value)
]


def test_the_values_are_found() -> None:
    assert {model.Recipe, model.Patch, model.Overlay, model.Key} <= set(VALUES)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_every_value_is_frozen_keyword_only_and_slotted(value: type) -> None:
    parameters = value.__dataclass_params__

    assert parameters.frozen
    assert "__slots__" in vars(value)
    assert all(field.kw_only for field in dataclasses.fields(value))


# --- digests ---------------------------------------------------------------------------------------------------


def test_framed_digest_puts_each_length_in_bytes_before_its_part() -> None:
    assert framed_digest(["a", "µ", b"", "bc"]) == hashlib.sha256(b"1:a2:\xc2\xb50:2:bc").hexdigest()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([("ab", "c")], [("a", "bc")], id="a letter moves from name to value"),
        pytest.param([("a", "b"), ("c", "d")], [("a", "bc"), ("", "d")], id="a letter moves between pairs"),
        pytest.param([("a", "1:b")], [("a", ""), ("b", "")], id="a value that looks like a frame"),
        pytest.param([("a", "")], [], id="an empty value is not no value"),
    ],
)
def test_different_inputs_give_different_keys(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    assert make_key(one).digest != make_key(other).digest


def test_a_key_does_not_depend_on_the_order_of_its_inputs() -> None:
    assert make_key([("b", "2"), ("a", "1")]) == make_key(iter([("a", "1"), ("b", "2")]))


def test_a_key_keeps_its_inputs_and_is_the_digest_over_them() -> None:
    key = make_key([("b", "2"), ("a", "1")])

    assert key.inputs == (("a", "1"), ("b", "2"))
    assert key.digest == hashlib.sha256(b"1:a1:11:b1:2").hexdigest()
    assert key.short == key.digest[:8]


def test_a_name_that_stands_twice_among_the_inputs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a name stands twice among a key's inputs$"):
        make_key([("a", "1"), ("b", "2"), ("a", "3")])


def test_key_difference_names_what_changed_came_and_went() -> None:
    old = make_key([("same", "1"), ("changed", "old"), ("gone", "x")])
    new = make_key([("same", "1"), ("changed", "new"), ("added", "y")])

    assert key_difference(old, new) == [("added", None, "y"), ("changed", "old", "new"), ("gone", "x", None)]


def test_equal_keys_have_no_difference() -> None:
    assert key_difference(make_key([("a", "1")]), make_key([("a", "1")])) == []


# --- values ----------------------------------------------------------------------------------------------------


def test_a_target_is_written_as_its_tags() -> None:
    assert str(Target(python_tag="cp311", platform="manylinux_2_28_x86_64")) == "cp311-manylinux_2_28_x86_64"


def test_a_lock_finds_its_components_by_name() -> None:
    entry = LockedComponent(name="torch_npu", base=None)  # type: ignore[arg-type]
    lock = Lock(recipe="r", components=(entry,), path=Path("r.lock"))

    assert lock.component("torch_npu") is entry
    assert lock.component("other") is None


def test_a_series_names_every_path_that_its_patches_read_or_write() -> None:
    renamed = FileChange(path="b/new.py", old_path="b/old.py", kind="renamed", part="python")
    changed = FileChange(path="a.py", old_path="a.py", kind="modified", part="python")
    series = Series(name="torch_npu/2.13", patches=(_patch(1, renamed), _patch(2, changed)))

    assert series.paths == {"a.py", "b/new.py", "b/old.py"}


@pytest.mark.parametrize(
    ("results", "ok"),
    [
        pytest.param([(True, True)], True, id="the required one holds"),
        pytest.param([(True, True), (False, False)], True, id="one that is not required may fail"),
        pytest.param([(True, True), (True, False)], False, id="a required one fails"),
        pytest.param([(False, True)], False, id="nothing was required"),
        pytest.param([], False, id="nothing was checked"),
    ],
)
def test_a_proof_holds_only_when_something_was_required_and_all_of_it_holds(
    results: list[tuple[bool, bool]], ok: bool
) -> None:
    proof = Proof(
        recipe="r",
        overlay="k",
        runtime="host",
        results=tuple(_result(required, as_wanted) for required, as_wanted in results),
        environment={},
    )

    assert proof.ok is ok


def _patch(number: int, *changes: FileChange) -> Patch:
    return Patch(
        number=number,
        name=f"{number:04}-x",
        path=Path("x.patch"),
        sha256="0" * 64,
        subject="x",
        body="",
        upstream_status="Pending",
        witness="w",
        fixes=(),
        changes=changes,
    )


def _result(required: bool, ok: bool) -> CheckResult:
    return CheckResult(
        name="origins",
        side="overlay",
        wanted="pass",
        status="pass" if ok else "fail",
        required=required,
        ok=ok,
        detail="",
        seconds=0.0,
    )
