"""Distances between tensors, in each unit, and the gates."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from verify.numbers import EXACT, GATES, Difference, Gate, compare, gate_of  # noqa: E402 (after the question for torch)
from verify.ulps import ulp_distance  # noqa: E402

NAN, INFINITY = math.nan, math.inf
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OTHERS = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.uint64]
dtypes = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def of(*numbers: float, dtype: Any = torch.float32) -> Any:
    return torch.tensor(numbers, dtype=dtype)


def neighbour(tensor: Any, steps: int = 1) -> Any:
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.dtype.itemsize]
    return (tensor.view(bits) + steps).view(tensor.dtype)


# --- distances ---------------------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize(("steps", "kind"), [(1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (9, "9-16")])
def test_steps_are_counted_in_the_dtypes_own_numbers(dtype: Any, steps: int, kind: str) -> None:
    one = of(1.0, dtype=dtype)
    assert compare(neighbour(one, steps), one).ulps == {kind: 1}


@dtypes
def test_subnormal_numbers_are_steps_of_their_own(dtype: Any) -> None:
    smallest = neighbour(of(0.0, dtype=dtype))
    assert ulp_distance(smallest, -smallest).tolist() == [2]
    assert compare(smallest, of(0.0, dtype=dtype)).within


@dtypes
def test_zeros_of_both_signs_are_no_step_apart_but_not_the_same_bits(dtype: Any) -> None:
    found = compare(of(-0.0, dtype=dtype), of(0.0, dtype=dtype), gate=EXACT)
    assert (found.ulps, found.bit_equal, found.within) == ({"0": 1}, False, True)


def test_a_distance_beyond_64_bits_is_the_largest() -> None:
    limit = torch.finfo(torch.float64).max
    found = compare(of(limit, dtype=torch.float64), of(-limit, dtype=torch.float64))
    assert found.ulps == {f"{2**62 + 1}-{2**63 - 1}": 1}
    assert (found.maximum_absolute_error, found.relative_l2, found.cosine, found.within) == (None, None, -1.0, False)


@dtypes
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_distance_is_how_often_one_has_to_step(dtype: Any, data: st.DataObject) -> None:
    start = data.draw(st.floats(-1e4, 1e4, allow_subnormal=False))
    steps = data.draw(st.integers(1, 40))
    a = of(start, dtype=dtype)
    b = a
    for _ in range(steps):
        b = torch.nextafter(b, of(INFINITY, dtype=dtype))
    assert ulp_distance(a, b).tolist() == ulp_distance(b, a).tolist() == [steps]


@dtypes
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_element_is_in_one_kind_and_no_order_matters(dtype: Any, data: st.DataObject) -> None:
    bits = st.lists(st.integers(-(2**15), 2**15 - 1), min_size=8, max_size=8)
    a, b = (torch.tensor(data.draw(bits), dtype=torch.int16).view(torch.float16).to(dtype) for _ in range(2))
    one, other = compare(a, b), compare(b, a)
    assert sum(one.ulps.values()) == len(a)
    assert one.ulps == other.ulps
    assert one.maximum_absolute_error == other.maximum_absolute_error
    assert one.nonfinite_equal == other.nonfinite_equal
    assert one.bit_equal == other.bit_equal


@settings(deadline=None)
@given(st.lists(st.floats(width=32), max_size=20))
def test_what_is_the_same_is_bit_equal_and_within_any_gate(numbers: list[float]) -> None:
    found = compare(of(*numbers), of(*numbers), gate=EXACT)
    assert found.bit_equal
    assert found.within
    assert found.maximum_absolute_error == found.relative_l2 == 0.0
    assert str(found) == f"float32 ({len(numbers)}): bit-equal"


# --- errors ------------------------------------------------------------------------------------------------------


def test_errors_have_their_units() -> None:
    found = compare(of(3.0, 4.5), of(3.0, 4.0))
    assert found.maximum_absolute_error == 0.5
    assert found.relative_l2 == 0.5 / 5
    assert found.cosine == pytest.approx((9 + 18) / (math.sqrt(9 + 20.25) * 5))
    assert found.worst == (1,)


def test_errors_near_the_limits_of_float64_have_values() -> None:
    found = compare(of(1.5e308, 0.0, dtype=torch.float64), of(1e308, 0.0, dtype=torch.float64))
    assert (found.relative_l2, found.cosine) == (0.5, 1.0)
    tiny = compare(of(3e-320, dtype=torch.float64), of(2e-320, dtype=torch.float64))
    assert tiny.relative_l2 == pytest.approx(0.5, rel=1e-3)


def test_an_error_against_nothing_has_no_relative_size() -> None:
    found = compare(of(1e-3, 0.0), of(0.0, 0.0))
    assert (found.maximum_absolute_error, found.relative_l2, found.cosine) == (pytest.approx(1e-3), None, None)
    assert (found.within, found.beyond) == (False, 1)


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
def test_integers_and_booleans_are_exact(dtype: Any) -> None:
    assert gate_of(dtype) is EXACT
    found = compare(of(1, 0, 1, dtype=dtype), of(1, 1, 1, dtype=dtype))
    assert (found.ulps, found.within, found.beyond, found.worst) == ({"0": 2, "1": 1}, False, 1, (1,))
    assert compare(of(0, 1, dtype=dtype), of(0, 1, dtype=dtype)).bit_equal


def test_large_integers_differ_though_float64_cannot_tell() -> None:
    found = compare(of(2**62 + 1, dtype=torch.int64), of(2**62, dtype=torch.int64))
    assert (found.ulps, found.bit_equal, found.within) == ({"1": 1}, False, False)
    found = compare(of(-(2**63), dtype=torch.int64), of(2**63 - 1, dtype=torch.int64))
    assert found.ulps == {f"{2**62 + 1}-{2**63 - 1}": 1}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers_are_compared_by_their_parts(dtype: Any) -> None:
    e = torch.tensor([1 + 1j, 2 - 1j], dtype=dtype)
    found = compare(e.conj().resolve_conj(), e.conj())
    assert found.bit_equal
    found = compare(e + torch.tensor([0, 0.5j]), e)
    assert (found.maximum_absolute_error, found.worst, found.ulps["0"], found.within) == (0.5, (1,), 3, False)


# --- what is not finite ------------------------------------------------------------------------------------------


@dtypes
def test_nan_and_infinity_at_the_same_places_are_equal(dtype: Any) -> None:
    tensor = of(NAN, INFINITY, -INFINITY, 1.0, dtype=dtype)
    found = compare(tensor.clone(), tensor)
    assert (found.nonfinite_equal, found.bit_equal, found.within) == (True, True, True)
    assert found.ulps == {"0": 1, "nonfinite": 3}


@pytest.mark.parametrize(
    "actual",
    [(1.0, INFINITY), (NAN, 1.0), (NAN, -INFINITY), (INFINITY, INFINITY), (NAN, NAN)],
    ids=["no nan", "no infinity", "other sign", "infinity for nan", "nan for infinity"],
)
@dtypes
def test_nan_and_infinity_at_other_places_are_a_difference(dtype: Any, actual: tuple[float, ...]) -> None:
    found = compare(of(*actual, dtype=dtype), of(NAN, INFINITY, dtype=dtype))
    assert (found.nonfinite_equal, found.bit_equal, found.within, found.beyond) == (False, False, False, 1)
    assert sum(found.ulps.values()) == 2


def test_a_nan_of_other_bits_is_a_nan() -> None:
    strange = torch.tensor([-0x3FFFFF], dtype=torch.int32).view(torch.float32)
    assert compare(strange, of(NAN)).bit_equal


# --- shapes, strides, other tensors ------------------------------------------------------------------------------


def test_empty_and_single_tensors() -> None:
    empty = compare(torch.empty(0, 3), torch.empty(0, 3))
    assert (empty.within, empty.bit_equal, empty.ulps, empty.cosine, empty.worst) == (True, True, {}, None, None)
    single = compare(torch.tensor(1.5), torch.tensor(1.0))
    assert (single.shape, single.worst, single.within) == ((), (), False)


def test_strides_make_no_difference() -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    view = tensor.permute(2, 0, 1)
    assert compare(view, view.contiguous()).bit_equal
    changed = view.contiguous()
    changed[3, 1, 2] += 1
    assert compare(view, changed).worst == (3, 1, 2)
    assert compare(torch.tensor(2.0).expand(4, 4), torch.full((4, 4), 2.0)).bit_equal


def test_another_shape_is_a_difference_that_says_so() -> None:
    found = compare(torch.zeros(3, 1), torch.zeros(3))
    assert str(found) == "float32 (3, 1): shape (3, 1), expected (3,)"
    assert (found.within, found.bit_equal, found.ulps, found.maximum_absolute_error) == (False, False, {}, None)


def test_another_dtype_is_a_difference_that_says_so_with_its_errors() -> None:
    found = compare(of(1.5), of(1.0, dtype=torch.bfloat16))
    assert str(found) == "float32 (1): dtype float32, expected bfloat16"
    assert (found.within, found.maximum_absolute_error, found.gate) == (False, 0.5, GATES["bfloat16"])


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_tensors_are_compared_as_dense_ones() -> None:
    assert compare(torch.eye(3).to_sparse(), torch.eye(3)).bit_equal


def test_gradients_are_not_touched() -> None:
    leaf = torch.ones(3, requires_grad=True)
    assert compare(leaf * 2, leaf + 1).bit_equal


def test_what_has_no_numbers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^expected a tensor to compare, got float$"):
        compare(1.0, torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"^a Tensor on meta has no values to compare$"):
        compare(torch.empty(1, device="meta"), torch.tensor([1.0]))
    with pytest.raises(TypeError, match=r"^'float33' is not a dtype of torch$"):
        gate_of("float33")


# --- gates -------------------------------------------------------------------------------------------------------


def test_gates_by_name_and_by_dtype() -> None:
    assert gate_of("bfloat16") is gate_of(torch.bfloat16) is gate_of("torch.bfloat16") is GATES["bfloat16"]
    assert gate_of(torch.complex64) is GATES["float32"]
    assert gate_of(torch.float8_e5m2) == Gate(relative_l2=0.25, ulps=4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_another_order_of_a_sum_is_within(dtype: Any) -> None:
    terms = torch.rand(64, 65536, generator=torch.Generator().manual_seed(1), dtype=dtype)
    found = compare(terms.reshape(64, 256, 256).sum(1).sum(1), terms.sum(1))
    assert found.within
    assert not found.bit_equal


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_one_skipped_rounding_is_within_and_an_axis_is_not(dtype: Any) -> None:
    x = torch.rand(64, 64, generator=torch.Generator().manual_seed(1)).to(dtype)
    kept = (x.float() * 1.7 + x.float().exp()).to(dtype)
    rounded = (x.float() * 1.7).to(dtype) + x.exp()
    found = compare(kept, rounded)
    assert found.within
    assert not found.bit_equal
    assert not compare(x.sum(0), x.sum(1)).within


def test_one_wrong_element_among_many_is_beyond() -> None:
    expected = torch.rand(1000, 1000, generator=torch.Generator().manual_seed(1))
    actual = expected.clone()
    actual[700, 3] += 1e-4
    found = compare(actual, expected)
    assert found.relative_l2 is not None
    assert found.relative_l2 < found.gate.relative_l2
    assert (found.within, found.beyond, found.worst) == (False, 1, (700, 3))


@pytest.mark.parametrize(("share", "within"), [(2.0**-8, False), (2.0**-18, False), (2.0**-20, True), (2.0**-30, True)])
def test_a_difference_common_to_all_elements_is_beyond_by_its_size(share: float, within: bool) -> None:
    expected = torch.rand(100, generator=torch.Generator().manual_seed(1)) + 1
    assert compare(expected * (1 + share), expected).within is within


# --- the row -----------------------------------------------------------------------------------------------------


def test_a_row_is_json_without_nan() -> None:
    found: Difference = compare(of(NAN, 1.0), of(NAN, 0.0))
    row = found.row(graph="softmax", mode="recorded", value="y", reference="eager")
    assert json.loads(json.dumps(row, allow_nan=False)) == {
        "graph": "softmax",
        "mode": "recorded",
        "value": "y",
        "dtype": "float32",
        "shape": [2],
        "reference": "eager",
        "maximum_absolute_error": 1.0,
        "relative_l2": None,
        "cosine": None,
        "ulps": {f"{2**29 + 1}-{2**30}": 1, "nonfinite": 1},
        "within": False,
    }


def test_a_line_says_what_differs() -> None:
    assert str(compare(of(1.0, NAN), of(1.5, 2.0))) == (
        "float32 (2): max abs 0.5, relative L2 0.333, >2^21 ULP in 1 of 2, 1 not finite, "
        "NaN or infinity at other places, beyond the gate"
    )
    assert sys.float_info.epsilon * 16 == GATES["float64"].relative_l2


@pytest.mark.parametrize(
    ("ulps", "told"),
    [
        pytest.param({f"{2**25 + 1}-{2**26}": 256}, ">2^25 ULP in all 256", id="all"),
        pytest.param({f"{2**22 + 1}-{2**23}": 1}, ">2^22 ULP", id="one element"),
        pytest.param({"0": 900, "1": 90, "5-8": 10}, ">4 ULP in 10 of 1000", id="few"),
        pytest.param({"0": 3, "1": 1}, "1 ULP in 1 of 4", id="a single step"),
        pytest.param({"0": 3, "nonfinite": 1}, "0 ULP in 3 of 4, 1 not finite", id="a number lost"),
        pytest.param({"nonfinite": 2}, "2 not finite", id="all lost"),
        pytest.param({}, "no elements", id="nothing"),
    ],
)
def test_a_line_says_the_largest_distance(ulps: dict[str, int], told: str) -> None:
    said = str(replace(compare(of(1.0), of(2.0)), ulps=ulps))

    assert said == f"float32 (1): max abs 1, relative L2 0.5, {told}, beyond the gate"
