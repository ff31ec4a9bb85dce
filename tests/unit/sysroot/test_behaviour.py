"""What the stand-in runtime does, called as torch_npu calls it."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from toolkit.sysroot import Sysroot

INVALID_PARAM, FAILURE = 100000, 500001


@pytest.fixture
def acl(sysroot: Sysroot) -> ctypes.CDLL:
    return ctypes.CDLL(str(sysroot.root / "lib64/libascendcl.so"))


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """Name the launch log and return what reads it."""
    log = tmp_path / "launches.jsonl"
    monkeypatch.setenv("TOOLKIT_LAUNCH_LOG", str(log))
    return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def allocate(acl: ctypes.CDLL, size: int) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0) == 0
    return pointer


def launch(acl: ctypes.CDLL, words: list[int], *, function: ctypes.c_void_p | None = None, blocks: int = 1) -> int:
    array = (ctypes.c_uint64 * len(words))(*words)
    size = ctypes.c_size_t(ctypes.sizeof(array))
    status: int = acl.aclrtLaunchKernelWithHostArgs(function, blocks, None, None, array, size, None, ctypes.c_size_t(0))
    return status


def test_the_device_is_an_ascend_910b3(acl: ctypes.CDLL) -> None:
    acl.aclrtGetSocName.restype = ctypes.c_char_p
    count, cores = ctypes.c_uint32(), ctypes.c_int64()
    assert acl.aclrtGetSocName() == b"Ascend910B3"
    assert (acl.aclrtGetDeviceCount(ctypes.byref(count)), count.value) == (0, 1)
    assert (acl.aclrtGetDeviceInfo(0, 201, ctypes.byref(cores)), cores.value) == (0, 40)


def test_the_device_is_remembered_per_thread(acl: ctypes.CDLL) -> None:
    def device() -> int:
        found = ctypes.c_int32(-1)
        acl.aclrtGetDevice(ctypes.byref(found))
        return found.value

    acl.aclrtSetDevice(3)
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(device).result()
    assert (device(), elsewhere) == (3, 0)
    acl.aclrtSetDevice(0)


def test_device_memory_is_aligned_host_memory(acl: ctypes.CDLL) -> None:
    pointer = allocate(acl, 1000)
    assert pointer.value is not None
    assert pointer.value % 512 == 0
    size = ctypes.c_size_t(5)
    assert acl.aclrtMemcpy(pointer, ctypes.c_size_t(1000), b"hello", size, 1) == 0
    assert ctypes.string_at(pointer.value, 5) == b"hello"
    assert acl.aclrtMemset(pointer, ctypes.c_size_t(1000), 7, size) == 0
    assert ctypes.string_at(pointer.value, 5) == b"\x07" * 5
    assert acl.aclrtFree(pointer) == 0


def test_a_copy_past_the_end_is_refused(acl: ctypes.CDLL) -> None:
    pointer = allocate(acl, 8)
    assert acl.aclrtMemcpy(pointer, ctypes.c_size_t(4), b"too long", ctypes.c_size_t(8), 1) == INVALID_PARAM
    acl.aclrtFree(pointer)


def test_free_memory_shrinks_by_what_is_allocated(acl: ctypes.CDLL) -> None:
    def free() -> int:
        found, total = ctypes.c_size_t(), ctypes.c_size_t()
        acl.aclrtGetMemInfo(1, ctypes.byref(found), ctypes.byref(total))
        return found.value

    before = free()
    pointer = allocate(acl, 4096)
    assert before - free() == 4096
    acl.aclrtFree(pointer)
    assert free() == before


def test_reserved_addresses_become_device_memory_when_mapped(acl: ctypes.CDLL) -> None:
    pointer, handle = ctypes.c_void_p(), ctypes.c_void_p()
    size, none = ctypes.c_size_t(1 << 21), ctypes.c_uint64(0)
    attributes = (ctypes.c_uint32 * 7)()
    assert acl.aclrtReserveMemAddress(ctypes.byref(pointer), size, ctypes.c_size_t(0), None, none) == 0
    assert acl.aclrtMallocPhysical(ctypes.byref(handle), size, None, none) == 0
    assert acl.aclrtMapMem(pointer, size, ctypes.c_size_t(0), handle, none) == 0
    acl.aclrtPointerGetAttributes(pointer, attributes)
    assert attributes[1] == 1
    assert acl.aclrtUnmapMem(pointer) == 0
    acl.aclrtPointerGetAttributes(pointer, attributes)
    assert attributes[1] == 2
    assert acl.aclrtReleaseMemAddress(pointer) == 0
    assert acl.aclrtReleaseMemAddress(pointer) == INVALID_PARAM


def test_events_are_complete_and_keep_time(acl: ctypes.CDLL) -> None:
    start, end, status, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(-1), ctypes.c_float(-1)
    for event in (start, end):
        assert acl.aclrtCreateEventExWithFlag(ctypes.byref(event), 0) == 0
        assert acl.aclrtRecordEvent(event, None) == 0
    assert (acl.aclrtQueryEventStatus(start, ctypes.byref(status)), status.value) == (0, 1)
    assert acl.aclrtEventElapsedTime(ctypes.byref(elapsed), start, end) == 0
    assert elapsed.value >= 0


def test_nothing_is_recorded_unless_a_log_is_named(acl: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLKIT_LAUNCH_LOG", raising=False)
    assert launch(acl, [1, 2]) == 0


def test_a_launch_records_name_words_and_the_allocations_that_they_point_into(
    acl: ctypes.CDLL, records: Callable[[], list[dict[str, Any]]]
) -> None:
    pointer, function = allocate(acl, 1024), ctypes.c_void_p()
    base = pointer.value or 0
    acl.aclrtBinaryGetFunction(None, b'dvm"aiv', ctypes.byref(function))
    assert launch(acl, [0, base + 24, base + 1024], function=function, blocks=40) == 0
    (record,) = records()
    assert {key: record[key] for key in ("kind", "function", "blocks", "args", "allocations")} == {
        "kind": "launch",
        "function": 'dvm"aiv',
        "blocks": 40,
        "args": ["0", f"{base + 24:x}", f"{base + 1024:x}"],
        "allocations": [{"word": 1, "base": f"{base:x}", "size": 1024, "offset": 24}],
    }
    acl.aclrtFree(pointer)


def test_fills_and_copies_are_recorded(acl: ctypes.CDLL, records: Callable[[], list[dict[str, Any]]]) -> None:
    pointer = allocate(acl, 64)
    acl.aclrtMemsetAsync(pointer, ctypes.c_size_t(64), 0, ctypes.c_size_t(64), None)
    acl.aclrtMemcpy(pointer, ctypes.c_size_t(64), b"hello", ctypes.c_size_t(5), 1)
    fill, copy = records()
    assert (fill["kind"], fill["address"], fill["size"], fill["value"]) == ("memset", f"{pointer.value:x}", 64, 0)
    assert (copy["kind"], copy["address"], copy["size"]) == ("memcpy", f"{pointer.value:x}", 5)
    assert copy["n"] == fill["n"] + 1
    acl.aclrtFree(pointer)


def test_a_launch_that_cannot_be_recorded_fails(
    acl: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLKIT_LAUNCH_LOG", str(tmp_path / "missing" / "log"))
    assert launch(acl, [1]) == FAILURE
    assert "host sysroot: cannot write" in capfd.readouterr().err


def test_threads_never_mix_their_lines(acl: ctypes.CDLL, records: Callable[[], list[dict[str, Any]]]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda number: launch(acl, [number] * 200), range(200))) == {0}
    found = records()
    assert sorted(int(record["args"][0], 16) for record in found) == list(range(200))
    numbers = [record["n"] for record in found]
    assert numbers == sorted(set(numbers))


# Python warns of forks beside threads; here that is the very thing under test.
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_records_too(acl: ctypes.CDLL, records: Callable[[], list[dict[str, Any]]]) -> None:
    child = os.fork()
    if child == 0:
        os._exit(launch(acl, [1]))
    assert os.waitpid(child, 0)[1] == 0
    assert launch(acl, [2]) == 0
    assert [record["pid"] for record in records()] == [child, os.getpid()]
