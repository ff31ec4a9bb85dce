"""What an acceptance run is: data, and a file that changes it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from toolkit.errors import UsageError
from toolkit.preflight.acceptance import Acceptance, read_acceptance
from toolkit.schema import inner_tables

PAGE = Path(__file__).parents[3] / "docs" / "preflight.md"


def test_the_default_is_the_accepted_run() -> None:
    default = read_acceptance()

    assert default.compile.backend == "dvm"
    assert default.determinism.refused_by == ("auto", "vendor")
    assert {one.name: one.values or one.least for one in default.option if one.absent == "fail"} == {
        "training.dtype": ("bfloat16",), "debug.seed": None, "checkpoint.enable": ("true",),
    }  # fmt: skip


def test_every_option_can_be_proposed() -> None:
    assert [one.name for one in read_acceptance().option if not (one.values or one.least or one.example)] == []


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[compile]\nbackend = "mlir"\n\n[[option]]\nname = "training.steps"\nleast = 100\nabsent = "fail"\n\n'
        '[[option]]\nname = "training.gc_freq"\ncheck = "collection"\nwhy = "it jitters"\n'
    )
    changed, default = read_acceptance(file), read_acceptance()

    assert changed.compile.backend == "mlir"
    assert changed.compile.framework == "inductor"
    steps = next(one for one in changed.option if one.name == "training.steps")
    assert (steps.least, steps.absent, steps.check) == (100, "fail", "steps")
    assert [one.name for one in changed.option[: len(default.option)]] == [one.name for one in default.option]
    assert changed.option[-1].check == "collection"
    assert changed.path == default.path


def test_a_fault_of_a_table_has_its_place_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(
        '[[option]]\nname = "training.steps"\nleast = "many"\n\n[[option]]\nname = "a.b"\ncheck = "b"\n\n'
        '[[path]]\nname = "c.d"\ncheck = "d"\nwhyy = "e"\n'
    )
    with pytest.raises(UsageError) as refused:
        read_acceptance(Path("mine.toml"))

    assert [refused.value.message, *refused.value.details] == [
        "mine.toml is no acceptance configuration: mine.toml:3: option[0].least: expected integer, got string",
        "mine.toml:5: option[1].why: missing key",
        "mine.toml:12: path[0].whyy: unknown key; did you mean 'why'?",
    ]


def test_every_fault_of_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('[compile]\nbackened = "x"\n\n[folders]\nfresh_options = "dump_folder"\n')
    with pytest.raises(UsageError) as refused:
        read_acceptance(Path("mine.toml"))

    told = [refused.value.message, *refused.value.details]
    assert told == [
        "mine.toml is no acceptance configuration: mine.toml:2: compile.backened: unknown key",
        "mine.toml:5: folders.fresh_options: expected array, got string",
    ]
    assert refused.value.hint == "docs/preflight.md lists the tables and keys"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[compile\n", "mine.toml is no acceptance configuration: mine.toml:1:9: invalid TOML: "
         "Expected ']' at the end of a table declaration"),
        (None, "cannot read mine.toml: No such file or directory"),
        ("schema = 2\n", "mine.toml is no acceptance configuration: mine.toml:1: schema: 2 is not one of 1"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused(
    content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("mine.toml").write_text(content)
    with pytest.raises(UsageError) as refused:
        read_acceptance(Path("mine.toml"))
    assert refused.value.message == message


def test_the_page_lists_every_key() -> None:
    page = PAGE.read_text(encoding="utf-8")
    keys = [field.encode_name for table in (Acceptance, *_tables()) for field in msgspec.structs.fields(table)]

    assert [key for key in dict.fromkeys(keys) if f"`{key}`" not in page and f"[{key}]" not in page] == []


def _tables() -> list[type[msgspec.Struct]]:
    from toolkit.preflight.acceptance import OptionTable, PathTable

    return [*inner_tables(Acceptance).values(), OptionTable, PathTable]
