"""Libraries read as the dynamic loader does, held against what binutils and pyelftools say of the same files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from toolkit.doctor.elf import ElfError, open_library
from toolkit.doctor.loader import read_cache

SOURCE = """
int missing(int); __attribute__((weak)) int optional(void); int printf(const char*, ...);
int exported(void) { return missing(1) + (optional ? optional() : 0) + printf("a"); }
int second(void) { return 2; }
static int hidden(void) { return 3; }
int third(void) { return hidden(); }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return compiled(tmp_path / "it.so")


def compiled(path: Path, *options: str) -> Path:
    words: list[str | Path] = ["cc", "-shared", "-fPIC", "-O1", "-xc", "-", "-o", path, *options]
    subprocess.run(words, input=SOURCE.encode(), check=True)
    return path


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_names_are_found_by_either_kind_of_hash_table(tmp_path: Path, style: str) -> None:
    library = open_library(compiled(tmp_path / "it.so", f"-Wl,--hash-style={style}"))

    found = [name for name in ("exported", "second", "third", "hidden", "missing", "printf") if library.defines(name)]
    assert found == ["exported", "second", "third"]
    assert library.undefined() == ["missing"]


def test_what_it_needs_and_where_it_looks(tmp_path: Path) -> None:
    folder = ["-Wl,-soname,libit.so.1", "-Wl,-rpath,$ORIGIN/lib:/opt/lib"]
    new = open_library(compiled(tmp_path / "new.so", *folder, "-Wl,--enable-new-dtags"))
    old = open_library(compiled(tmp_path / "old.so", *folder, "-Wl,--disable-new-dtags"))

    assert (new.soname, new.needed) == ("libit.so.1", ("libc.so.6",))
    assert (new.run_path, new.old_run_path) == (("$ORIGIN/lib", "/opt/lib"), ())
    assert (old.run_path, old.old_run_path) == ((), ("$ORIGIN/lib", "/opt/lib"))


def test_the_interpreters_own_library_reads_as_pyelftools_has_it() -> None:
    """A large library made by others: all its names are found, and none that it lacks."""
    path = next(path for path in Path(sys.prefix).rglob("*.so") if 100_000 < path.stat().st_size < 1_000_000)
    with path.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        symbols = [symbol for symbol in table.iter_symbols() if symbol.name]
        defined = [symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"]
        undefined = {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"}

    library = open_library(path)

    assert [name for name in defined if not library.defines(name)] == []
    assert [name for name in undefined if library.defines(name)] == []
    assert set(library.undefined()) <= undefined


@pytest.mark.parametrize("kept", [0, 10, 63])
def test_a_file_that_is_too_short(library: Path, kept: int) -> None:
    library.write_bytes(library.read_bytes()[:kept])

    with pytest.raises(ElfError, match=f"^{library} is too short to be a library$"):
        open_library(library)


@pytest.mark.parametrize("kept", [64, 200, 600, 5000])
def test_a_library_that_is_cut_short(library: Path, kept: int) -> None:
    library.write_bytes(library.read_bytes()[:kept])

    with pytest.raises(ElfError, match=f"^{library} is (no whole 64-bit library|cut short)$"):
        open_library(library)


def test_a_file_that_is_none(library: Path) -> None:
    library.write_bytes(b"!<arch>\n" * 100)

    with pytest.raises(ElfError, match=f"^{library} does not begin as a 64-bit library does$"):
        open_library(library)


def test_the_loaders_cache_is_read_as_ldconfig_prints_it() -> None:
    printed = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    listed = [line.split() for line in printed.splitlines() if " => " in line]

    first: dict[str, str] = {}
    for words in listed:
        first.setdefault(words[0], words[-1])
    assert read_cache(Path("/")) == first


def test_a_cache_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert read_cache(tmp_path) == {}

    (tmp_path / "etc/ld.so.cache").write_bytes(b"glibc-ld.so.cache1.1\xff\xff")
    assert read_cache(tmp_path) == {}
