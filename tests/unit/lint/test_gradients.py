"""Outputs that backward has no gradient for, and backwards that raise because one comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample

OUTPUT = "output-without-gradient"
RAISES = "raise-on-placeholder-gradient"

FUNCTION = """
class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, scale):
        out, lse = run(q, scale)
        {mark}
        return out, lse
    @staticmethod
    def backward(ctx, {gradients}):
        {check}
        return {used} * ctx.scale, None
"""
"""Its return is in line 6, the check in line 9."""


def function(
    *, mark: str = "pass", gradients: str = "grad, grad_lse", check: str = "pass", used: str = "grad"
) -> str:  # fmt: skip
    return FUNCTION.format(mark=mark, gradients=gradients, check=check, used=used)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(function(), [(6, OUTPUT)], id="ignored"),
        pytest.param(function(gradients="grad, _"), [(6, OUTPUT)], id="ignored on purpose, and not marked"),
        pytest.param(function(gradients="grad, *_"), [(6, OUTPUT)], id="the rest ignored"),
        pytest.param(function(gradients="*grads", used="grads[0]"), [(6, OUTPUT)], id="taken by number"),
        pytest.param(function(gradients="*grads", check="out_grad, _ = grads", used="out_grad"), [(6, OUTPUT)],
                     id="unpacked"),
        pytest.param(function(check="""if grad_lse is None:
            pass
        else:
            raise RuntimeError('lse')"""), [(6, OUTPUT), (9, RAISES)], id="refused by an else"),
        pytest.param(function(check="if grad_lse is not None: raise RuntimeError('lse')"),
                     [(6, OUTPUT), (9, RAISES)], id="refused"),
        pytest.param(function(check="assert grad_lse is None, 'lse'"),
                     [(6, OUTPUT), (9, RAISES)], id="refused by an assert"),
        pytest.param(function(check="torch._check(grad_lse is None, lambda: 'lse')"),
                     [(6, OUTPUT), (9, RAISES)], id="refused by a check"),
        pytest.param(function(gradients="grad, *rest", check="""for one in rest:
            if one is not None:
                raise RuntimeError('lse')"""), [(10, RAISES)], id="refused in a loop"),
        pytest.param("""
            def backward(ctx, grad, grad_lse):
                if grad_lse is not None:
                    raise RuntimeError("lse")
                return grad
            torch.library.register_autograd("vendor::attention", backward, setup_context=save)
            """, [(2, RAISES)], id="of an operator"),
        pytest.param(function(check="if grad_lse is not None and ctx.strict: raise RuntimeError(grad_lse.shape)"),
                     [(6, OUTPUT), (9, RAISES)], id="refused on a condition"),
        pytest.param(function(check="if grad_lse.any(): raise RuntimeError('lse')"), [(6, OUTPUT)],
                     id="refused by value"),
        pytest.param(function(mark="ctx.mark_non_differentiable(out)"), [(6, OUTPUT)], id="another one marked"),
        pytest.param(function(mark="ctx.mark_non_differentiable(lse)",
                              check="if grad_lse is not None: raise RuntimeError('lse')"),
                     [(9, RAISES)], id="marked, and still refused"),
        pytest.param(function(gradients="*grads", used="grads[0]", mark="ctx.mark_non_differentiable(lse)",
                              check="if any(g is not None for g in grads[1:]): raise RuntimeError('lse')"),
                     [(9, RAISES)], id="any of the rest"),
        pytest.param(function(mark="ctx.mark_non_differentiable(lse); ctx.set_materialize_grads(False)",
                              check="if grad is None: raise RuntimeError('no gradient')"),
                     [(9, RAISES)], id="None refused where None comes"),
        pytest.param("""
            class Some(torch.autograd.Function):
                @staticmethod
                def forward(ctx, q, return_lse):
                    out, lse = run(q)
                    if return_lse:
                        return out, lse
                    return out
                @staticmethod
                def backward(ctx, *grads):
                    return run_backward(grads[0]), None
            """, [(6, OUTPUT)], id="where it is asked for"),
        pytest.param("""
            class Both(torch.autograd.Function):
                @staticmethod
                def forward(q):
                    result = (q * 2, q.sum(-1))
                    return result
                @staticmethod
                def setup_context(ctx, inputs, output):
                    ctx.save_for_backward(*inputs)
                @staticmethod
                def backward(ctx, grad, grad_lse):
                    return grad * 2
            """, [(4, OUTPUT)], id="a tuple by name, and setup_context"),
    ],
)  # fmt: skip
def test_faults_are_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(function(mark="ctx.mark_non_differentiable(lse)"), id="marked"),
        pytest.param(function(mark="ctx.mark_non_differentiable(*rest)"), id="perhaps marked"),
        pytest.param(function(used="(grad + grad_lse)"), id="used"),
        pytest.param(function(gradients="*grads", used="merge(*grads)"), id="all of them used"),
        pytest.param(function(check="grad_lse = grad_lse if grad_lse is not None else 0", used="(grad + grad_lse)"),
                     id="asked for and used"),
        pytest.param(function(check="if grad_lse.dtype != grad.dtype: raise TypeError('dtype')",
                              mark="ctx.mark_non_differentiable(lse)"), id="a dtype refused"),
        pytest.param(function(check="if grad_lse is not None and grad_lse.dtype != grad.dtype: raise TypeError",
                              mark="ctx.mark_non_differentiable(lse)"), id="a dtype refused of one that is there"),
        pytest.param(function().replace("lse", "topk_indices"), id="an output that is named like integers"),
        pytest.param(function(mark="lse = lse.argsort()"), id="an output of integers"),
        pytest.param(function(mark="lse = lse.to(torch.int32)"), id="an output cast to integers"),
        pytest.param(function(mark="lse = q.size(0)"), id="an output that is no tensor"),
        pytest.param(function(gradients="grad", used="grad"), id="another number of gradients"),
        pytest.param("""
            class One(torch.autograd.Function):
                @staticmethod
                def forward(ctx, q):
                    return q.clone()
                @staticmethod
                def backward(ctx, grad):
                    assert grad is not None
                    if not ctx.ready:
                        raise RuntimeError("not ready")
                    return torch.ones_like(grad)
            """, id="a single output"),
        pytest.param("""
            class Never(torch.autograd.Function):
                @staticmethod
                def forward(ctx, q):
                    return q.clone(), q.sum(-1)
                @staticmethod
                def backward(ctx, *grads):
                    raise NotImplementedError("inference only")
            """, id="no backward at all"),
        pytest.param("""
            class Net(nn.Module):
                def forward(self, q):
                    return q, q.sum(-1)
                def backward(self, grad, grad_lse):
                    return grad
            """, id="no autograd function"),
    ],
)  # fmt: skip
def test_what_is_right_is_left_alone(source: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == []


def test_the_right_form_names_the_output(tmp_path: Path) -> None:
    (finding,) = lint_sample(tmp_path, function()).findings
    assert (
        finding.what
        == "output 2 of 2 of Attention.forward, `lse`, is ignored by backward and not marked non-differentiable"
    )
    assert finding.right == "`ctx.mark_non_differentiable(lse)` in forward (or setup_context)"
