"""Plans: what a key is made of, and what a build is taken to be made from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import toolkit
from tests.sample import Sample, copy_of
from toolkit import sysroot
from toolkit.errors import ContractMismatchError, LockError, SeriesError
from toolkit.inputs import OTHER_ROOMS, REPORT_ROOMS
from toolkit.lock import write_lock
from toolkit.model import (
    Contract,
    Key,
    Lock,
    LockedComponent,
    Overlay,
    OverlayPackage,
    Target,
    key_difference,
)
from toolkit.plan import Plan, make_plan, proof_key, read_recipe, standing_lock
from toolkit.sources.wheel import Artifact, Locked
from toolkit.trace import changed_input

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
ELSEWHERE = Target(python_tag="cp310", platform=ARM)
"""What no test runs on: its plan asks nothing of the interpreter."""


@pytest.fixture
def wide(sample: Sample) -> Sample:
    """Make the sample one for three interpreters on two platforms; its lock names wheels that nobody has."""
    text = sample.recipe.read_text()
    head, target = text.index("python = ["), text.index("torch = ")
    targets = f'python = ["cp310", "cp311", "cp312"]\nplatforms = ["{X86}", "{ARM}"]\n'
    sample.recipe.write_text(text[:head] + targets + text[target:])
    pin(sample)
    return sample


def pin(sample: Sample, sha256: str = "ab" * 32) -> None:
    """Write the lock, every target's wheel with one hash."""
    artifacts = tuple(
        Artifact(
            file=f"sample_npu-1.0-{target.python_tag}-{target.python_tag}-{target.platform}.whl",
            sha256=sha256,
            python_tag=target.python_tag,
            platform=target.platform,
        )
        for target in read_recipe(sample.project, "sample").contract.targets
    )
    locked = Locked(distribution="sample_npu", version="1.0", artifact=artifacts)
    path = sample.recipe.with_suffix(".lock")
    entries = (LockedComponent(name="sample_npu", base=locked),)
    write_lock(Lock(recipe="sample", components=entries, path=path), path)


def elsewhere(sample: Sample) -> Plan:
    return sample.plan(python_tag=ELSEWHERE.python_tag, platform=ELSEWHERE.platform)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, (old, text)
    path.write_text(text.replace(old, new))


def differing(old: Key, new: Key) -> list[str]:
    return [name for name, _, _ in key_difference(old, new)]


# --- keys --------------------------------------------------------------------------------------------------------


def test_two_checkouts_have_the_same_keys(wide: Sample, tmp_path: Path) -> None:
    here, there = elsewhere(wide), elsewhere(copy_of(wide, tmp_path / "a longer place/over there"))

    assert there.key == here.key
    assert there.components[0].key == here.components[0].key
    assert proof_key(there, wide.project, "host", ()) == proof_key(here, wide.project, "host", ())


def test_a_key_names_no_place(wide: Sample) -> None:
    plan = elsewhere(wide)

    assert not [pair for pair in plan.key.inputs if "/tmp" in pair[1] or str(wide.root) in str(pair)]


def in_recipe(old: str, new: str) -> Callable[[Sample], None]:
    return lambda sample: edit(sample.recipe, old, new)


def rename_patch(sample: Sample) -> None:
    sample.patch.rename(sample.patch.with_name("0001-better-answer.patch"))


def add_patch(sample: Sample) -> None:
    shutil.copy(sample.patch, sample.patch.with_name("0002-more.patch"))


def drop_platform(sample: Sample) -> None:
    edit(sample.recipe, f'"{X86}", ', "")
    pin(sample)


def drop_tag(sample: Sample) -> None:
    edit(sample.recipe, ', "cp312"', "")
    pin(sample)


