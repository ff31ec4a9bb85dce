"""The machine's part of `toolkit doctor` as a whole: nothing wrong with a healthy one, all faults of a spoilt one."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolkit
from tests.doctor_machines import Machine, plant_machine, wanting
from tests.limits import ordinary_user
from tests.sample import Sample, make_sample
from toolkit.doctor.asked import Asked
from toolkit.doctor.caches import examine_caches
from toolkit.doctor.cann import examine_cann
from toolkit.doctor.devices import examine_devices
from toolkit.doctor.machine import examine_machine
from toolkit.doctor.overlay_state import examine_overlay
from toolkit.doctor.resources import examine_resources
from toolkit.envfile import activate, activation_of
from toolkit.manifest import read_overlay
from toolkit.process import run
from toolkit.resolve import resolve_recipe

CHECKOUT = Path(toolkit.__file__).parents[1]


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    made = plant_machine(tmp_path / "machine", tmp_path_factory)
    ninja = made.place / "bin/ninja"
    ninja.parent.mkdir()
    ninja.write_text("#!/bin/sh\necho 1.11.1\n", encoding="utf-8")
    ninja.chmod(0o755)
    made.environ["PATH"] = f"{ninja.parent}:{made.environ['PATH']}"
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return a small project with an overlay that stands."""
    sample = make_sample(tmp_path_factory.mktemp("project"))
    resolve_recipe(sample.project, "sample", upgrade=False, environ=sample.environ, stage=lambda prefix, text: None)
    sample.build()
    return sample


def with_overlay(machine: Machine, built: Sample) -> Asked:
    """Return a look at the machine with the project's overlay active on it."""
    generation = built.folder.current()
    assert generation is not None
    environ = activate(machine.environ, activation_of(read_overlay(generation)))
    wanted = wanting({"TORCHINDUCTOR_NPU_BACKEND": "dvm"}, cann="8.5")
    return replace(machine.asked(wanted=wanted), environ=environ, project=built.project)


def test_a_healthy_machine_has_no_faults(machine: Machine, built: Sample) -> None:
    found = examine_machine(with_overlay(machine, built))

    assert [one for one in found if one.grade != "ok"] == []
    assert [one.name for one in found] == [
        "cann.environment",
        "cann.version",
        "libraries.torch",
        "libraries.driver",
        "libraries.cann",
        "libraries.nnal",
        "device.nodes",
        "device.driver",
        "device.visible",
        "compiler.c",
        "compiler.cxx",
        "compiler.ninja",
        "compiler.bishengir-compile",
        "compiler.bisheng",
        "cache.extensions",
        "cache.inductor",
        "cache.triton",
        "resources.jobs",
        "resources.disk",
        "resources.clock",
        "switch.backend",
        "overlay.built",
        "overlay.proof",
        "overlay.contract",
        "overlay.active",
    ]


def test_faults_of_every_kind_are_found_beside_each_other(machine: Machine, built: Sample) -> None:
    (machine.home / "lib64/libhccl.so").unlink()
    (machine.driver / "version.info").unlink()
    (machine.root / "dev/devmm_svm").unlink()
    (machine.place / "bin/ninja").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    extensions = machine.place / "cache/torch_extensions_dir/fused"
    extensions.mkdir()
    (extensions / "lock").touch()
    machine.environ.update(
        {
            "ASCEND_OPP_PATH": "/usr",
            "ASCEND_RT_VISIBLE_DEVICES": "1,0",
            "CXX": "no-such-compiler",
            "MAX_JOBS": "0",
            "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64",
            "TASK_QUEUE_ENABLE": "on",
            "TORCHINDUCTOR_NPU_BACKEND": "dvm2",
            "TOOLKIT_OVERLAY": "/gone",
        }
    )
    asked = replace(machine.asked(wanted=wanting(cann="9.1")), project=built.project)

    found = examine_machine(asked)

    assert [one.name for one in found if one.grade == "fail"] == [
        "cann.opp",
        "cann.version",
        "libraries.cann",
        "device.nodes",
        "device.visible",
        "compiler.cxx",
        "compiler.ninja",
        "cache.extensions.lock",
        "resources.jobs",
        "allocator.options",
        "switch.backend",
        "switch.queue",
        "overlay.active",
    ]
    assert [one.name for one in found if one.grade == "warn"] == ["device.driver"]
    assert all(one.do for one in found if one.grade == "fail")


