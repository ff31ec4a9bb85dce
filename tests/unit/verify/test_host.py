from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from toolkit.process import compose_env, run
from verify.host import forget_allocator_keys, is_host_sysroot

# The set as torch 2.12 declares it; 2.13 and later export the function from libc10 instead of keeping it inline.
KEYS = """
#include <string>
#include <unordered_set>
namespace c10 { namespace CachingAllocator {
struct AcceleratorAllocatorConfig {
  static std::unordered_set<std::string>& getMutableKeys() {
    static std::unordered_set<std::string> keys{"one", "two", "pinned_reserve_segment_size_mb"};
    return keys;
  }
};
}}
using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
extern "C" unsigned long count() { return Config::getMutableKeys().size(); }
extern "C" bool has(const char* key) { return Config::getMutableKeys().count(key) != 0; }
extern "C" bool add(const char* key) { return Config::getMutableKeys().insert(key).second; }
"""

FORGET = """
import ctypes, sys
from verify.host import forget_allocator_keys
keys = ctypes.CDLL(sys.argv[1])
keys.has.restype = keys.add.restype = ctypes.c_bool
print(keys.count())
print(forget_allocator_keys([sys.argv[1]]))
print(keys.count(), keys.has(b"two"))
print(keys.add(b"pinned_reserve_segment_size_mb"), keys.add(b"two"), keys.add(b"two"))
print(keys.count())
"""


@pytest.fixture(params=["function", "object"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A library that exports the set's function, or only the object inside it."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "keys.cpp").write_text(KEYS)
    script = "{ local: *getMutableKeysB5cxx11Ev; };" if request.param == "object" else "{ global: *; };"
    (tmp_path / "exports").write_text(script)
    words = ["c++", "-shared", "-fPIC", "-Wl,--version-script=exports", "-o", f"lib{request.param}.so", "keys.cpp"]
    run(words, cwd=tmp_path, env=compose_env(os.environ))
    return tmp_path / f"lib{request.param}.so"


def test_the_registered_keys_are_forgotten_and_can_be_registered_again(library: Path) -> None:
    root = Path(__file__).parents[3]
    # A process each: the loader keeps one such object for all libraries of a process.
    shown = run([sys.executable, "-c", FORGET, library], cwd=root, env=compose_env(os.environ))
    assert shown.stdout.splitlines() == ["3", "3", "0 False", "True True False", "2"]


def test_a_torch_without_the_set_is_reported() -> None:
    with pytest.raises(LookupError, match="no library of torch exports"):
        forget_allocator_keys([])


def test_a_host_sysroot_is_told_by_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    assert not is_host_sysroot()
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert not is_host_sysroot()
    (tmp_path / "toolkit-sysroot.json").write_text("{}")
    assert is_host_sysroot()
