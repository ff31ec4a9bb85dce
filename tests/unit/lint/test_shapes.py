"""True divisions in the sizes of Meta and fake functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample

FLOAT = "float-shape-in-fake"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            @impl(get_as_library(), "sparse_attention", "Meta")
            def _(q, kv):
                lse = torch.empty([q.shape[0], kv.shape[2], q.shape[1], q.shape[2] / kv.shape[2]], device="meta")
                return torch.empty_like(q), lse
            """, [(3, FLOAT)], id="in a size"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, kv):
                groups = q.shape[2] / kv.shape[2]
                return q.new_empty((q.shape[0], groups))
            """, [(3, FLOAT)], id="through a name"),
        pytest.param("""
            @op.register_fake
            def _(q, kv, layout):
                if layout == "BSND":
                    shape = [q.shape[0], q.shape[2] / kv.shape[2]]
                else:
                    shape = [q.shape[1] / kv.shape[1]]
                return torch.empty(shape, dtype=torch.float32)
            """, [(4, FLOAT), (6, FLOAT)], id="in either branch"),
        pytest.param("""
            def sizes(q, kv):
                return q.shape[0], q.shape[2] / kv.shape[2]
            @torch.library.impl_abstract("a::b")
            def _(q, kv):
                return torch.zeros(*sizes(q, kv))
            """, [(2, FLOAT)], id="in a function that gives the sizes"),
        pytest.param("""
            def attention_meta(q, kv):
                return torch.empty(size=(int(q.shape[2] / kv.shape[2]), 4))
            """, [(2, FLOAT)], id="in int() of a function named so"),
        pytest.param("""
            class Builder:
                def register_meta(self):
                    @impl(self.library, self.name, "Meta")
                    def attention_meta(q, kv, layout="BSND", with_lse=False):
                        if layout == "BSND":
                            if with_lse:
                                lse = torch.empty([q.shape[0], q.shape[2] / kv.shape[2]], device="meta")
                            else:
                                lse = torch.empty([], device="meta")
                        return torch.empty(q.shape, device="meta"), lse
            """, [(7, FLOAT)], id="in a function that a method registers"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, kv):
                shape = list(q.shape)
                shape[2] = q.shape[2] / kv.shape[2]
                return torch.empty(shape)
            """, [(4, FLOAT)], id="in an item of a list"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, kv):
                shape = [q.shape[0]]
                shape.append(q.shape[2] / kv.shape[2])
                return torch.empty(shape)
            """, [(4, FLOAT)], id="in what is appended"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, kv):
                return q.view(q.shape[0], -1, 2 * (q.shape[2] / kv.shape[2]))
            """, [(3, FLOAT)], id="in a product in a view"),
    ],
)  # fmt: skip
def test_a_true_division_is_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, kv):
                return q.new_empty((q.shape[0], q.shape[2] // kv.shape[2]))
            """, id="the right form"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, block):
                return q.new_empty(math.ceil(q.shape[0] / block))
            """, id="what torch keeps symbolic"),
        pytest.param("""
            @torch.library.register_fake("a::b")
            def _(q, scale):
                factor = scale / 2
                return torch.full(q.shape, 1 / factor), torch.empty_like(q) / factor
            """, id="a value, no size"),
        pytest.param("""
            def make_fake_batch(n):
                return torch.empty(int(n / 2))
            """, id="fake data"),
        pytest.param("""
            def run(q, kv):
                ratio = q.shape[2] / kv.shape[2]
                return torch.empty(4) * ratio
            """, id="no fake function"),
    ],
)  # fmt: skip
def test_what_is_right_is_left_alone(source: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == []


def test_the_right_form_is_written_out(tmp_path: Path) -> None:
    source = """
        @torch.library.register_fake("a::b")
        def fake(q, kv):
            n = q.shape[2] / kv.shape[2]
            return torch.empty([n])
        """
    (one,) = lint_sample(tmp_path, source).findings
    assert one.what == "`q.shape[2] / kv.shape[2]` is a size of `empty` in line 9 in fake"
    assert one.right == "`q.shape[2] // kv.shape[2]`"