WHEEL = "sample_npu/"
INPUTS: dict[str, tuple[Callable[[Sample], None], set[str]]] = {
    "a patch's bytes": (lambda s: edit(s.patch, "Without it", "Without this"), {f"{WHEEL}series[1] 0001-right-answer"}),
    "a patch's name": (rename_patch, {f"{WHEEL}series[1] 0001-right-answer", f"{WHEEL}series[1] 0001-better-answer"}),
    "a patch more": (add_patch, {f"{WHEEL}series[2] 0002-more"}),
    "no series": (in_recipe('series = "sample_npu/1.0"\n', ""), {f"{WHEEL}series[1] 0001-right-answer"}),
    "the base's bytes": (lambda s: pin(s, "cd" * 32), {f"{WHEEL}base"}),
    "the package": (
        in_recipe('name = "sample_npu"\n', 'name = "sample_npu"\nimport_name = "other"\n'), {f"{WHEEL}import_name"}
    ),
    "an accepted patch": (
        in_recipe('name = "sample_npu"\n', 'name = "sample_npu"\naccept_upstream = ["0001-right-answer"]\n'),
        {f"{WHEEL}accept_upstream/0001-right-answer"},
    ),
    "a variable's value": (in_recipe('"small"', '"large"'), {"env/SAMPLE_BACKEND"}),
    "a variable's name": (in_recipe("SAMPLE_BACKEND", "SAMPLE_KIND"), {"env/SAMPLE_BACKEND", "env/SAMPLE_KIND"}),
    "torch": (in_recipe('torch = "', 'torch = "1'), {"contract/torch"}),
    "CANN": (in_recipe('torch = "', 'cann = "9.1"\ntorch = "'), {"contract/cann"}),
    "the SoC": (in_recipe('torch = "', 'soc = ["Ascend910B3"]\ntorch = "'), {"contract/soc"}),
    "interpreters": (drop_tag, {"contract/python"}),
    "platforms": (drop_platform, {"contract/platforms"}),
}  # fmt: skip


@pytest.mark.parametrize(("change", "names"), INPUTS.values(), ids=INPUTS)
def test_every_input_changes_the_key_and_the_wheels_only_where_it_is_the_wheels(
    wide: Sample, change: Callable[[Sample], None], names: set[str]
) -> None:
    before = elsewhere(wide)
    change(wide)
    after = elsewhere(wide)

    assert set(differing(before.key, after.key)) == names
    assert after.key.digest != before.key.digest
    wheel = {name.removeprefix(WHEEL) for name in names if name.startswith(WHEEL)}
    assert set(differing(before.components[0].key, after.components[0].key)) == wheel


@pytest.mark.parametrize(
    ("tag", "platform", "names"),
    [
        pytest.param("cp312", ARM, {"sample_npu/python_tag", "target"}, id="interpreter"),
        pytest.param("cp310", X86, {"sample_npu/platform", "target"}, id="platform"),
    ],
)
def test_another_target_has_another_key(wide: Sample, tag: str, platform: str, names: set[str]) -> None:
    other = wide.plan(python_tag=tag, platform=platform)

    assert set(differing(elsewhere(wide).key, other.key)) == names


def test_what_is_said_for_people_is_in_no_key(wide: Sample) -> None:
    before = elsewhere(wide).key
    edit(wide.recipe, 'description = "a sample"', 'description = "another"')
    edit(wide.recipe, 'checks = ["loads"]', 'checks = ["loads", "answer"]')

    assert elsewhere(wide).key == before


# --- the key of a proof ------------------------------------------------------------------------------------------


def test_a_proof_is_one_of_an_overlay_by_checks_on_a_runtime(wide: Sample) -> None:
    plan = elsewhere(wide)
    key = proof_key(plan, wide.project, "host", ("loads",))

    assert dict(key.inputs)["overlay"] == plan.key.digest
    assert dict(key.inputs)["checks"] == "loads,answer"
    assert dict(key.inputs)["logic/sysroot"] == sysroot.SYSROOT_VERSION
    assert differing(key, proof_key(plan, wide.project, "host", ())) == ["check/loads", "checks"]
    assert differing(key, proof_key(plan, wide.project, "device", ("loads",))) == ["logic/sysroot", "runtime"]


@pytest.mark.parametrize("field", ["version", "torch"])
def test_a_proof_is_one_in_an_interpreter(wide: Sample, field: str) -> None:
    plan = elsewhere(wide)
    other = replace(plan, interpreter=replace(plan.interpreter, **{field: "3.99"}))
    keys = [proof_key(one, wide.project, "host", ()) for one in (plan, other)]

    assert differing(*keys) == [{"version": "python"}.get(field, field)]


@pytest.mark.parametrize("name", ["answer.py", "more.py", "more/data.txt"])
def test_a_proof_is_one_by_the_files_of_verify(wide: Sample, name: str) -> None:
    plan = elsewhere(wide)
    before = proof_key(plan, wide.project, "host", ())
    path = wide.project.verify / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n")

    assert differing(before, proof_key(plan, wide.project, "host", ())) == [f"verify/{name}"]


def test_what_python_caches_in_verify_is_in_no_key(wide: Sample) -> None:
    plan = elsewhere(wide)
    before = proof_key(plan, wide.project, "host", ())
    (wide.project.verify / "__pycache__").mkdir()
    (wide.project.verify / "__pycache__/answer.cpython-311.pyc").touch()

    assert proof_key(plan, wide.project, "host", ()) == before


