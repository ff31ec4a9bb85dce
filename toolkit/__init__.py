"""Turn a recipe of pinned bases and patches for torch_npu into a proven overlay."""

__version__ = "0.1.0"