def test_what_another_user_keeps_to_himself_ends_nothing(machine: Machine, open_folder: Path) -> None:
    """An LD_LIBRARY_PATH with a folder that this user may not enter is common."""
    closed = open_folder / "closed"
    shutil.copytree(machine.home, closed / "home", symlinks=True)
    closed.chmod(0o700)
    machine.environ.update(
        dict.fromkeys(
            ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR",
             "TOOLKIT_OVERLAY", "TMPDIR", "TOOLKIT_STORE", "HOME"), str(closed / "home/lib64")
        )
    )  # fmt: skip
    shutil.copytree(machine.place / "site", open_folder / "site")
    packages = {name: open_folder / "site" / name for name in machine.packages}
    asked = replace(machine.asked(), root=closed, cwd=open_folder, packages=packages)

    with ordinary_user():
        found = [*examine_cann(asked), *examine_devices(asked), *examine_caches(asked), *examine_overlay(asked)]
        found += examine_resources(asked)

    failed = [one.name for one in found if one.grade == "fail"]
    assert failed[:2] == ["cann.environment", "libraries.cann"]
    assert "cache.extensions.writable" in failed


NAMES = (
    "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_TOOLKIT_HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "MAX_JOBS",
    "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "TASK_QUEUE_ENABLE", "ASCEND_LAUNCH_BLOCKING", "TORCHINDUCTOR_NPU_BACKEND", "HCCL_DETERMINISTIC",
    "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TOOLKIT_OVERLAY", "TMPDIR", "HOME",
)  # fmt: skip
VALUES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    st.sampled_from(["", " ", ",", ":", "=", "0", "True", "/", "/dev/null", "//", "[", "a:[1:2", "\udc80", "9" * 50]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(environ=st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_no_variable_ends_the_look(machine: Machine, environ: dict[str, str]) -> None:
    asked = replace(machine.asked(), environ={**machine.environ, **environ})

    found = [
        one
        for examine in (examine_cann, examine_devices, examine_caches, examine_resources, examine_overlay)
        for one in examine(asked)
    ]

    assert all(one.do for one in found if one.grade == "fail")


def test_it_is_quick(machine: Machine, built: Sample) -> None:
    asked = with_overlay(machine, built)
    began = time.monotonic()
    examine_machine(asked)

    assert time.monotonic() - began < 5.0


# --- the command on a machine of any kind ------------------------------------------------------------------------


def doctor(tmp_path: Path, **environ: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the command as a user would, with few variables; return its exit code and its lines by name."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLKIT_STORE": str(tmp_path / "store"),
           "TOOLKIT_OVERLAYS": str(tmp_path / "overlays"), "PYTHONPATH": str(CHECKOUT), **environ}  # fmt: skip
    words = [sys.executable, "-m", "toolkit", "doctor", "--json", "--project", str(CHECKOUT)]
    done = run(words, cwd=tmp_path, env=env, check=False)
    document = json.loads(done.stdout)
    return done.returncode, {one["name"]: one for one in document["observations"]}


@pytest.mark.skipif(Path("/usr/local/Ascend").exists() or Path("/dev/davinci0").exists(), reason="CANN is here")
def test_a_machine_without_cann_is_told_so_and_is_no_failure(tmp_path: Path) -> None:
    _, found = doctor(tmp_path)

    assert found["cann.environment"]["grade"] == "warn"
    assert found["cann.environment"]["seen"] == ("no CANN: ASCEND_HOME_PATH is not set, and /usr/local/Ascend has none")
    assert "toolkit run --host -- python" in found["cann.environment"]["do"]
    assert found["device.nodes"]["grade"] == "warn"
    machine = ("cann.", "device.", "compiler.", "cache.", "resources.", "switch.", "overlay.")
    assert [name for name, one in found.items() if name.startswith(machine) and one["grade"] == "fail"] == []


def test_an_environment_that_claims_a_cann_fails_without_one(tmp_path: Path) -> None:
    code, found = doctor(tmp_path, ASCEND_HOME_PATH="/gone/cann")

    assert code == 23
    assert found["cann.environment"]["grade"] == "fail"
    assert found["cann.environment"]["seen"] == "ASCEND_HOME_PATH is /gone/cann, which does not exist"


def test_every_line_is_explained() -> None:
    """The names in the sources, but for those that are put together, stand in the page."""
    page = (CHECKOUT / "docs/doctor.md").read_text(encoding="utf-8")
    names = {
        str(node.args[0].value)
        for path in (CHECKOUT / "toolkit/doctor").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("good", "doubtful", "bad")
        if isinstance(node.args[0], ast.Constant)
    }

    assert len(names) > 30
    assert sorted(name for name in names if f"`{name}`" not in page) == []
