"""Numbers that tell one rounding from two: inputs whose products BF16 holds exactly, and errors against FP64.

Vectors of +1 and -1 have whole numbers for products; BF16 holds those up to 256, and even ones, as vectors of an even
length have, up to 512. What is off afterwards was lost after the product. Vectors that differ from a common one in a
few places have large products that lie close together: there a lost bit of a logit is percents of a probability.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verify.contract import Outcome, broke, failed_with, passed

SEED = 20260901
DTYPES = ("bfloat16", "float32")


@dataclass(frozen=True)
class Error:
    """How far something is from its FP64 reference, and how far it may be."""

    what: str
    found: float
    allowed: float

    @property
    def is_fault(self) -> bool:
        """Whether it is too far off; a NaN is."""
        return not self.found <= self.allowed

    @property
    def share(self) -> float:
        """How much of what is allowed it uses up."""
        return self.found / self.allowed if self.allowed else 0.0

    def __str__(self) -> str:
        return f"{self.what} off by {self.found:.3g}, allowed {self.allowed:.3g}"


def judge_errors(errors: Sequence[Error], **evidence: Any) -> Outcome:
    """Judge by whether each error is within what it may be."""
    evidence = {**evidence, "errors": [str(error) for error in errors]}
    if not errors:
        return broke("nothing was compared", **evidence)
    faults = [str(error) for error in errors if error.is_fault]
    if faults:
        return failed_with(faults, **evidence)
    return passed(describe_errors(errors), **evidence)


def describe_errors(errors: Sequence[Error]) -> str:
    """Return how many errors are small enough, and the one that is so by the least."""
    return f"{len(errors)} comparisons, the closest: {max(errors, key=lambda error: error.share)}"


def largest_error(found: Any, reference: Any) -> float:
    """Return the largest difference."""
    return float(_difference(found, reference).abs().max())


def largest_relative_error(found: Any, reference: Any) -> float:
    """Return the largest difference in proportion to the reference's element, which is nowhere 0."""
    return float((_difference(found, reference) / reference.detach()).abs().max())


def rms_error(found: Any, reference: Any) -> float:
    """Return the root mean square of the differences in proportion to the reference's."""
    return float((_difference(found, reference).square().mean() / reference.detach().square().mean()).sqrt())


def _difference(found: Any, reference: Any) -> Any:
    return found.detach().double() - reference.detach()


def share_below(found: Any, wanted: Any) -> float:
    """Return the share of rows, along the last axis, in which something falls short by more than FP32's error."""
    short = _difference(wanted, found) > 1e-6 * wanted.detach().abs().mean()
    return float(short.any(-1).double().mean())


def signs(*shape: int, around: Any = None, differing: float = 0.5) -> Any:
    """Return +1 and -1 at random: those of `around`, but for a share of its places."""
    torch = importlib.import_module("torch")
    flipped = 1.0 - 2.0 * (torch.rand(shape) < differing).double()
    return flipped if around is None else around * flipped


def leaf(values: Any, dtype: str) -> Any:
    """Return a copy in that dtype, to be differentiated by."""
    return values.detach().clone().to(getattr(importlib.import_module("torch"), dtype)).requires_grad_()


@contextlib.contextmanager
def npu_is_cpu() -> Iterator[None]:
    """Let a factory function that is asked for the device `npu` make its tensor on the CPU."""
    overrides: Any = importlib.import_module("torch.overrides")

    class OnCpu(overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
        def __torch_function__(
            self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            options = dict(kwargs or {})
            if options.get("device") == "npu":
                options["device"] = "cpu"
            return function(*args, **options)

    with OnCpu():
        yield
