"""How results and figures are said, in every form of the report."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from toolkit.model import CheckResult
from toolkit.page.values import Account, Kernel, NumberRow, PatchAccount, Program
from toolkit.report import UNICODE_MARKS, describe_result

NONE = "\N{EN DASH}"
"""What stands where a side has nothing."""

TIMES = "\N{MULTIPLICATION SIGN}"

FALLBACK = "fallback"
"""The type of what stands among a graph's kernels and is none: it runs operator by operator."""

SITE = re.compile(r"(?<![\w./+~-])[\w./+~-]{1,400}?/site(?:-packages)?/(?=\w)")
"""The head of a path of an installed file, as far as it is there: an error's text may have cut it."""

MOST_OF_A_CLAUSE = 280

Tone = Literal["good", "bad", "none"]


def tone_of(result: CheckResult) -> Tone:
    """Return how a result is to be taken."""
    return "none" if not result.required else "good" if result.ok else "bad"


def result_words(result: CheckResult | None) -> str:
    """Say a result with its mark; a side that a check does not run on has a dash."""
    return NONE if result is None else describe_result(result, UNICODE_MARKS)


def verdict_words(account: Account) -> str:
    """Say the verdict on the whole."""
    return f"{UNICODE_MARKS.good} proven" if account.proof.ok else f"{UNICODE_MARKS.bad} not proven"


def required_words(account: Account) -> str:
    """Say how many required results are as they must be."""
    required = [result for result in account.proof.results if result.required]
    return f"{sum(result.ok for result in required)} of {len(required)}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def figure(value: float | None) -> str:
    """Return a measured value in three digits; None is what was not finite."""
    if value is None or not math.isfinite(value):
        return "not finite"
    return "0" if value == 0 else f"{value:.3g}"


def power_of_ten(exponent: int) -> str:
    """Return 10 to the power, with raised digits."""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def seconds(value: float) -> str:
    """Return a time."""
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def kernel_words(kernels: Sequence[Kernel]) -> str:
    """Say how many kernels there are and of which types."""
    types = Counter(kernel.type for kernel in kernels)
    fallbacks = types.pop(FALLBACK, 0)
    named = ", ".join(f"{number} {TIMES} {name}" if number > 1 else name for name, number in types.items())
    told = [count(types.total(), "kernel") + (f" ({named})" if named else "")] if types or not fallbacks else []
    return " and ".join([*told, *([f"{count(fallbacks, 'fallback')} to FX"] if fallbacks else [])])


def program_words(program: Program) -> str:
    """Say what a graph became, in how many launches where these were recorded, and what it loses."""
    lost = f"; {UNICODE_MARKS.bad} loses {', '.join(program.lost)}" if program.lost else ""
    launches = len(program.launches)
    told = f", {launches} launch{'' if launches == 1 else 'es'}" if launches else ""
    return f"{kernel_words(program.kernels)}{told}{lost}"


def without_it(patch: PatchAccount, account: Account) -> str:
    """Say what goes wrong without a patch: what its witness found on the base, or what the patch is called."""
    check = account.check(patch.witness)
    red = check.results.get("base") if check else None
    return f"Without it: {first_clause(red.detail)}" if red and red.wanted == "fail" and red.ok else patch.subject


def first_clause(detail: str) -> str:
    """Return the first of the things that a detail tells, on one line that is not too long."""
    clause = short_paths(" ".join(detail.strip().partition("\n")[0].partition("; ")[0].split()))
    return clause if len(clause) <= MOST_OF_A_CLAUSE else f"{clause[: MOST_OF_A_CLAUSE - 1]}…"


def short_paths(told: str) -> str:
    """Return text in which files of installed packages are named from the package on."""
    return SITE.sub("", told)


def shape_words(row: NumberRow) -> str:
    """Say a tensor's type and shape."""
    return f"{row.dtype.removeprefix('torch.')}[{', '.join(map(str, row.shape))}]"
