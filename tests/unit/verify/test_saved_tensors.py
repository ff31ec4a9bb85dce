"""Tensors that runs have saved: what is read from the files, and what is said of two runs."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verify.saved_tensors import compare_runs, read_values

torch: Any = pytest.importorskip("torch")

CHECKOUT = Path(__file__).parents[3]


def npy(descr: str, shape: tuple[int, ...], body: bytes, *, fortran: bool = False, version: int = 1) -> bytes:
    header = (repr({"descr": descr, "fortran_order": fortran, "shape": shape}) + "\n").encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + body


def safetensors(header: dict[str, Any], body: bytes) -> bytes:
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + body


def save(run: Path, **files: object) -> Path:
    run.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        place = run / name.replace("__", ".")
        if isinstance(value, bytes):
            place.write_bytes(value)
        else:
            torch.save(value, place)
    return run


# --- files -------------------------------------------------------------------------------------------------------


def test_tensors_are_named_by_their_way_through_the_containers(tmp_path: Path) -> None:
    one = torch.ones(1)
    nested = {"model": {"0.weight": one, "a/b": one, "a": {"b": one}}, "state": [one, (one, {7: one})], "step": 3}
    torch.save(nested, tmp_path / "a.pt")

    assert [name for name, _ in read_values(tmp_path / "a.pt")] == [
        "model/0.weight", "model/a/b", "model/a/b #2", "state[0]", "state[1][0]", "state[1][1][7]", "step"
    ]  # fmt: skip


def test_a_file_may_hold_one_tensor(tmp_path: Path) -> None:
    torch.save(torch.ones(2), tmp_path / "a.pt")

    assert [name for name, _ in read_values(tmp_path / "a.pt")] == [""]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("descr", "shape", "fortran", "body", "expected"),
    [
        pytest.param("<f4", (2, 2), False, struct.pack("<4f", 1, 2, 3, 4), [[1, 2], [3, 4]], id="C order"),
        pytest.param("<f4", (2, 2), True, struct.pack("<4f", 1, 2, 3, 4), [[1, 3], [2, 4]], id="Fortran order"),
        pytest.param(">i8", (2,), False, struct.pack(">2q", 1, -2), [1, -2], id="big-endian"),
        pytest.param(">c8", (1,), False, struct.pack(">2f", 1, 2), [1 + 2j], id="complex, big-endian"),
        pytest.param("|b1", (), False, b"\x01", True, id="0-d"),
        pytest.param("<f8", (0, 3), False, b"", [], id="empty"),
    ],
)
def test_npy(
    tmp_path: Path, version: int, descr: str, shape: tuple[int, ...], fortran: bool, body: bytes, expected: object
) -> None:
    (tmp_path / "a.npy").write_bytes(npy(descr, shape, body, fortran=fortran, version=version))
    ((name, tensor),) = read_values(tmp_path / "a.npy")

    assert (name, tensor.tolist(), tuple(tensor.shape), tensor.is_contiguous()) == ("", expected, shape, True)


def test_safetensors(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "b": {"dtype": "I64", "shape": [], "data_offsets": [4, 12]},
        "c": {"dtype": "F4_NEW", "shape": [1], "data_offsets": [12, 13]},
    }
    body = struct.pack("<2H", 0x3F80, 0x4000) + struct.pack("<q", 5) + b"x"
    (tmp_path / "a.safetensors").write_bytes(safetensors(header, body))
    found = dict(read_values(tmp_path / "a.safetensors"))

    assert (found["a"].tolist(), found["a"].dtype, found["b"].tolist()) == ([1, 2], torch.bfloat16, 5)
    assert (found["c"].dtype, found["c"].raw) == ("F4_NEW", b"x")


class Evil:
    """Would touch a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.place,))