# --- the line ----------------------------------------------------------------------------------------------------


def test_a_base_that_the_line_does_not_cover_is_refused_before_anything_else(wide: Sample) -> None:
    edit(wide.recipe, 'version = "1.0"', 'version = "1.1"')  # The lock is stale as well.

    with pytest.raises(SeriesError) as caught:
        elsewhere(wide)
    assert str(caught.value) == (
        "series 'sample_npu/1.0' is not for sample_npu sample_npu==1.1; did you mean 'sample_npu==1.0'?"
    )
    assert caught.value.hint == (
        "it is for sample_npu==1.0; `toolkit patch matrix --against sample_npu==1.1` says how its patches stand there,"
        " and series.toml of the series is where a base is added once that is known"
    )


def test_a_series_that_does_not_say_what_it_is_for_is_refused(wide: Sample) -> None:
    wide.line.unlink()

    with pytest.raises(SeriesError, match=r"does not say which bases it is for: no file .*series\.toml"):
        elsewhere(wide)


# --- the trace ---------------------------------------------------------------------------------------------------


def test_the_trace_holds_every_file_that_a_build_reads(wide: Sample) -> None:
    (wide.project.verify / "deep").mkdir()
    (wide.project.verify / "deep/check.py").touch()
    plan = elsewhere(wide)
    own = Path(toolkit.__file__).parent

    inputs = [wide.recipe, wide.recipe.with_suffix(".lock"), wide.patch, wide.line, *plan.interpreter.files]
    inputs += [path for path in wide.project.verify.rglob("*") if path.is_file()]
    left_out = REPORT_ROOMS | OTHER_ROOMS
    inputs += [path for path in own.rglob("*.py") if path.relative_to(own).parts[0].removesuffix(".py") not in left_out]
    inputs += own.glob("sysroot/*.c")
    assert set(plan.trace.files) == {str(path) for path in inputs}
    folders = [wide.patch.parent, wide.project.verify, wide.project.verify / "deep"]
    assert set(plan.trace.folders) == {str(path) for path in folders}


@pytest.mark.parametrize(
    ("file", "is_watched"),
    [
        pytest.param("lanes/__init__.py", True, id="a lane"),
        pytest.param("prove/__init__.py", True, id="the proof"),
        pytest.param("overlay.py", True, id="the overlay"),
        pytest.param("doctor/elf.py", False, id="a look at the machine"),
        pytest.param("triage/__init__.py", False, id="a look at a log"),
        pytest.param("page/html.py", False, id="the report"),
    ],
)
def test_of_toolkit_itself_only_what_builds_and_proves_is_an_input(wide: Sample, file: str, is_watched: bool) -> None:
    place = Path(toolkit.__file__).parent / file

    assert place.is_file()
    assert (str(place) in elsewhere(wide).trace.files) is is_watched


def test_a_recipe_that_is_extended_is_an_input_too(wide: Sample) -> None:
    child = wide.recipe.with_name("child.toml")
    child.write_text('schema = 1\nextends = "sample"\ndescription = "a child"\n')
    lock = wide.recipe.with_suffix(".lock")
    child.with_suffix(".lock").write_text(lock.read_text().replace('recipe = "sample"', 'recipe = "child"'))
    plan = make_plan(
        project=wide.project, name="child", interpreter=Path(elsewhere(wide).interpreter.executable),
        environ=wide.environ, python_tag="cp310", platform=ARM,
    )  # fmt: skip
    edit(wide.recipe, '"small"', '"large"')

    assert changed_input(plan.trace, {}) == str(wide.recipe)


def test_the_trace_is_of_the_moment_of_the_plan(wide: Sample) -> None:
    plan = elsewhere(wide)
    assert changed_input(plan.trace, {}) is None
    edit(wide.patch, "Without it", "Without this")

    assert changed_input(plan.trace, {}) == str(wide.patch)


# --- targets, and what is wrong ----------------------------------------------------------------------------------


def test_this_machines_build_is_current_and_another_machines_is_not(sample: Sample, built: Sample) -> None:
    plan = built.plan()

    assert plan.can_load
    assert plan.folder.path == built.overlays / "sample"
    assert plan.target == sample.plan(python_tag=plan.target.python_tag, platform=plan.target.platform).target


