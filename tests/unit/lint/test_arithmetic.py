"""RMS norms by hand in every spelling, and products that are scaled before they are float32."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample

NORM = "hand-written-rms-norm"
SCALE = "scale-before-float32"


@pytest.mark.parametrize(
    "expression",
    [
        "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
        "x * torch.rsqrt((x ** 2).mean(dim=-1, keepdim=True) + 1e-6)",
        "x * torch.rsqrt((x * x).mean(-1, True) + self.eps)",
        "torch.rsqrt(self.eps + torch.mean(torch.square(x), dim=-1, keepdim=True)) * x",
        "x * (x.pow(2).mean(-1, keepdim=True) + self.eps).rsqrt()",
        "x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps)",
        "x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()",
        "x / (x.square().mean(-1, keepdim=True) + self.eps) ** 0.5",
        "x * (x.square().mean(-1, keepdim=True) + self.eps) ** -0.5",
        "x * torch.pow(torch.pow(x, 2).mean(-1, keepdim=True).add(self.eps), -0.5)",
        "torch.mul(x, torch.rsqrt(x.square().mean(-1, keepdim=True).add_(self.eps)))",
        "x.mul(torch.rsqrt(torch.mul(x, x).mean(-1, keepdim=True) + self.eps))",
        "x.div(torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps))",
        "x * (1.0 / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps))",
        "x * torch.rsqrt(x.square().sum(-1, keepdim=True) / self.dim + self.eps)",
        "x * torch.rsqrt(x.square().mean(-1, keepdim=True).clamp(min=self.eps))",
        "x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps).to(x.dtype)",
        "self.weight * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x)",
        "x * torch.rsqrt(x.square().mean(-1) + self.eps)[..., None]",
        "x * torch.rsqrt(x.square().mean(-1).unsqueeze(-1) + self.eps)",
        "x / (x.square().mean(-1, keepdim=True).sqrt() + self.eps)",
        "self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)",
        "(x * torch.rsqrt(x.square().mean((-1,), keepdim=True) + self.eps)) * self.weight",
    ],
)
def test_an_rms_norm_is_found_in_any_spelling(expression: str, tmp_path: Path) -> None:
    source = f"class Norm(nn.Module):\n    def forward(self, x):\n        return {expression}\n"
    assert found_in(tmp_path, source) == [(3, NORM)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            def norm(x, weight, eps):
                dtype = x.dtype
                x = x.to(torch.float32)
                variance = x.pow(2).mean(-1, keepdim=True)
                x = x * torch.rsqrt(variance + eps)
                return weight * x.to(dtype)
            """, [(5, NORM)], id="step by step"),
        pytest.param("""
            def norm(q, eps):
                inverse = torch.rsqrt(q.square().mean(-1, keepdim=True) + eps)
                q *= inverse
                return q
            """, [(3, NORM)], id="in place"),
        pytest.param("""
            def norm(q, eps):
                inverse = torch.rsqrt(q.square().mean(-1, keepdim=True) + eps)
                return q.mul_(inverse)
            """, [(3, NORM)], id="by a method in place"),
        pytest.param("""
            def norm(q, eps, upcast):
                if upcast:
                    q = q.float()
                square = q * q
                root = (square.mean(-1, keepdim=True) + eps).sqrt()
                return q / root
            """, [(6, NORM)], id="after a branch"),
    ],
)  # fmt: skip
def test_an_rms_norm_is_found_over_several_lines(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("""
            def f(x, w, eps):
                x = x.float()
                rsqrt = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
                return F.linear(x, w) * rsqrt
            """, id="the norm of something else"),
        pytest.param("""
            def f(x, eps):
                centred = x - x.mean(-1, keepdim=True)
                return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
            """, id="a layer norm"),
        pytest.param("""
            def step(p, grad, v, eps):
                v = v * 0.9 + grad.square() * 0.1
                return p - grad / (v.sqrt() + eps)
            """, id="an optimizer"),
        pytest.param("""
            def f(x, eps):
                return x * torch.rsqrt(x.square().mean() + eps)
            """, id="a mean over everything"),
        pytest.param("""
            def f(x, eps):
                return x * torch.rsqrt(x.square().mean(1, keepdim=True) + eps)
            """, id="a mean over channels"),
        pytest.param("""
            def f(x, eps):
                y = x.square().mean(-1, keepdim=True)
                x = x + 1
                return x * torch.rsqrt(y + eps)
            """, id="another x by then"),
        pytest.param("""
            def rms_norm_reference(x, eps):
                return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
            """, id="a reference to compare with"),
        pytest.param("""
            @triton.jit
            def kernel(x, eps):
                return x * tl.rsqrt(x.square().mean(-1, keepdim=True) + eps)
            """, id="a kernel"),
        pytest.param("""
            def f(x, eps):
                return F.rms_norm(x, (x.shape[-1],), eps=eps)
            """, id="the right form"),
    ],
)  # fmt: skip
def test_what_is_no_rms_norm_is_left_alone(source: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == []


def test_a_norm_in_float32_is_told_as_one(tmp_path: Path) -> None:
    (one,) = lint_sample(
        tmp_path,
        "def f(x, eps):\n    x = x.float()\n    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)\n",
    ).findings
    assert (
        one.what
        == "an RMS norm of `x` by hand in f in float32, so its values stay; one operator is what a backend can fuse"
    )
    assert one.why == "the compiler sees five operations where a backend has one with its own backward"


@pytest.mark.parametrize(
    "expression",
    [
        "(q @ k.transpose(-1, -2) * scale).float()",
        "((q @ k.transpose(-1, -2)) * scale).to(torch.float32)",
        "(scale * (q @ k.mT)).to(dtype=torch.float32)",
        "(torch.matmul(q, k.mT) / scale).float()",
        "torch.bmm(q, k.mT).mul(scale).type(torch.float32)",
        "(torch.einsum('bhd,btd->bht', q, k) * self.scale).float()",
        "F.softmax(q @ k.mT * scale, dim=-1, dtype=torch.float32)",
        "torch.softmax((q @ k.mT) * scale + mask, -1, torch.float32)",
        "(q.matmul(k.mT).masked_fill(mask, 0) * scale).float()",
        "((q @ k.mT) * scale).masked_fill(mask, float('-inf')).float()",
        "((q @ k.mT) * self.dim ** -0.5).float().softmax(-1)",
    ],
)
def test_a_product_scaled_before_its_cast_is_found(expression: str, tmp_path: Path) -> None:
    source = f"class A(nn.Module):\n    def forward(self, q, k, scale, mask):\n        return {expression}\n"
    assert found_in(tmp_path, source) == [(3, SCALE)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            def f(q, k, mask, scale):
                attn = (q @ k.mT) * scale
                if mask is not None:
                    attn.masked_fill_(mask, float("-inf"))
                return F.softmax(attn, dim=-1, dtype=torch.float32)
            """, [(2, SCALE)], id="masked in place in a branch"),
        pytest.param("""
            def f(q, k, mask, scale, sinks):
                weights = q @ k.mT
                weights = weights * scale
                weights = weights + mask
                logits = torch.cat([weights, sinks], dim=-1)
                logits = logits - logits.max(dim=-1, keepdim=True).values
                return F.softmax(logits.float(), dim=-1, dtype=logits.dtype)
            """, [(3, SCALE)], id="far from its cast"),
        pytest.param("""
            def f(q, k, scale):
                scores = q @ k.mT
                scores *= scale
                return scores.float()
            """, [(3, SCALE)], id="scaled in place"),
    ],
)  # fmt: skip
def test_a_product_is_followed_to_its_cast(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "expression",
    [
        "(q @ k.mT).float() * scale",
        "F.softmax((q @ k.mT).float() * scale, dim=-1, dtype=torch.float32)",
        "(q.float() @ k.float().mT * scale).float()",
        "((q * scale) @ k.mT).float()",
        "(q @ k.mT * 0.125).float()",
        "(q @ k.mT * causal_mask).float()",
        "(q @ k.mT * scale).to(q.dtype)",
        "(q * scale).float()",
        "F.softmax(q @ k.mT * scale, dim=-1)",
    ],
)
def test_a_product_that_is_cast_first_is_left_alone(expression: str, tmp_path: Path) -> None:
    source = f"def f(q, k, scale, causal_mask):\n    return {expression}\n"
    assert found_in(tmp_path, source) == []


def test_inputs_that_are_float32_by_then_are_left_alone(tmp_path: Path) -> None:
    source = """
        def f(q, k, scale):
            q, k = q.float(), k.float()
            attn = q @ k.transpose(-1, -2) * scale
            return attn.float()
        """
    assert found_in(tmp_path, source) == []


def test_the_line_of_the_cast_is_told(tmp_path: Path) -> None:
    (one,) = lint_sample(tmp_path, "def f(q, k, s):\n    a = q @ k * s\n    return a.float()\n").findings
    assert one.what == "the product in `q @ k * s` is scaled, which line 8 casts to float32 later"
