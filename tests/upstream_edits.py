"""What the patches for our own upstream change, and why; `tests/upstream.py` makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

HEADERS = "third_party/sample_headers"

Kind = Literal["python", "python-second", "native", "template", "submodule", "gitlink", "ops"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """What a patch says and does: of each pair the first, which `file` has once, becomes the second.
    Without any, `file` is a submodule that moves to its newer commit.

    `folder` is where in the tree the repository lies that the file belongs to; `options` are for `git format-patch`.
    """

    slug: str
    subject: str
    fault: str
    witness: str
    file: str
    changes: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    options: tuple[str, ...] = ()


EDITS: Mapping[Kind, Edit] = {
    "python": Edit(
        slug="right-answer",
        subject="core: give the right answer",
        fault="Without it `sample_npu.core.answer()` is 41.",
        witness="answer",
        file="sample_npu/core.py",
        changes=(("_C.add(40, 1)", "_C.add(40, 2)"),),
    ),
    "python-second": Edit(
        slug="scalar-numel",
        subject="shapes: a scalar has one element",
        fault="Without it `sample_npu.shapes.numel(())` is 0.",
        witness="scalar-numel",
        file="sample_npu/shapes.py",
        changes=(("    if not shape:\n        return 0\n", ""),),
    ),
    "native": Edit(
        slug="clamp-high",
        subject="clamp: heed the high bound",
        fault="Without it `_C.clamp(9, 0, 5)` is 9.",
        witness="clamp-high",
        file="sample_npu/csrc/clamp.cpp",
        changes=(
            ("std::int64_t low, std::int64_t)", "std::int64_t low, std::int64_t high)"),
            ("return std::max(value, low);", "return std::min(std::max(value, low), high);"),
        ),
    ),
    "template": Edit(
        slug="bind-subtract",
        subject="codegen: bind subtract",
        fault="Without it `_C` has no `subtract`.",
        witness="bind-subtract",
        file="codegen/operators.yaml",
        changes=(("- name: clamp\n", "- name: subtract\n  doc: the difference of two numbers\n- name: clamp\n"),),
    ),
    "submodule": Edit(
        slug="lower-bound",
        subject="checked: heed the lower bound",
        fault="Without it `_C.add(-1000000, -1)` is no error.",
        witness="lower-bound",
        file="include/sample/checked.h",
        changes=(("if (value > largest) {", "if (value > largest || value < -largest) {"),),
        folder=HEADERS,
        options=(f"--src-prefix=a/{HEADERS}/", f"--dst-prefix=b/{HEADERS}/"),
    ),
    "gitlink": Edit(
        slug="newer-headers",
        subject="third_party: take the newer headers",
        fault="Without it `_C.headers_release()` is 1.",
        witness="newer-headers",
        file=HEADERS,
    ),
    "ops": Edit(
        slug="integer-head-ratio",
        subject="attention: a ratio of head counts is a whole number",
        fault="Without it the last size of `softmax_shape((1, 128, 64, 512), (1, 128, 1, 512))` is 64.0.",
        witness="integer-head-ratio",
        file="torch_extension/sample_ops/ops/attention.py",
        changes=(("heads / key[2])", "heads // key[2])"), ("heads / key[1])", "heads // key[1])")),
        options=("--relative=torch_extension",),
    ),
}
