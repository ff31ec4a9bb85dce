"""Determinism before compile; parallelise, preload, activation checkpointing, compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint_sample import found_in, lint_sample

LATE = "determinism-after-compile"
ORDER = "provider-preload-order"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("""
            def main(model):
                model = torch.compile(model)
                torch.use_deterministic_algorithms(True)
            """, [(3, LATE)], id="one after the other"),
        pytest.param("""
            model = torch.compile(build())
            torch.use_deterministic_algorithms(mode=True, warn_only=False)
            """, [(2, LATE)], id="in a module"),
        pytest.param("""
            def main(config, model):
                if config.compile:
                    model.compile(backend="inductor")
                if config.deterministic:
                    torch.use_deterministic_algorithms(config.deterministic)
            """, [(5, LATE)], id="in branches that may follow each other"),
        pytest.param("""
            def compile_layers(model):
                for layer in model.layers:
                    layer.compile()
            def be_deterministic():
                torch.use_deterministic_algorithms(True)
            def main(model):
                compile_layers(model)
                be_deterministic()
            """, [(8, LATE)], id="in functions that are called"),
        pytest.param("""
            class Trainer:
                def __init__(self, model):
                    self.build(model)
                    torch.use_deterministic_algorithms(True)
                def build(self, model):
                    self.model = torch.compile(model)
            """, [(4, LATE)], id="in methods"),
        pytest.param("""
            def parallelize(model, config):
                apply_tp(model)
                apply_ac(model, config)
                preload_providers(model)
                apply_compile(model, config)
            """, [(4, ORDER)], id="after activation checkpointing"),
        pytest.param("""
            def parallelize(model, config):
                apply_moe_ep_tp(model)
                if config.compile:
                    for block in model.layers:
                        block.compile(fullgraph=True)
                registry.preload_operator_providers()
            """, [(6, ORDER)], id="after compile"),
        pytest.param("""
            def parallelize(model, config):
                load_attention_providers(model)
                if config.tp:
                    parallelize_module(model, mesh, plan)
                if config.ac:
                    apply_ac(model, config)
                apply_compile(model, config)
            """, [(2, ORDER)], id="before parallelisation"),
    ],
)  # fmt: skip
def test_a_wrong_order_is_found(source: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("""
            def main(model):
                torch.use_deterministic_algorithms(True)
                model = torch.compile(model)
                torch.use_deterministic_algorithms(True, warn_only=True)
            """, id="deterministic from the start"),
        pytest.param("""
            def main(config, model):
                if config.compile:
                    model = torch.compile(model)
                else:
                    torch.use_deterministic_algorithms(True)
            """, id="branches that exclude each other"),
        pytest.param("""
            def main(config, model):
                if config.compile:
                    return torch.compile(model)
                torch.use_deterministic_algorithms(True)
            """, id="after a return"),
        pytest.param("""
            def run(model):
                previous = torch.are_deterministic_algorithms_enabled()
                try:
                    torch.compile(model)()
                finally:
                    torch.use_deterministic_algorithms(previous)
            """, id="put back"),
        pytest.param("""
            def run(model):
                torch.compile(model)()
                torch.use_deterministic_algorithms(False)
            """, id="switched off"),
        pytest.param("""
            import re
            PATTERN = re.compile("x")
            torch.use_deterministic_algorithms(True)
            """, id="another compile"),
        pytest.param("""
            def build(model):
                return torch.compile(model)
            def setup():
                torch.use_deterministic_algorithms(True)
            """, id="functions of their own"),
        pytest.param("""
            def parallelize(model, config):
                apply_non_moe_tp(model)
                apply_moe_ep_tp(model)
                preload_providers(model)
                apply_ac(model, config)
                apply_compile(model, config)
                apply_fsdp(model)
            """, id="the right order"),
        pytest.param("""
            def parallelize(model, config):
                preload_dataset(config)
                apply_tp(model)
                apply_ac(model, config)
                preload_checkpoint(config)
                load_state(model)
            """, id="other things that are loaded"),
    ],
)  # fmt: skip
def test_a_right_order_is_left_alone(source: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, source) == []


def test_both_lines_are_told(tmp_path: Path) -> None:
    source = """
        def parallelize(model):
            apply_tp(model)
            apply_compile(model)
            preload_providers(model)
        """
    (one,) = lint_sample(tmp_path, source).findings
    assert one.what == "`preload_providers` in parallelize runs after compile in line 8"