def test_a_pickle_that_would_run_code_is_refused_and_not_run(tmp_path: Path) -> None:
    run = save(tmp_path / "run", a__pt=pickle.dumps(Evil(tmp_path / "touched"), protocol=2))
    torch.save({"x": Evil(tmp_path / "touched")}, run / "b.pt")
    faults = compare_runs([run])["faults"]

    assert [fault["file"] for fault in faults] == ["a.pt", "b.pt"]
    assert all(fault["why"].startswith("torch.load(weights_only=True) refuses it: ") for fault in faults)
    assert not (tmp_path / "touched").exists()


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        pytest.param("a.npy", b"", "it is not a .npy file", id="empty npy"),
        pytest.param("a.npy", npy("<f4", (2,), b"1234"), "it has 4 bytes of elements, expected 8", id="cut npy"),
        pytest.param(
            "a.npy", npy("|O", (1,), pickle.dumps([1])), "its elements are of type '|O', expected plain numbers",
            id="pickled objects",
        ),
        pytest.param(
            "a.npy", b"\x93NUMPY\1\0\4\0f(x)", "its header is not one of a .npy file", id="a header that is code"
        ),
        pytest.param("a.npy", npy("<f4", (-1,), b""), "its header is not one of a .npy file", id="negative size"),
        pytest.param(
            "a.safetensors", b"\xff" * 20, "it is not a .safetensors file, or not a whole one", id="no safetensors"
        ),
        pytest.param("a.safetensors", safetensors({"a": GOOD}, b"123"), "it ends within 'a'", id="cut safetensors"),
        pytest.param(
            "a.safetensors", safetensors({"a": {**GOOD, "shape": [3]}}, bytes(8)),
            "it has 8 bytes of elements, expected 12", id="shape that does not fit",
        ),
        pytest.param(
            "a.safetensors", safetensors({"a": {"dtype": "F32"}}, b""), "what its header says of 'a' is not whole",
            id="header that is not whole",
        ),
        pytest.param(
            "a.safetensors", safetensors({"a": {**GOOD, "data_offsets": [8, 0]}}, bytes(8)),
            "what its header says of 'a' cannot be", id="offsets that run backwards",
        ),
        pytest.param(
            "a.safetensors", (2).to_bytes(8, "little") + b"[]", "its header is not a JSON object: "
            "'list' object has no attribute 'items'", id="header that is a list",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_a_fault_beside_the_others(
    tmp_path: Path, name: str, raw: bytes, why: str
) -> None:
    run = save(tmp_path / "run", b__pt=torch.ones(2))
    (run / name).write_bytes(raw)
    document = compare_runs([run])

    assert document["faults"] == [{"run": 1, "file": name, "why": why}]
    assert [one["file"] for one in document["runs"][0]["tensors"]] == ["b.pt"]


# --- what is compared --------------------------------------------------------------------------------------------


def test_the_hash_is_over_the_elements_in_c_order(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    run = save(tmp_path / "run", a__pt={"t": base.t(), "part": base[:, 1], "neg": torch._neg_view(base[0])})
    told = {one["name"]: one for one in compare_runs([run])["runs"][0]["tensors"]}

    def digest(*values: float) -> str:
        return hashlib.sha256(struct.pack(f"<{len(values)}f", *values)).hexdigest()

    assert (told["t"]["shape"], told["t"]["sha256"]) == ([3, 2], digest(0, 3, 1, 4, 2, 5))
    assert (told["part"]["dtype"], told["part"]["sha256"]) == ("float32", digest(1, 4))
    assert told["neg"]["sha256"] == digest(-0.0, -1, -2)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_no_plain_tensor_is_left_out_with_the_reason(tmp_path: Path) -> None:
    run = save(
        tmp_path / "run",
        a__pt={
            "n": 1,
            "s": torch.eye(2).to_sparse(),
            "m": torch.empty(2, device="meta"),
            "q": torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
        },
    )

    assert [(one["name"], one["why"]) for one in compare_runs([run])["runs"][0]["left_out"]] == [
        ("n", "of type int, not a tensor"),
        ("s", "a tensor of layout sparse_coo, not of plain elements"),
        ("m", "a tensor without data"),
        ("q", "a quantized tensor"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "differing", "error"),
    [
        pytest.param([1.0, 2.0], [1.0, 2.5], 1, 0.5, id="values"),
        pytest.param([0.0, 1.0], [-0.0, 1.0], 1, 0.0, id="the sign of a zero"),
        pytest.param([1.0], [float("nan")], 1, None, id="NaN"),
        pytest.param([float("inf")], [float("-inf")], 1, None, id="infinities"),
        pytest.param([True, False], [True, True], 1, 1.0, id="bool"),
        pytest.param([1, 2], [3, 2], 1, 2.0, id="integers"),
        pytest.param([1j], [1 + 0j], 1, 2**0.5, id="complex"),
    ],
)
def test_differences_are_measured(
    tmp_path: Path, first: list[Any], second: list[Any], differing: int, error: float | None
) -> None:
    runs = [save(tmp_path / str(number), a__pt={"x": torch.tensor(one)}) for number, one in enumerate((first, second))]
    (told,) = compare_runs(runs)["differences"]

    assert told == {
        "file": "a.pt", "name": "x", "run": 2, "against": 1, "elements": len(first), "differing": differing,
        "maximum_absolute_error": pytest.approx(error) if error else error,
    }  # fmt: skip


def test_each_run_is_measured_against_the_first_that_has_the_tensor(tmp_path: Path) -> None:
    contents = [{"x": 1.0}, {"x": 1.0, "y": 1.0}, {"x": 3.0, "y": 1.5}]
    runs = [
        save(tmp_path / str(number), a__pt={name: torch.tensor(value) for name, value in one.items()})
        for number, one in enumerate(contents)
    ]

    assert [
        (one["name"], one["run"], one["against"], one["maximum_absolute_error"])
        for one in compare_runs(runs)["differences"]
    ] == [("x", 3, 1, 2.0), ("y", 3, 2, 0.5)]


def test_another_shape_or_type_has_no_difference_to_measure(tmp_path: Path) -> None:
    first = save(tmp_path / "1", a__pt={"x": torch.ones(2), "y": torch.ones(2)})
    second = save(tmp_path / "2", a__pt={"x": torch.ones(1, 2), "y": torch.ones(2, dtype=torch.float64)})

    assert compare_runs([first, second])["differences"] == []


def test_as_a_program_it_compares_single_files_too(tmp_path: Path) -> None:
    run = save(tmp_path, a__npy=npy("<f4", (1,), struct.pack("<f", 1)), b__npy=npy("<f4", (1,), struct.pack("<f", 2)))
    (tmp_path / "b").mkdir()
    (run / "b.npy").rename(tmp_path / "b" / "a.npy")
    words = [sys.executable, "-m", "verify.saved_tensors", tmp_path / "result.json", run / "a.npy", run / "b" / "a.npy"]
    subprocess.run(words, cwd=CHECKOUT, check=True)

    told = json.loads((tmp_path / "result.json").read_text())

    assert [(one["file"], one["maximum_absolute_error"]) for one in told["differences"]] == [("a.npy", 1.0)]
