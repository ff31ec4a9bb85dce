"""The project's own tests, run against a build of it."""

from sample_npu import _C
from sample_npu._generated_operators import OPERATORS
from sample_npu.core import is_error


def test_a_sum_out_of_bounds_is_an_error():
    assert is_error(1_000_000, 1)
    assert not is_error(1_000_000, -1)


def test_every_operator_is_bound():
    assert all(hasattr(_C, name) for name in OPERATORS)
