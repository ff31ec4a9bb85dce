"""The options of torch_npu's memory allocator: those that it refuses, alone or together, before a first tensor is made.

What is refused was tried on torch_npu 2.13.0: each fault here is a RuntimeError or ValueError there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.model import Observation
from toolkit.schema import did_you_mean

NPU = "PYTORCH_NPU_ALLOC_CONF"
ANY = "PYTORCH_ALLOC_CONF"
CUDA = "PYTORCH_CUDA_ALLOC_CONF"

Check = Callable[[str], str]


def _is_switch(value: str) -> str:
    return "" if value in ("True", "False") else "True or False"


def _number(low: int, high: int | None = None) -> Check:
    def check(value: str) -> str:
        fits = value.isdecimal() and len(value) < 19 and int(value) >= low and (high is None or int(value) <= high)
        wanted = f"a whole number from {low}" if high is None else f"a whole number from {low} to {high}"
        return "" if fits else wanted

    return check


def _is_share(value: str) -> str:
    try:
        return "" if 0.0 < float(value) < 1.0 else "a number between 0 and 1"
    except ValueError:
        return "a number between 0 and 1"


def _is_fraction(value: str) -> str:
    try:
        return "" if 0.0 <= float(value) <= 1.0 else "a number from 0 to 1"
    except ValueError:
        return "a number from 0 to 1"


def _is_large_page(value: str) -> str:
    return "" if value == "1g" else "1g"


def _is_anything(value: str) -> str:
    return "" if value else "a value"


KEYS: Mapping[str, Check] = MappingProxyType(
    {
        "max_split_size_mb": _number(20),
        "max_non_split_rounding_mb": _number(20),
        "garbage_collection_threshold": _is_share,
        "roundup_power2_divisions": _is_anything,
        "expandable_segments": _is_switch,
        "pinned_use_background_threads": _is_switch,
        "large_segment_size_mb": _number(11),
        "pinned_max_round_threshold_mb": _number(0),
        "pinned_max_cached_size_mb": _number(0),
        "release_lock_on_npumalloc": _is_switch,
        "pin_memory_expandable_segments": _is_switch,
        "pinned_mem_register": _is_switch,
        "base_addr_aligned_kb": _number(0, 16),
        "page_size": _is_large_page,
        "segment_size_mb": _number(20, 512),
        "multi_stream_lazy_reclaim": _is_switch,
        "pinned_reserve_segment_size_mb": _number(0),
        "per_process_memory_fraction": _is_fraction,
        "throw_on_npumalloc_oom": _is_switch,
    }
)
"""The keys that torch_npu 2.13.0 knows, and what their values must be."""

EXCLUDED_BY_EXPANDABLE = ("max_split_size_mb", "garbage_collection_threshold")

OPTION = re.compile(r"([^:,\[\]]*)(?::(\[[^\]]*\]|[^,]*))?(?:,|$)")


def examine_allocator(asked: Asked) -> list[Observation]:
    """Look at the variables that hold the allocator's options."""
    environ = asked.environ
    faults: list[Observation] = []
    if NPU in environ and ANY in environ:
        faults.append(
            bad("allocator.variable", f"{NPU} and {ANY} are both set, and torch_npu refuses that", f"unset {ANY}")
        )
    if environ.get(CUDA) and NPU not in environ and ANY not in environ:
        faults.append(
            doubtful(
                "allocator.variable",
                f"{CUDA} is set, which torch_npu does not read: its allocator has the defaults",
                f"put what is meant for the NPU into {NPU}, and unset {CUDA}",
            )
        )
    named = NPU if NPU in environ else ANY
    value = environ.get(named)
    if value:
        faults += _examine_options(named, value)
        return faults or [good("allocator.options", f"{named}={value}")]
    return faults


def _examine_options(variable: str, value: str) -> Iterator[Observation]:
    options = _read_options(value)
    for key, given in options.items():
        if fault := _option_fault(key, given):
            yield bad("allocator.options", f"{variable}={value}: {fault}", f"take it out of {variable}, or mend it")
    excluded = [key for key in EXCLUDED_BY_EXPANDABLE if key in options]
    if options.get("expandable_segments") == "True" and excluded:
        yield bad(
            "allocator.options",
            f"{variable}={value}: expandable_segments:True excludes {' and '.join(excluded)}: torch_npu refuses",
            "keep expandable_segments:True, which fragments least, and take the others out",
        )
    yield from _examine_doubtful(variable, value, options)


def _examine_doubtful(variable: str, value: str, options: Mapping[str, str | None]) -> Iterator[Observation]:
    """Yield what torch_npu takes and then does not follow."""
    sizes = [key for key in ("segment_size_mb", "large_segment_size_mb") if key in options]
    if "segment_size_mb" in sizes:
        yield doubtful("allocator.options", f"{variable}={value}: segment_size_mb is deprecated", "use "
                       "large_segment_size_mb alone")  # fmt: skip
    if "page_size" in options and sizes:
        yield doubtful("allocator.options", f"{variable}={value}: page_size:1g overrides {' and '.join(sizes)}",
                       "use page_size:1g alone")  # fmt: skip
    if options.get("pin_memory_expandable_segments") == "True":
        lost = [key for key in ("pinned_max_round_threshold_mb", "pinned_max_cached_size_mb") if key in options]
        lost += ["pinned_mem_register:True"] if options.get("pinned_mem_register") == "True" else []
        if lost:
            yield doubtful("allocator.options", f"{variable}={value}: {' and '.join(lost)} is without effect beside "
                           "pin_memory_expandable_segments:True", "choose one")  # fmt: skip


def _read_options(value: str) -> dict[str, str | None]:
    """Return the options by key; the last one of a repeated key counts, and a key may lack its value."""
    return {match[1].strip(): match[2] for match in OPTION.finditer(value) if match[0].strip(", ")}


def _option_fault(key: str, given: str | None) -> str:
    known = KEYS.get(key)
    if "=" in key and key.partition("=")[0] in KEYS:
        return f"{key!r} has '=' for ':'"
    if known is None:
        return f"torch_npu knows no option {key!r}{did_you_mean(key, KEYS)}"
    if given is None:
        return f"{key} has no value"
    wanted = known(given.strip())
    return f"{key} must be {wanted}, not {given!r}" if wanted else ""
