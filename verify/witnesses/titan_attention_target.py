"""What the indexer of DeepSeek-V4 learns from, the attention summed over heads, is scaled in FP32.

Unpatched, the product of query and keys is scaled in BF16 and then cast to FP32 for the softmax: a logit near 12 is off
by up to 0.03 where the scale is no power of two, and the FP32 sum by percents. The inputs' products are whole numbers
that BF16 holds, so that FP32's own error is all there may be. No gradient goes this way: the loss detaches both inputs.
"""

from __future__ import annotations

import importlib
from typing import Any

from verify.checks.titan_model import describe, load_model
from verify.contract import Outcome, Request
from verify.witnesses.titan_numbers import DTYPES, SEED, Error, judge_errors, largest_relative_error, leaf, signs

QUERIES, KEYS, HEADS, HEAD_SIZE = 64, 64, 8, 512
ALLOWED = 1e-5


def check(request: Request) -> Outcome:
    """Compare the module's result with FP64 in both dtypes."""
    model = load_model(request)
    return judge_errors([compare(model, dtype) for dtype in DTYPES], **describe(model))


def compare(model: Any, dtype: str) -> Error:
    """Return how far the summed attention is from FP64 where a key is seen."""
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    around, scale = signs(HEAD_SIZE), HEAD_SIZE**-0.5
    query = signs(1, HEADS, QUERIES, HEAD_SIZE, around=around, differing=0.2)
    keys = signs(1, 1, KEYS, HEAD_SIZE, around=around, differing=0.2)
    hidden = torch.arange(KEYS) > torch.arange(QUERIES).unsqueeze(1)
    found = model.GetAttnScores()(leaf(query, dtype).detach(), leaf(keys, dtype).detach(), hidden, HEADS, scale)
    logits = (query @ keys.transpose(-1, -2) * scale).masked_fill(hidden, float("-inf"))
    reference = logits.softmax(-1).sum(1)
    seen = ~hidden.expand_as(reference)
    return Error(f"{dtype} target", largest_relative_error(found[seen], reference[seen]), ALLOWED)
