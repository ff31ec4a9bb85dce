"""The project's own tests, run against a build of it."""

from sample_ops.ops.attention import softmax_shape


def test_the_sums_of_one_head():
    assert softmax_shape((2, 5, 4, 64), (2, 5, 4, 64)) == (2, 4, 5, 1)
