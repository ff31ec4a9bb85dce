"""Caches: whose they are, where they lie, and what killed or foreign builds left in them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor_machines import Machine, own_interpreter, plant_machine
from tests.jit_cases import hold_lock
from tests.limits import ordinary_user
from toolkit.doctor.caches import examine_caches

UNSEEN = "" if os.geteuid() == 0 else "; processes of other users cannot be seen"
TAG = own_interpreter().python_tag[2:]


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return plant_machine(tmp_path, tmp_path_factory)


@pytest.fixture
def extension(machine: Machine) -> Path:
    """Return a whole extension that this environment built: its library links to this torch."""
    build = machine.place / "cache/torch_extensions_dir/fused"
    build.mkdir()
    source = 'int f(void) __asm__("_ZN3c105ErrorEv"); int run(void) { return f(); }'
    library = machine.compile("cache/torch_extensions_dir/fused/fused.so", source, ["site/torch/lib/libc10.so"])
    (build / "build.ninja").write_text(
        f"cflags = -DTORCH_EXTENSION_NAME=fused -I{machine.torch}/include -I{machine.npu}/include "
        f"-isystem /usr/include/python3.{TAG[1:]} -fPIC\n",
        encoding="utf-8",
    )
    return library


def test_caches_of_ones_own(machine: Machine, extension: Path) -> None:
    cache = machine.place / "cache"

    assert machine.look(examine_caches) == [
        ("ok", "cache.extensions", f"TORCH_EXTENSIONS_DIR is {cache}/torch_extensions_dir", ""),
        ("ok", "cache.inductor", f"TORCHINDUCTOR_CACHE_DIR is {cache}/torchinductor_cache_dir", ""),
        ("ok", "cache.triton", f"TRITON_CACHE_DIR is {cache}/triton_cache_dir", ""),
    ]


# --- places ----------------------------------------------------------------------------------------------------


def test_the_shared_defaults(machine: Machine) -> None:
    machine.unset("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    home, user = machine.environ["HOME"], pwd.getpwuid(os.geteuid()).pw_name
    own = "activate the overlay, or: export {}=<a fresh folder>"

    assert machine.look(examine_caches) == [
        (
            "warn",
            "cache.extensions.shared",
            f"TORCH_EXTENSIONS_DIR is not set: compiled extensions go to {home}/.cache/torch_extensions/py{TAG}_cpu, "
            "which all torch_npu of this user share",
            own.format("TORCH_EXTENSIONS_DIR"),
        ),
        (
            "warn",
            "cache.inductor.shared",
            f"TORCHINDUCTOR_CACHE_DIR is not set: generated code goes to {machine.place}/torchinductor_{user}, which "
            "all torch_npu of this user share",
            own.format("TORCHINDUCTOR_CACHE_DIR"),
        ),
        (
            "warn",
            "cache.triton.shared",
            f"TRITON_CACHE_DIR is not set: Triton kernels go to {home}/.triton/cache, which all torch_npu of this user "
            "share",
            own.format("TRITON_CACHE_DIR"),
        ),
    ]


def test_a_build_of_torch_for_cuda_has_another_default(machine: Machine) -> None:
    machine.unset("TORCH_EXTENSIONS_DIR")
    machine.environ["XDG_CACHE_HOME"] = "/big/cache"
    (machine.torch / "version.py").write_text("cuda: Optional[str] = '13.0'\n", encoding="utf-8")

    assert machine.look(examine_caches)[0][2] == (
        f"TORCH_EXTENSIONS_DIR is not set: compiled extensions go to /big/cache/torch_extensions/py{TAG}_cu130, which "
        "all torch_npu of this user share"
    )


def test_inductor_puts_triton_into_its_own(machine: Machine) -> None:
    machine.unset("TRITON_CACHE_DIR")

    assert [one[1] for one in machine.look(examine_caches)] == ["cache.extensions", "cache.inductor"]


def test_the_cache_of_another_overlay(machine: Machine) -> None:
    other = machine.place / "overlays/other/generations/1"
    (other / "site").mkdir(parents=True)
    (other / "manifest.json").touch()
    machine.environ["TORCH_EXTENSIONS_DIR"] = str(other / "torch_extensions")

    assert machine.faults(examine_caches) == [
        (
            "fail",
            "cache.extensions.shared",
            f"TORCH_EXTENSIONS_DIR is {other}/torch_extensions, of the overlay {other}, which is not the one that is "
            "active",
            "activate the overlay that is wanted again: toolkit env",
        )
    ]

    machine.environ["TOOLKIT_OVERLAY"] = str(other)
    assert machine.faults(examine_caches) == []

    machine.unset("TOOLKIT_OVERLAY")
    machine.environ["TORCH_EXTENSIONS_DIR"] = str(other / "cache/base/torch_extensions_dir")
    assert machine.faults(examine_caches) == [], "the caches of `toolkit run --base`"


def test_a_cache_for_every_folder(machine: Machine) -> None:
    machine.environ["TRITON_CACHE_DIR"] = "triton"

    assert machine.faults(examine_caches) == [
        (
            "warn",
            "cache.triton.place",
            "TRITON_CACHE_DIR is 'triton', another folder for every working directory",
            f"give it in full: export TRITON_CACHE_DIR={machine.place}/triton",
        )
    ]


def test_a_cache_on_a_network_disk(machine: Machine) -> None:
    mounts = machine.root / "proc/mounts"
    escaped = str(machine.place / "cache").replace(" ", "\\040")
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/home {escaped} nfs4 rw 0 0\n", encoding="utf-8")
    machine.environ["TORCH_EXTENSIONS_DIR"] = str(machine.place / "local")
    machine.environ["TRITON_CACHE_DIR"] = str(machine.place / "cacheless")

    assert machine.faults(examine_caches) == [
        (
            "warn",
            "cache.inductor.network",
            f"{machine.place}/cache/torchinductor_cache_dir is on a network disk (nfs4): its locks are slow or do not "
            "hold",
            "choose a local disk: export TORCHINDUCTOR_CACHE_DIR=<a folder there>",
        )
    ]


def test_a_cache_that_cannot_be_written(machine: Machine, open_folder: Path) -> None:
    locked = open_folder / "locked"
    locked.mkdir(mode=0o555)
    machine.environ.update(dict.fromkeys(("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR"), str(open_folder)))
    machine.environ["TRITON_CACHE_DIR"] = str(locked / "below")
    asked = replace(machine.asked(), packages={}, root=open_folder, cwd=open_folder)

    with ordinary_user():
        found = [one for one in examine_caches(asked) if one.grade != "ok"]

    assert [(one.grade, one.name, one.seen, one.do) for one in found] == [
        (
            "fail",
            "cache.triton.writable",
            f"TRITON_CACHE_DIR is {locked}/below, and {locked} cannot be written by this user",
            "choose another: export TRITON_CACHE_DIR=<a folder of your own>",
        )
    ]


def test_a_cache_that_is_a_file(machine: Machine) -> None:
    place = machine.place / "cache/triton_cache_dir"
    place.rmdir()
    place.touch()

    assert machine.faults(examine_caches) == [
        (
            "fail",
            "cache.triton.writable",
            f"TRITON_CACHE_DIR is {place}, and {place} is no folder",
            "choose another: export TRITON_CACHE_DIR=<a folder of your own>",
        )
    ]


# --- killed builds ---------------------------------------------------------------------------------------------


def test_a_lock_that_a_killed_build_left(machine: Machine, extension: Path) -> None:
    lock = extension.with_name("lock")
    lock.touch()
    os.utime(lock, (time.time() - 7300, time.time() - 7300))

    assert machine.faults(examine_caches) == [
        (
            "fail",
            "cache.extensions.lock",
            f"{lock}: a lock, 2 h old, that no live process holds: whoever needs the extension waits for ever{UNSEEN}",
            f"rm {lock}",
        )
    ]


def test_a_lock_in_the_shared_default(machine: Machine) -> None:
    machine.unset("TORCH_EXTENSIONS_DIR")
    lock = Path(machine.environ["HOME"]) / f".cache/torch_extensions/py{TAG}_cpu/fused/lock"
    lock.parent.mkdir(parents=True)
    lock.touch()

    assert [one[:2] for one in machine.faults(examine_caches)] == [
        ("warn", "cache.extensions.shared"),
        ("fail", "cache.extensions.lock"),
    ]


def test_a_lock_that_a_live_build_holds(machine: Machine, extension: Path) -> None:
    with subprocess.Popen(hold_lock(extension.with_name("lock")), stdout=subprocess.PIPE) as builder:
        assert builder.stdout is not None
        builder.stdout.readline()
        found = machine.faults(examine_caches)
        builder.kill()

    assert found == []


def test_a_library_that_is_cut_short(machine: Machine, extension: Path) -> None:
    whole = extension.read_bytes()
    extension.write_bytes(whole[:3000])

    assert machine.faults(examine_caches) == [
        (
            "fail",
            "cache.extensions.library",
            f"{extension}: a library cut short: it has 3000 of {len(whole)} bytes",
            f"rm -r {extension.parent} (the next use compiles it again)",
        )
    ]


def test_a_build_that_was_not_finished(machine: Machine, extension: Path) -> None:
    build = extension.parent
    extension.unlink()
    (build / "fused.o").touch()

    assert machine.faults(examine_caches) == [
        (
            "warn",
            "cache.extensions.build",
            f"{build}: an unfinished build: objects and no library; compiling failed or was killed",
            f"nothing: the next use goes on with it; to start afresh: rm -r {build}",
        )
    ]


# --- foreign ---------------------------------------------------------------------------------------------------


def foreign(extension: Path, fault: str) -> list[tuple[str, str, str, str]]:
    do = f"rm -r {extension.parent} (the next use compiles it again)"
    return [("fail", "cache.extensions.foreign", f"{extension}: {fault}", do)]


def test_an_extension_of_another_python(machine: Machine, extension: Path) -> None:
    ninja = extension.with_name("build.ninja")
    ninja.write_text(ninja.read_text().replace(f"python3.{TAG[1:]}", "python3.9"), encoding="utf-8")

    wanted = f"a library built for Python 3.9, training has 3.{TAG[1:]}"
    assert machine.faults(examine_caches) == foreign(extension, wanted)


def test_an_extension_with_the_tag_of_another_python(machine: Machine, extension: Path) -> None:
    other = extension.rename(extension.with_name("fused.cpython-39-x86_64-linux-gnu.so"))

    wanted = f"a library built for Python 3.9, training has 3.{TAG[1:]}"
    assert machine.faults(examine_caches) == foreign(other, wanted)


@pytest.mark.parametrize("package", ["torch", "torch_npu"])
def test_an_extension_built_with_the_headers_of_another(machine: Machine, extension: Path, package: str) -> None:
    own = machine.packages[package]
    ninja = extension.with_name("build.ninja")
    ninja.write_text(ninja.read_text().replace(f"-I{own}/include", f"-I/old/{package}/include"), encoding="utf-8")

    wanted = f"a library built for the {package} in /old/{package}, training would import the one in {own}"
    assert machine.faults(examine_caches) == foreign(extension, wanted)


def test_an_extension_that_needs_names_of_another_torch(machine: Machine, extension: Path) -> None:
    """torch was replaced in its place: nothing but its names tells."""
    machine.compile("site/torch/lib/libc10.so", "int other(void) { return 0; }")

    wanted = f"a library built for another torch: the one in {machine.torch}/lib lacks _ZN3c105ErrorEv"
    assert machine.faults(examine_caches) == foreign(extension, wanted)


def test_an_extension_of_another_machine(machine: Machine, extension: Path) -> None:
    raw = bytearray(extension.read_bytes())
    own = "aarch64" if raw[18] == 183 else "x86_64"
    raw[18], other = (62, "x86_64") if own == "aarch64" else (183, "aarch64")
    extension.write_bytes(raw)

    wanted = f"a library for {other}, this machine is {own}"
    assert machine.faults(examine_caches) == foreign(extension, wanted)


# --- age -------------------------------------------------------------------------------------------------------


def test_generated_code_from_before_this_torch_npu(machine: Machine) -> None:
    place = Path(machine.environ["TORCHINDUCTOR_CACHE_DIR"])
    for name, age in (("old.py", 86400), ("older.py", 2 * 86400), ("new.py", -1)):
        (place / name).touch()
        os.utime(place / name, (time.time() - age, time.time() - age))

    assert machine.faults(examine_caches) == [
        (
            "warn",
            "cache.inductor.stale",
            f"{place} has 2 files from before the torch_npu in {machine.npu} was there: code of another one "
            "is found again",
            f"rm -r {place}",
        )
    ]


def test_an_overlays_age_is_its_manifests(machine: Machine) -> None:
    """Its files may be as old as the archive that they came from; its manifest is written when it is made."""
    overlay = machine.place / "overlay"
    shutil.copytree(machine.npu.parent, overlay / "site")
    (overlay / "manifest.json").touch()
    machine.packages["torch_npu"] = overlay / "site/torch_npu"
    place = Path(machine.environ["TRITON_CACHE_DIR"])
    (place / "kernel").touch()
    moment = time.time() - 60
    os.utime(place / "kernel", (moment, moment))

    assert [one[1] for one in machine.faults(examine_caches)] == ["cache.triton.stale"]

    os.utime(overlay / "manifest.json", (moment - 60, moment - 60))
    assert machine.faults(examine_caches) == []


def test_a_pipe_in_place_of_a_build_file_is_not_waited_for(machine: Machine, extension: Path) -> None:
    extension.with_name("build.ninja").unlink()
    os.mkfifo(extension.with_name("build.ninja"))

    assert machine.faults(examine_caches) == []
