"""Whole runs of `prove` with real interpreters and checks of our own: sides, verdicts, isolation, order."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.prove_cases import FakeVerify
from toolkit.errors import UsageError
from toolkit.model import CheckResult, Overlay, Proof, Target

PASS = "from verify.contract import passed\ndef check(request):\n    return passed('seen')\n"

TELL = """
import os, sys
from dataclasses import asdict
from verify.contract import passed
def check(request):
    return passed("told", env=dict(os.environ), path=sys.path, cwd=os.getcwd(), listing=os.listdir(),
                  request=asdict(request), pid=os.getpid(), verify=sys.modules["verify"].__file__)
"""


def verdicts(proof: Proof) -> list[tuple[str, str, str, bool, bool]]:
    return [(r.name, r.side, r.status, r.required, r.ok) for r in proof.results]


def test_a_witness_is_red_on_the_base_and_green_on_the_overlay_each_in_its_own_process(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    fake_verify.add("seen", PASS)
    fake_verify.add_witness()

    proof = prove_checks("seen", "subject-fault")

    assert verdicts(proof) == [
        ("seen", "overlay", "pass", True, True),
        ("subject-fault", "base", "fail", True, True),
        ("subject-fault", "overlay", "pass", True, True),
    ]
    assert proof.ok
    names = ["base-subject-fault", "overlay-seen", "overlay-subject-fault"]
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == sorted(
        [*names, *(f"{name}.log" for name in names)]
    )


@pytest.mark.parametrize(
    ("source", "base", "overlay_result"),
    [
        pytest.param(
            "import subject\ndef check(request):\n    assert not subject.FAULT, 'broken'\n",
            ("error", False), ("error", False), id="error on the base is no red",
        ),
        pytest.param(
            "from verify.contract import passed\ndef check(request):\n    return passed('always')\n",
            ("pass", False), ("pass", True), id="green on the base is no red",
        ),
        pytest.param(
            "from verify.contract import skipped\ndef check(request):\n    return skipped('not today')\n",
            ("skip", False), ("skip", False), id="skip without excuse",
        ),
        pytest.param(
            "from verify.contract import failed\ndef check(request):\n    return failed('always')\n",
            ("fail", True), ("fail", False), id="red on the overlay too",
        ),
    ],
)  # fmt: skip
def test_a_witness_that_does_not_discriminate_fails_the_proof(
    fake_verify: FakeVerify,
    prove_checks: Callable[..., Proof],
    source: str,
    base: tuple[str, bool],
    overlay_result: tuple[str, bool],
) -> None:
    fake_verify.add_witness(source=source)

    proof = prove_checks("subject-fault")

    assert [(r.status, r.ok) for r in proof.results] == [base, overlay_result]
    assert all(result.required for result in proof.results)
    assert not proof.ok


def test_an_excused_skip_on_both_sides_is_not_run_and_does_not_count(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    fake_verify.add("seen", PASS)
    fake_verify.add_witness(
        source="from verify.contract import skipped\ndef check(request):\n"
        "    return skipped('no wheel for this Python', excused=True)\n"
    )

    proof = prove_checks("seen", "subject-fault")

    assert verdicts(proof)[1:] == [
        ("subject-fault", "base", "not run", False, False),
        ("subject-fault", "overlay", "not run", False, False),
    ]
    assert {result.detail for result in proof.results[1:]} == {"no wheel for this Python"}
    assert proof.ok


def test_an_excuse_on_one_side_only_is_none(fake_verify: FakeVerify, prove_checks: Callable[..., Proof]) -> None:
    fake_verify.add_witness(
        source="import subject\nfrom verify.contract import passed, skipped\ndef check(request):\n"
        "    return skipped('cannot', excused=True) if subject.FAULT else passed('gone')\n"
    )

    proof = prove_checks("subject-fault")

    assert verdicts(proof) == [
        ("subject-fault", "base", "skip", True, False),
        ("subject-fault", "overlay", "pass", True, True),
    ]
    assert proof.results[0].detail == "cannot (but the other side ran)"
    assert not proof.ok


def test_a_patch_that_is_upstream_already_is_wanted_green_on_the_base(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], overlay: Overlay
) -> None:
    fake_verify.add_witness()

    proof = prove_checks("subject-fault", base_site=overlay.site, upstream={"subject-fault"})

    assert [(r.side, r.wanted, r.status, r.ok) for r in proof.results] == [
        ("base", "pass", "pass", True),
        ("overlay", "pass", "pass", True),
    ]


def test_for_another_platform_only_static_checks_run_and_the_rest_says_why(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    fake_verify.add("files", TELL, static=True)
    fake_verify.add("seen", PASS)
    fake_verify.add_witness()

    proof = prove_checks("files", "seen", "subject-fault", can_load=False, base_site=tmp_path / "nowhere")

    assert verdicts(proof) == [
        ("files", "overlay", "pass", True, True),
        ("seen", "overlay", "not run", False, False),
        ("subject-fault", "base", "not run", False, False),
        ("subject-fault", "overlay", "not run", False, False),
    ]
    assert {result.detail for result in proof.results[1:]} == {"other platform"}
    assert proof.ok
    told: Any = proof.results[0].evidence
    assert told["request"]["can_load"] is False


def test_a_proof_of_nothing_is_not_ok(fake_verify: FakeVerify, prove_checks: Callable[..., Proof]) -> None:
    fake_verify.add("seen", PASS)

    assert not prove_checks("seen", can_load=False).ok


def test_the_child_sees_the_site_first_then_the_staged_verify_and_nothing_of_the_caller(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], overlay: Overlay, tmp_path: Path
) -> None:
    (fake_verify.folder.parent / "subject.py").write_text("raise RuntimeError('beside the verify folder')\n")
    (fake_verify.folder / "__pycache__").mkdir()
    fake_verify.add("tell", TELL, env={"FROM_CHECK": "check", "FROM_BOTH": "check"})
    caller = {
        **os.environ, "PYTHONPATH": "/elsewhere", "LD_PRELOAD": "", "TORCHINDUCTOR_CACHE_DIR": "/shared",
        "GIT_DIR": "/elsewhere", "SECRET": "1",
    }  # fmt: skip

    told: Any = prove_checks("tell", environ=caller, runtime_env={"ASCEND_HOME_PATH": "/sysroot"}).results[0].evidence

    scratch = tmp_path / "scratch"
    room = scratch / "overlay-tell"
    assert told["env"]["PYTHONPATH"] == f"{overlay.site}:{scratch / 'stage'}"
    assert [entry for entry in told["path"] if entry.startswith(str(tmp_path))] == [
        *([str(room / "cwd")] if sys.version_info < (3, 11) else []),
        str(overlay.site),
        str(scratch / "stage"),
    ]
    assert told["verify"] == str(scratch / "stage" / "verify" / "__init__.py")
    assert sorted(path.name for path in (scratch / "stage").iterdir()) == ["verify"]
    assert (told["cwd"], told["listing"]) == (str(room / "cwd"), [])
    composed = {name: told["env"].get(name) for name in ("SECRET", "GIT_DIR", "LD_PRELOAD", "FROM_RECIPE")}
    assert composed == {"SECRET": None, "GIT_DIR": None, "LD_PRELOAD": None, "FROM_RECIPE": "recipe"}
    assert (told["env"]["FROM_CHECK"], told["env"]["FROM_BOTH"]) == ("check", "check")
    assert told["env"]["ASCEND_HOME_PATH"] == "/sysroot"
    own = ("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TOOLKIT_LAUNCH_LOG")
    assert all(told["env"][name].startswith(f"{room}/") for name in own)
    assert [told["env"][name] for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH")] == ["1", "1"]


def test_nothing_is_written_into_the_overlay(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], overlay: Overlay
) -> None:
    fake_verify.add_witness()
    before = sorted(overlay.root.rglob("*"))

    assert prove_checks("subject-fault").ok

    assert sorted(overlay.root.rglob("*")) == before


def test_the_request_names_each_sides_own_site_and_version(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], overlay: Overlay, base_site: Path
) -> None:
    fake_verify.add_witness("tell", TELL)

    base, patched = (result.evidence["request"] for result in prove_checks("tell", timeout=19.0).results)

    expect = {
        "python_tag": "cp311", "platform": "manylinux_2_28_x86_64", "torch": "2.13.0", "cann": "9.1", "soc": [],
    }  # fmt: skip
    package = {"component": "subject", "import_name": "subject", "distribution": "subject"}
    shared = {"checks": ["tell"], "runtime": "host", "expect": expect, "can_load": True, "time_limit": 19.0}
    assert without_scratch(base) == {
        **shared, "side": "base", "site": str(base_site), "manifest": None, "packages": [{**package, "version": "1.0"}],
        "overlay": None,
    }  # fmt: skip
    assert without_scratch(patched) == {
        **shared, "side": "overlay", "site": str(overlay.site), "manifest": str(overlay.manifest),
        "packages": [{**package, "version": "1.0+p1.k0"}], "overlay": str(overlay.root),
    }  # fmt: skip


def test_checks_of_one_group_share_a_process_and_others_do_not(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    for name, entry in {
        "one": {"group": "g"}, "two": {"group": "g"}, "three": {"group": "g", "env": {"A": "1"}}, "four": {},
    }.items():  # fmt: skip
        fake_verify.add(name, TELL, **entry)

    pids = {result.name: result.evidence["pid"] for result in prove_checks("one", "two", "three", "four").results}

    assert pids["one"] == pids["two"]
    assert len({pids["one"], pids["three"], pids["four"]}) == 3


def test_results_are_told_as_they_come_and_recorded_in_the_plans_order(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    fake_verify.add("slow", "import time\n" + PASS.replace("    return", "    time.sleep(0.7)\n    return"))
    fake_verify.add("quick", PASS)
    told: list[CheckResult] = []

    proof = prove_checks("slow", "quick", on_result=told.append)

    assert [result.name for result in told] == ["quick", "slow"]
    assert [result.name for result in proof.results] == ["slow", "quick"]


def test_no_more_jobs_run_at_once_than_asked(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    count = (
        "import os, time\nfrom verify.contract import passed\ndef check(request):\n"
        f"    folder = {str(tmp_path / 'running')!r}\n    os.makedirs(folder, exist_ok=True)\n"
        "    mine = os.path.join(folder, str(os.getpid()))\n    open(mine, 'w').close()\n    time.sleep(0.3)\n"
        "    seen = len(os.listdir(folder))\n    os.unlink(mine)\n    return passed('counted', seen=seen)\n"
    )
    for name in ("a", "b", "c"):
        fake_verify.add(name, count)

    assert [r.evidence["seen"] for r in prove_checks("a", "b", "c", jobs=1).results] == [1, 1, 1]
    assert max(int(str(r.evidence["seen"])) for r in prove_checks("a", "b", "c", jobs=3).results) > 1


def test_an_unknown_name_is_refused_before_anything_runs(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], tmp_path: Path
) -> None:
    fake_verify.add("origins", PASS)

    with pytest.raises(UsageError) as caught:
        prove_checks(wanted=["orgins"])

    assert str(caught.value) == "there is no check 'orgins'; did you mean 'origins'?"
    assert not (tmp_path / "scratch").exists()


def test_the_proof_says_what_it_is_about(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof], overlay: Overlay
) -> None:
    fake_verify.add("seen", PASS)

    proof = prove_checks("seen", overlay=replace(overlay, target=Target(python_tag="cp312", platform="linux_x86_64")))

    environment: Any = proof.environment
    assert (proof.recipe, proof.overlay, proof.runtime) == ("fake", "0123456789abcdef", "host")
    assert environment["target"] == "cp312-linux_x86_64"
    assert environment["packages"] == {"subject": "1.0+p1.k0"}
    assert environment["interpreter"] == {"executable": sys.executable, "version": "3.11.7"}
    assert environment["child"]["executable"] == sys.executable
    assert json.dumps(environment)


def test_the_proof_tells_the_overlays_versions_whichever_side_is_done_first(
    fake_verify: FakeVerify, prove_checks: Callable[..., Proof]
) -> None:
    fake_verify.add_witness(
        source="import subject, sys, time, types\nfrom verify.contract import failed, passed\ndef check(request):\n"
        "    sys.modules['torch_npu'] = types.SimpleNamespace(__version__=request.side)\n"
        "    time.sleep(0 if subject.FAULT else 0.5)\n"
        "    return failed('there') if subject.FAULT else passed('gone')\n"
    )

    environment: Any = prove_checks("subject-fault").environment

    assert environment["child"]["torch_npu"] == "overlay"


def without_scratch(request: Any) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "scratch"}
