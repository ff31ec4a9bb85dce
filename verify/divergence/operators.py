"""Which operators only move numbers, which sum, and how the rest is taken, by their names without overload."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CALLS = _words(
    """mm bmm addmm baddbmm mv addmv dot convolution convolution_backward mkldnn_convolution linear
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_attention_math"""
)
"""Operators that are kernels of their own in compiled code."""

MOVES = _words(
    """abs alias amax amin cat clone constant_pad_nd copy copy_ _to_copy detach embedding expand_copy fill fill_ flip
    gather index index_select lift_fresh masked_fill masked_fill_ max maximum min minimum neg new_empty new_zeros
    ones_like permute_copy relu relu_ repeat roll select_backward select_scatter slice_backward slice_scatter sort stack
    threshold_backward topk unfold_backward _unsafe_view where zero zero_ zeros_like empty_like masked_select
    index_copy index_copy_ scatter scatter_ diagonal_backward constant_pad tril triu"""
)
"""Operators that compute no new number, only move, choose or negate: they round nothing."""

LINEAR = _words(
    """sum mean nansum cumsum mm bmm addmm baddbmm mv addmv dot convolution mkldnn_convolution linear index_add
    index_add_ scatter_add scatter_add_ embedding_dense_backward"""
)
"""Sums of terms that their operands, made positive, give the size of."""

POSITIVE = _words("var var_mean std std_mean norm linalg_vector_norm prod")
"""Reductions that are as large as the sum of their terms, or its root."""

DECOMPOSED = _words(
    """_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data logsumexp native_layer_norm
    native_layer_norm_backward _fused_rms_norm _fused_rms_norm_backward native_group_norm native_group_norm_backward
    native_batch_norm native_batch_norm_backward _native_batch_norm_legit mse_loss nll_loss_forward nll_loss_backward
    binary_cross_entropy smooth_l1_loss huber_loss"""
)
"""Operators that are disturbed within: each is computed by torch's own decomposition into smaller ones."""
