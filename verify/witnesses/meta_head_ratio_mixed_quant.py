"""The Meta function of mixed_quant_sparse_flash_mla gives whole numbers for sizes, and those of heads.

The same fault as sparse_flash_mla's (`verify.witnesses.meta_head_ratio`). Beside it, in packed sequences head sizes are
divided for numbers of heads, and keys in pages are not told from packed ones.
"""

from __future__ import annotations

from verify.contract import Outcome, Request
from verify.witnesses.meta_head_ratio import bsnd_calls, check_operator, paged_calls, tnd_calls

OPERATOR = "mixed_quant_sparse_flash_mla"
OPTIONS = {"quant_mode": 1, "rope_head_dim": 64, "softmax_scale": 0.04, "cmp_ratio": 1}
"""Arguments without a usable default; they change no shape."""


def check(request: Request) -> Outcome:
    """Call the operator in its three layouts at each ratio and judge the answers."""
    return check_operator(request, OPERATOR, [*bsnd_calls(), *tnd_calls(), *paged_calls()], OPTIONS)
