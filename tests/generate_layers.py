"""The pages of docs/layers: for each layer what its failures look like, what they mean, what to try."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping

from toolkit.triage import Layer, Rule, diagnosis_schema, shipped_rules
from toolkit.triage.samples import Sample, shipped_samples
from toolkit.triage.values import CONFIDENCES

ABOUT: Mapping[Layer, str] = {
    "environment": "What is installed, what is found first, and what the process was started with.",
    "build": "Compiling torch_npu, an operator package or a JIT extension from source.",
    "dynamo": "Capture: Dynamo and AOTAutograd turn Python into graphs. Nothing of the NPU is involved yet.",
    "meta": "FakeTensor and Meta functions tell shapes, strides and types without computing.",
    "lowering": "Operators of the graph become Inductor's own loops, or calls.",
    "codegen": "Kernels are written and compiled: DVM, NPU Triton, C++.",
    "fusion": "Kernels are joined, and memory is reused: what compiles, runs, and computes something else.",
    "memory": "Right, but more memory than there is: by configuration, by fragmentation, or on the host.",
    "distributed": "Ranks that wait for each other. The first error that is no time-out is the cause.",
    "runtime": "A compiled or eager program that fails as it runs, on the device or in the framework.",
    "unknown": "",
    "none": "",
}
"""What each layer with a page is."""

KINDS = ("cause", "victim", "warning", "note")

WORDS = {
    "cause": "",
    "victim": "Follows from another process's failure.",
    "warning": "The run goes on.",
    "note": "No failure.",
    "wrapper": "",
}

HEAD = """\
# {title}

{about}

Causes that `toolkit diagnose` knows, most certain first. This page is generated from `toolkit/triage/rules/` and the
samples beside them. [All layers](../diagnose.md#layers).
"""


def layer_pages() -> dict[str, str]:
    """Return the pages by their path below docs/."""
    return {f"layers/{layer}.md": layer_page(layer) for layer, about in ABOUT.items() if about}


def schema_page() -> str:
    """Return the JSON schema of what `toolkit diagnose --json` prints."""
    return json.dumps(diagnosis_schema(), indent=1) + "\n"


def layer_page(layer: Layer) -> str:
    """Return one layer's page."""
    rules = [rule for rule in shipped_rules().rules if rule.layer == layer and rule.kind != "wrapper"]
    rules.sort(key=lambda rule: (KINDS.index(rule.kind), rule.generic, CONFIDENCES.index(rule.confidence)))
    samples = [one for file in shipped_samples().values() for one in file.sample]
    head = HEAD.format(title=layer.capitalize(), about=ABOUT[layer])
    index = ", ".join(f"[{rule.cause}](#{rule.cause})" for rule in rules)
    return "\n".join(
        [head, *textwrap.wrap(index, 120, break_on_hyphens=False), "", *(_rule(rule, samples) for rule in rules)]
    )


def _rule(rule: Rule, samples: list[Sample]) -> str:
    sample = next((one.log for one in samples if one.cause == rule.cause), "")
    looks = ["```text", *sample.strip("\n").splitlines(), "```", ""] if sample else []
    asks = sorted({f"`{name}`" for when in rule.when for name in when.facts})
    told = [f"Told from the launch: {', '.join(asks)}.", ""] if asks else []
    return "\n".join(
        [
            f"## `{rule.cause}`",
            "",
            *looks,
            *told,
            " ".join(filter(None, (_plain(rule.means), WORDS[rule.kind]))),
            "",
            *_advice(rule),
        ]
    )


def _advice(rule: Rule) -> list[str]:
    lines = [f"- **Try:** {_plain(rule.fix)}"] if rule.fix else []
    lines += [f"- **Command:** `{_plain(rule.command)}`"] if rule.command else []
    lines += [f"- **Patch:** [`{rule.patch}`](../../patches/{rule.patch}.patch)"] if rule.patch else []
    lines += [f"- **Recipe:** `{rule.recipe}`"] if rule.recipe else []
    lines += [f"- **Narrow it down:** {_plain(rule.experiment)}"] if rule.experiment else []
    return [*lines, f"- **From:** {_plain(rule.source)}", ""]


def _plain(template: str) -> str:
    """Show a template as a page does: a name stands for what the log fills in."""
    return template.format_map(_Names())


class _Names(dict[str, str]):
    """Every name as itself, in capitals."""

    def __missing__(self, key: str) -> str:
        return key.upper()
