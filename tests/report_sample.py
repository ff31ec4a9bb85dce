"""An overlay's folder as a build leaves it, with a proof whose numeric evidence has the form that checks write.

Small, hostile where it may be, and complete: manifest, proof, logs with generated code, and the project's patches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit import manifest
from toolkit.files import sha256_bytes, sha256_file
from toolkit.model import CheckResult, Contract, Key, ManifestEntry, Overlay, OverlayPackage, Proof, Target
from toolkit.project import Project
from toolkit.prove import write_proof

RECIPE = "sample"
KEY = "0123456789abcdef" * 4
BASE_DIGEST = "b" * 64
HOSTILE = "<script>alert(1)</script>&\"'\u202e\x1b[31m"
"""What must come out as text wherever it stands."""

PATCH = f"""\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: The toolkit authors <toolkit@example.invalid>
Date: Tue, 1 Sep 2026 00:00:00 +0000
Subject: [PATCH] sample: keep the accumulator

Without it `a < b && c` is lost: </pre><b>{HOSTILE}

Upstream-Status: Pending [a sample]
Witness: aliased
---
 sample_npu/core.py | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/sample_npu/core.py b/sample_npu/core.py
index 1111111..2222222 100644
--- a/sample_npu/core.py
+++ b/sample_npu/core.py
@@ -1,2 +1,2 @@
 def answer():
-    return "<b>41</b>"
+    return "<b>42</b>"
"""

CODE = '''\
import torch
import math
import random
import os
import tempfile

"""
class GraphModule(torch.nn.Module):
    def forward(self, x):
        total = torch.ops.aten.sum.dim_IntList(x, [0])
