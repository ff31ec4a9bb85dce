"""Options in any spelling come to one name and value, and the last one given wins."""

from __future__ import annotations

import pytest

from toolkit.launch.options import read_options


def values(*words: str) -> dict[str, str | None]:
    return {name: option.value for name, option in read_options(words)[0].items()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--training.steps=10"], {"training.steps": "10"}),
        (["--training.steps", "10"], {"training.steps": "10"}),
        (["--training.global-batch-size", "16"], {"training.global_batch_size": "16"}),
        (["--training.global_batch-size=16"], {"training.global_batch_size": "16"}),
        (["--parallelism.data_parallel_shard_degree", "-1"], {"parallelism.data_parallel_shard_degree": "-1"}),
        (["--checkpoint.enable"], {"checkpoint.enable": "true"}),
        (["--checkpoint.no-enable"], {"checkpoint.enable": "false"}),
        (["--checkpoint.no_enable"], {"checkpoint.enable": "false"}),
        (["--no-checkpoint.enable"], {"checkpoint.enable": "false"}),
        (["--checkpoint.enable=False"], {"checkpoint.enable": "false"}),
        (["--checkpoint.enable", "0"], {"checkpoint.enable": "false"}),
        (["--checkpoint.enable", "--compile.enable"], {"checkpoint.enable": "true", "compile.enable": "true"}),
        (["--checkpoint.load-only", "word"], {"checkpoint.load_only": "true"}),
        (["--checkpoint.no-enable=false"], {"checkpoint.enable": "true"}),
        (["--training.dtype="], {"training.dtype": ""}),
        (["--training.notes", "no-such"], {"training.notes": "no-such"}),
        (["--compile.components=model,loss"], {"compile.components": "model,loss"}),
        (["--debug.seed"], {"debug.seed": "true"}),
        (["--dump_folder=/a=b"], {"dump_folder": "/a=b"}),
        (["--dump_folder=\0OUT\0/dvm"], {"dump_folder": None}),
        (["--compile.no-enable=\0X\0"], {"compile.enable": None}),
        (["--job.dump_folder=/o"], {"dump_folder": "/o"}),
        (["--training.no-deterministic"], {"debug.deterministic": "false"}),
        (["--", "--training.steps=10"], {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_is_read_in_any_spelling(words: list[str], expected: dict[str, str | None]) -> None:
    assert values(*words) == expected


def test_the_last_of_a_repeated_option_wins_and_the_others_are_kept() -> None:
    options, _ = read_options(
        ["--training.steps=1", "--checkpoint.enable", "--training.steps", "10", "--checkpoint.no-enable"]
    )

    assert options["training.steps"].value == "10"
    assert options["training.steps"].earlier == ("1",)
    assert options["training.steps"].written == "--training.steps 10"
    assert options["checkpoint.enable"].value == "false"
    assert options["checkpoint.enable"].earlier == ("true",)
    assert options["checkpoint.enable"].written == "--checkpoint.no-enable"


def test_what_is_no_option_is_positional() -> None:
    _, positionals = read_options(["config.toml", "--compile.enable", "more", "--", "--not-one"])

    assert positionals == ("config.toml", "more", "--not-one")
