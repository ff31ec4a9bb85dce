"""What native files of a wheel ask for, read from libraries that the machine's compiler made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.wheels import make_wheel
from toolkit.build.native import examine_wheel
from toolkit.errors import BuildError
from toolkit.process import compose_env, run

PLATFORM = "manylinux_2_39_x86_64"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def library(folder: Path, *flags: str, source: str = "int f(void) { return 1; }") -> bytes:
    (folder / "a.c").write_text(source)
    run(["cc", "-shared", "-fPIC", "-o", "a.so", "a.c", *flags], cwd=folder, env=compose_env(os.environ))
    return (folder / "a.so").read_bytes()


def wheel_of(folder: Path, files: dict[str, bytes]) -> Path:
    return make_wheel(folder, "part", files={"part/__init__.py": "", **files})


@pytest.mark.parametrize(
    ("flags", "faults"),
    [
        pytest.param((), [], id="none"),
        pytest.param(("-Wl,-rpath,$ORIGIN", "-Wl,-rpath,${ORIGIN}/../lib:$ORIGIN/"), [], id="beside itself"),
        pytest.param(("-Wl,-rpath,$ORIGIN:/build/lib",), ["part/a.so: RUNPATH entry '/build/lib'"], id="absolute"),
        pytest.param(("-Wl,-rpath,/build/lib", "-Wl,--disable-new-dtags"), ["part/a.so: RPATH entry '/build/lib'"],
                     id="absolute, as the older tag"),
        pytest.param(("-Wl,-rpath,lib",), ["part/a.so: RUNPATH entry 'lib'"], id="of the working folder"),
        pytest.param(("-Wl,-rpath,$ORIGIN:",), ["part/a.so: RUNPATH entry ''"], id="empty"),
        pytest.param(("-Wl,-rpath,$ORIGINAL/x",), ["part/a.so: RUNPATH entry '$ORIGINAL/x'"], id="looks like origin"),
    ],
)  # fmt: skip
def test_run_paths(tmp_path: Path, flags: tuple[str, ...], faults: list[str]) -> None:
    wheel = wheel_of(tmp_path, {"part/a.so": library(tmp_path, "-Wl,--enable-new-dtags", *flags)})
    if not faults:
        examine_wheel(wheel, platform=PLATFORM)
        return

    with pytest.raises(BuildError) as caught:
        examine_wheel(wheel, platform=PLATFORM)

    assert caught.value.message == (
        f"{wheel.name} looks for libraries at places of the machine that built it: {faults[0]}"
    )
    assert list(caught.value.details) == faults


def test_every_foreign_run_path_is_listed(tmp_path: Path) -> None:
    raw = library(tmp_path, "-Wl,--enable-new-dtags,-rpath,/one:/two")
    wheel = wheel_of(tmp_path, {"part/a.so": raw, "part/b.so": raw})

    with pytest.raises(BuildError) as caught:
        examine_wheel(wheel, platform=PLATFORM)

    assert len(caught.value.details) == 4


def test_libraries_that_the_wheel_brings_are_not_needed_from_elsewhere(tmp_path: Path) -> None:
    own = library(tmp_path, "-Wl,-soname,libown.so")
    (tmp_path / "libown.so").write_bytes(own)
    using = library(tmp_path, "-Wl,--no-as-needed", "-L.", "-lown", "-lm")

    facts = examine_wheel(wheel_of(tmp_path, {"part/lib/libown.so": own, "part/a.so": using}), platform=PLATFORM)

    assert "libm.so.6" in facts.libraries
    assert "libown.so" not in facts.libraries


def test_symbol_versions_are_compared_as_numbers_and_told_where_too_new(tmp_path: Path) -> None:
    raw = library(tmp_path, source='#include <stdio.h>\nint f(void) { return puts("x"); }')

    facts = examine_wheel(wheel_of(tmp_path, {"part/a.so": raw}), platform="manylinux_2_5_x86_64")
    older = raw.replace(b"GLIBC_2.2.5", b"GLIBC_2.17\0")
    newer = examine_wheel(wheel_of(tmp_path, {"part/a.so": raw, "part/b.so": older}), platform="manylinux_2_5_x86_64")

    assert set(facts.symbol_versions) == {"GLIBC"}
    if os.uname().machine == "x86_64":
        assert (facts.symbol_versions, facts.findings) == ({"GLIBC": "2.2.5"}, ())
        assert newer.symbol_versions == {"GLIBC": "2.17"}
        assert newer.findings == ("part/b.so asks for GLIBC_2.17, manylinux_2_5_x86_64 has no newer than GLIBC_2.5",)


def test_a_static_file_and_files_of_other_kinds_ask_for_nothing(tmp_path: Path) -> None:
    facts = examine_wheel(
        wheel_of(tmp_path, {"part/data.bin": b"\0ELF", "part/empty": b"", "part/a.txt": b"ELF"}), platform=PLATFORM
    )

    assert (facts.libraries, facts.symbol_versions, facts.findings) == ((), {}, ())


def test_a_garbled_library_is_refused(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, {"part/a.so": b"\x7fELF\x02\x01\x01 not really"})

    with pytest.raises(BuildError, match=r"has a native file that cannot be read: part/a\.so: "):
        examine_wheel(wheel, platform=PLATFORM)


def test_a_library_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    raw = library(tmp_path)
    wheel = wheel_of(tmp_path, {"part/a.so": raw[:200]})

    with pytest.raises(BuildError, match=r"has a native file that cannot be read: part/a\.so: "):
        examine_wheel(wheel, platform=PLATFORM)