"""
@dvm.kernel(ktype={ktype!r}, dyn_shape=False)
def dvm_fused_sum_0_build(k):
    x = k.load([4, 4], dvm.float32)
    total = k.sum(x, [0], False)
{body}
    k.store(total, dvm.float32)

class Runner:
    def call(self, args):
        dvm_fused_sum_0.run(args[0], stream=stream0)
        return "<i>not markup</i>"


def get_args():
    return []


def benchmark_compiled_module(args):
    return None
'''

LISTING = """\
dvm_fused_sum_0
vgraph.stages() {{
  // stage 0
  vgraph(tile_num=40) {{
    %0[824,1]<float32> = Load() // nd_stride=[832,832]
  }}
}}
// target=0, block_dim={blocks}, ffts_addr=0
vmain.aiv(body_tile=1, tail_tile_diff=0) {{
  2: store.u8.4x1 {address}, 0x200 //tile_stride(4)
}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A project with one overlay in it; `generation` is what its `current` points to."""

    project: Project
    generation: Path

    @property
    def folder(self) -> Path:
        """The recipe's folder of overlays."""
        return self.generation.parent.parent


def result(name: str, **changed: Any) -> CheckResult:
    """Return a check's result on the overlay, as required unless told otherwise."""
    side = changed.get("side", "overlay")
    usual: dict[str, Any] = {
        "side": side, "wanted": "pass", "status": "pass", "required": True, "ok": True, "detail": "as it must be",
        "seconds": 1.25, "evidence": {}, "log": f"/elsewhere/logs/{side}-{name}.log",
    }  # fmt: skip
    return CheckResult(name=name, **{**usual, **changed})


def number(graph: str, value: str, error: float | None, **changed: Any) -> dict[str, Any]:
    """Return one row of a check's `numbers`."""
    within = error is not None and error < 1e-3
    usual: dict[str, Any] = {
        "graph": graph, "mode": "recorded", "value": value, "dtype": "torch.float32", "shape": [128, 256],
        "reference": "eager", "maximum_absolute_error": error, "relative_l2": error and error / 3,
        "cosine": None if error is None else 1.0 - error / 9,
        "ulps": {"0": 32000, "1": 700, "2": 40, "3-4": 20, "5-8": 8} if within else {"0": 3, "65537-131072": 32765},
        "within": within,
    }  # fmt: skip
    return {**usual, **changed}


def program(graph: str, *types: str, launches: Sequence[str] = ("40 blocks: load x, atomic old",)) -> dict[str, Any]:
    """Return one entry of a check's `programs`; every kernel has the same launches."""
    kernels = [{"name": f"dvm_{graph}_{place}", "type": kind, "launches": list(launches)} for place, kind in
               enumerate(types)]  # fmt: skip
    return {"graph": graph, "kernels": kernels, "seconds": {"compile": 0.75, "run": 0.031}}


def numeric_results() -> list[CheckResult]:
    """Return the results of a check with numbers on both sides: wrong on the base, right on the overlay."""
    graphs = {"running_mean": 63.5, "sinkhorn": 2e-7, "softmax <b>": 1e-6, "empty": 0.0}
    named = [(graph, value, error) for graph, error in graphs.items() for value in ("result", "grad x")]
    base = [
        number(graph, value, 0.0 if mode == "separate" else error, mode=mode)
        for graph, value, error in named
        for mode in ("recorded", "separate", "worst case")
    ]
    base.append(number("running_mean", "overflow", None, ulps={"nonfinite": 4}))
    overlay = [
        number(graph, value, min(error, 1e-6), mode=mode, reference=reference)
        for graph, value, error in named
        for mode in ("recorded", "separate")
        for reference in ("eager", "float64")
    ]
    return [
        result("accumulator", side="base", wanted="fail", status="fail", detail="63.5 is not 0.5",
               evidence={"numbers": base, "programs": [program("running_mean", "spec"), program("sinkhorn", "spec")]}),
        result("accumulator", evidence={"numbers": overlay, "programs": [
            program("running_mean", "vector", "vector"), program("sinkhorn", "spec")]}),
    ]  # fmt: skip


def plain_results() -> list[CheckResult]:
    """Return results without any numeric evidence: what a recipe without such checks has."""
    lost = {"running_mean": {"graph": "running_mean", "kernels": ["spec"], "launches": ["1 blocks: store old"],
                             "lost": {"old": "launch 1 writes it"}, "unjudged": ""}}  # fmt: skip
    kept = {"running_mean": {**lost["running_mean"], "kernels": ["vector", "vector"], "lost": {}}}
    return [
        result("origins", evidence={"modules": 284, "text": f"two\nlines {HOSTILE}"}, detail=f"all of it {HOSTILE}"),
        result("aliased", side="base", wanted="fail", status="fail", detail="running_mean loses old", evidence=lost),
        result("aliased", detail="kept", evidence=kept),
    ]


def all_results() -> list[CheckResult]:
    """Return both kinds of results."""
    return [*plain_results(), *numeric_results()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be made; the defaults are a whole and good overlay."""

    results: Sequence[CheckResult] = field(default_factory=all_results)
    environment: Mapping[str, object] = field(default_factory=dict)
    overlay_in_proof: str = KEY
    runtime: Any = "host"
    logs: bool = True
    patch: str = PATCH
    env: Mapping[str, str] = field(default_factory=lambda: {"SAMPLE_BACKEND": "small"})


def make_place(root: Path, wanted: Wanted | None = None) -> Place:
    """Write a project and an overlay of its recipe below a folder."""
    wanted = wanted or Wanted()
    project = _make_project(root / "project", wanted.patch)
    generation = project.overlays / RECIPE / "generations" / KEY[:16]
    overlay = _make_overlay(generation, wanted)
    facts = {"made": "2026-09-01T12:00:00Z", "machine": "Linux x86_64", "child": {"python": "3.11.7"},
             "manifest": sha256_file(overlay.manifest), **wanted.environment}  # fmt: skip
    proof = Proof(recipe=RECIPE, overlay=wanted.overlay_in_proof, runtime=wanted.runtime,
                  results=tuple(wanted.results), environment=facts)  # fmt: skip
    write_proof(proof, generation / "proof.json")
    if wanted.logs:
        _write_logs(generation / "logs")
    (generation.parent.parent / "current").symlink_to(f"generations/{KEY[:16]}")
    return Place(project=project, generation=generation)


def _make_project(root: Path, patch: str) -> Project:
    files = {
        "recipes/sample.toml": 'schema = 1\ndescription = "a sample, with <em>care</em>"\n',
        "recipes/sample.lock": f'[[component]]\nname = "sample_npu"\nkind = "wheel"\n\n[[component.artifact]]\n'
        f'file = "sample_npu-1.0.whl"\nsha256 = "{BASE_DIGEST}"\n',
        "patches/sample_npu/1.0/0001-keep-accumulator.patch": patch,
        "verify/checks.json": json.dumps({"aliased": {"module": "verify.aliased", "sides": ["base", "overlay"],
                                          "witness": True, "static": False, "env": {}, "summary": "old is kept"}}),
    }  # fmt: skip
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return Project(root=root, recipes=(root / "recipes",), patches=(root / "patches",), verify=root / "verify",
                   overlays=root / "overlays")  # fmt: skip


def _make_overlay(generation: Path, wanted: Wanted) -> Overlay:
    site = generation / "site"
    site.mkdir(parents=True)
    (site / "sample_npu.py").write_bytes(b"answer = 42\n")
    name = "0001-keep-accumulator"
    package = OverlayPackage(
        component="sample_npu", import_name="sample_npu", distribution="sample_npu", version="1.0+p1.k01234567",
        base_version="1.0", wheel="sample_npu-1.0+p1.k01234567-py3-none-any.whl", wheel_sha256="c" * 64,
        patches=(name,),
    )  # fmt: skip
    overlay = Overlay(
        recipe=RECIPE, key=KEY, root=generation, target=Target(python_tag="cp311", platform="manylinux_2_28_x86_64"),
        contract=Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0"),
        packages=(package,), env=wanted.env,
    )  # fmt: skip
    inputs = (
        ("sample_npu/base", f"wheel:{BASE_DIGEST}"),
        (f"sample_npu/series[1] {name}", sha256_bytes(PATCH.encode())),
    )
    entry = ManifestEntry(path="sample_npu.py", sha256=sha256_bytes(b"answer = 42\n"), size=12)
    manifest.write_manifest(overlay, Key(digest=KEY, inputs=inputs), [entry], [])
    manifest.seal_site(generation)
    return overlay


def _write_logs(logs: Path) -> None:
    for side, ktype, body in (("base", "spec", "    k.spec_next()"), ("overlay", "vector", "    total = total")):
        for check, graph in (("aliased", "running_mean"), ("accumulator", "sinkhorn")):
            folder = logs / f"{side}-{check}"
            folder.mkdir(parents=True)
            (logs / f"{side}-{check}.log").write_text(f"$ python {HOSTILE}\n", encoding="utf-8")
            address = "0x7fc02c0b9200" if side == "base" else "0x7f66401d7600"
            blocks = 40 if graph == "sinkhorn" or side == "base" else 1
            code = CODE.format(ktype=ktype, body=body)
            (folder / f"{check}-{graph}.py").write_text(code, encoding="utf-8")
            (folder / f"{check}-{graph}.das").write_text(
                LISTING.format(address=address, blocks=blocks), encoding="utf-8"
            )