def test_a_build_for_another_machine_asks_nothing_of_this_one(wide: Sample) -> None:
    edit(wide.recipe, 'torch = "', 'torch = "1')
    plan = elsewhere(wide)

    assert not plan.can_load
    assert plan.target == ELSEWHERE
    assert plan.folder.path == wide.overlays / f"sample.cp310-{ARM}"


@pytest.mark.parametrize(
    ("tag", "platform", "asked"),
    [
        pytest.param("cp313", ARM, f"cp313-{ARM}", id="interpreter"),
        pytest.param("cp310", "manylinux_2_17_s390x", "cp310-manylinux_2_17_s390x", id="platform"),
    ],
)
def test_a_target_that_the_recipe_does_not_name_is_refused(wide: Sample, tag: str, platform: str, asked: str) -> None:
    with pytest.raises(ContractMismatchError) as caught:
        wide.plan(python_tag=tag, platform=platform)
    assert caught.value.message == f"recipe 'sample' is not for {asked}"
    assert caught.value.hint == f"it is for cp310, cp311, cp312 on {X86}, {ARM}"


def test_a_witness_that_verify_does_not_have_is_named(wide: Sample) -> None:
    edit(wide.patch, "Witness: answer", "Witness: question")

    with pytest.raises(SeriesError) as caught:
        elsewhere(wide)
    assert caught.value.message == "a patch names a witness that verify/ does not have"
    catalogue = wide.project.verify / "checks.json"
    assert caught.value.details == (f"0001-right-answer: no witness 'question' in {catalogue}",)
    assert caught.value.hint == "write it, as docs/patches.md says, or name one of answer"


def test_a_witness_whose_module_is_missing_is_named_before_anything_is_built(wide: Sample) -> None:
    module = wide.project.verify / "answer.py"
    module.unlink()

    with pytest.raises(SeriesError) as caught:
        elsewhere(wide)
    assert caught.value.details == (f"0001-right-answer: witness 'answer' has no module at {module}",)


def test_a_check_is_no_witness(wide: Sample) -> None:
    edit(wide.patch, "Witness: answer", "Witness: loads")

    with pytest.raises(SeriesError):
        elsewhere(wide)


def test_a_lock_that_does_not_fit_is_an_error_of_a_build_and_none_to_look_at(wide: Sample) -> None:
    assert standing_lock(wide.project, read_recipe(wide.project, "sample")) is not None
    edit(wide.recipe, 'version = "1.0"', 'version = "2.0"')
    edit(wide.line, "==1.0", "==2.0")

    assert standing_lock(wide.project, read_recipe(wide.project, "sample")) is None
    with pytest.raises(LockError, match="does not fit recipe 'sample'"):
        elsewhere(wide)


def test_the_witness_of_a_patch_that_the_base_has_is_green_there_too(wide: Sample) -> None:
    with_it, without = overlay_with("0001-right-answer"), overlay_with()
    assert elsewhere(wide).witnesses == ("answer",)
    assert elsewhere(wide).upstream_witnesses(without) == frozenset()
    edit(wide.recipe, 'name = "sample_npu"\n', 'name = "sample_npu"\naccept_upstream = ["0001-right-answer"]\n')

    assert elsewhere(wide).upstream_witnesses(with_it) == frozenset()
    assert elsewhere(wide).upstream_witnesses(without) == frozenset({"answer"})


def test_a_witness_of_two_patches_is_green_on_the_base_only_if_it_has_both(wide: Sample) -> None:
    second = wide.patch.with_name("0002-more.patch")
    second.write_text(wide.patch.read_text().replace("sample: give the right answer", "sample: and more"))
    names = '"0001-right-answer", "0002-more"'
    edit(wide.recipe, 'name = "sample_npu"\n', f'name = "sample_npu"\naccept_upstream = [{names}]\n')

    assert elsewhere(wide).upstream_witnesses(overlay_with("0002-more")) == frozenset()
    assert elsewhere(wide).upstream_witnesses(overlay_with()) == frozenset({"answer"})


def overlay_with(*patches: str) -> Overlay:
    package = OverlayPackage(
        component="sample_npu", import_name="sample_npu", distribution="sample_npu", version="1.0", base_version="1.0",
        wheel="sample_npu-1.0-py3-none-any.whl", wheel_sha256="0" * 64, patches=patches,
    )  # fmt: skip
    contract = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0")
    return Overlay(
        recipe="sample", key="0" * 64, root=Path("/o"), target=contract.targets[0], contract=contract,
        packages=(package,), env={},
    )  # fmt: skip
