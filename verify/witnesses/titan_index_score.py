"""The indexer of DeepSeek-V4 weighs and sums its heads in FP32, as its loss takes the scores.

Unpatched, the product of each head is weighed and the heads are summed in BF16; the loss casts the sum to FP32. By then
keys have equal scores that are not, and some that belong to the chosen ones are left out. Looked at are the scores
that are returned, the scores (in FP64) of the keys that were chosen against the best ones, and the gradients.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from verify.checks.titan_model import describe, load_model
from verify.contract import Outcome, Request
from verify.witnesses.titan_numbers import DTYPES, SEED, Error, judge_errors, leaf, rms_error, share_below, signs

TOKENS, HEADS, HEAD_SIZE, RATIO, CHOSEN = 256, 64, 128, 4, 16
ALLOWED = 1e-5
ALLOWED_GRADIENT = {"bfloat16": 5e-3, "float32": 1e-5}
NAMES = ("queries", "keys", "weights")


def check(request: Request) -> Outcome:
    """Run the module in both dtypes and judge its scores, its choice and its gradients."""
    model = load_model(request)
    errors = [error for dtype in DTYPES for error in compare(model, dtype)]
    return judge_errors(errors, **describe(model))


def compare(model: Any, dtype: str) -> Iterator[Error]:
    """Yield how far the scores, the choice and the gradients are from FP64, where there are enough keys to choose."""
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    weights = torch.randn(1, TOKENS, HEADS).bfloat16() * (HEAD_SIZE * HEADS) ** -0.5
    values = (signs(1, TOKENS, HEADS, HEAD_SIZE), signs(1, TOKENS // RATIO, HEAD_SIZE), weights)
    inputs = [leaf(value, dtype) for value in values]
    chosen, scores = model.LiCompute(RATIO, CHOSEN)(*inputs, TOKENS, 0)
    exact = [leaf(value, "float64") for value in values]
    every = _score_in_fp64(*exact)
    full = (chosen >= 0).all(-1)
    reference = every.gather(-1, chosen.clamp(min=0))
    yield Error(f"{dtype} scores", rms_error(scores[full], reference[full]), ALLOWED)
    best = every.topk(CHOSEN).values
    got = reference.sort(descending=True).values
    yield Error(f"{dtype}: share of tokens with a wrong choice", share_below(got[full], best[full]), 0.0)
    weight = torch.randn_like(scores[full])
    gradients = torch.autograd.grad(scores[full], inputs, weight)
    references = torch.autograd.grad(reference[full], exact, weight.double())
    for name, found, wanted in zip(NAMES, gradients, references, strict=True):
        yield Error(f"{dtype} gradient of the {name}", rms_error(found, wanted), ALLOWED_GRADIENT[dtype])


def _score_in_fp64(query: Any, keys: Any, weights: Any) -> Any:
    """Return the scores of all keys, those that end after the query's token at minus infinity."""
    torch = importlib.import_module("torch")
    products = torch.einsum("bshd,btd->bsht", query, keys).relu()
    scores = (products * weights.unsqueeze(-1)).sum(2)
    ends = (torch.arange(TOKENS // RATIO) + 1) * RATIO - 1
    return scores.masked_fill(ends > torch.arange(TOKENS).unsqueeze(1), float("-inf"))
