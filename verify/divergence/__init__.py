"""Where eager and compiled part: the first stage of a module whose numbers differ, and why.

`search.first_difference` is the door (`verify.first_difference`). `program` makes a flat function of tensors from a
module and its inputs; `taps` and `graph_taps` make one that also returns its intermediate values; `runs` computes it,
eagerly or compiled, each from copies of its own; `shadows` computes it eagerly with other roundings or other orders
beside, and `causes` says from that what a difference is of; `report` holds the values that are returned.
"""
