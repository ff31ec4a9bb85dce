"""Attention: queries of many heads, keys and values of fewer."""

from collections.abc import Sequence


def softmax_shape(query: Sequence[int], key: Sequence[int], layout: str = "BSND") -> tuple[int, ...]:
    """Return the shape of the softmax's sums; each head of the keys serves equally many of the queries."""
    if layout == "BSND":
        batch, length, heads, _ = query
        return (batch, key[2], length, heads / key[2])
    if layout == "TND":
        tokens, heads, _ = query
        return (key[1], tokens, heads / key[1])
    raise ValueError(f"the layout is {layout!r}, expected BSND or TND")
