"""Metadata folders read as they come, and RECORD against the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor_sites import install
from toolkit.doctor.installed import Damage, damage_of, read_installed, value_in, version_in


def test_distributions_in_the_order_of_the_path(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    install(one, "torch_npu", "2.13.0", {}, requires=("torch==2.13.0.*",))
    install(two, "Torch.NPU", "2.12.0", {}, source="/src/torch_npu")
    install(two, "torch", "2.12.0", {})
    (two / "torch_npu-0.dist-info").write_text("a file, no folder", "utf-8")

    found = read_installed([str(two), "/nowhere", str(one), str(two)], tmp_path, lambda name: name == "torch-npu")

    assert [(str(item), item.site, item.requires, item.source) for item in found] == [
        ("torch-npu 2.12.0", two, (), "/src/torch_npu"),
        ("torch-npu 2.13.0", one, ("torch==2.13.0.*",), ""),
    ]


def test_an_egg_info_of_a_develop_install(tmp_path: Path) -> None:
    info = tmp_path / "torch_npu.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: torch-npu\nVersion: 2.12.0+gitf380339\n", "utf-8")

    (found,) = read_installed([""], tmp_path, lambda name: name == "torch-npu")

    assert str(found) == "torch-npu 2.12.0+gitf380339"


@pytest.mark.parametrize("told", ["{", "[]", '{"dir_info": 3}'], ids=["no JSON", "a list", "no table"])
def test_a_direct_url_that_says_nothing(tmp_path: Path, told: str) -> None:
    (install(tmp_path, "torch", "1", {}) / "direct_url.json").write_text(told, "utf-8")

    (found,) = read_installed([str(tmp_path)], tmp_path, lambda name: True)

    assert found.source == ""


def test_damage_is_told_by_kind(tmp_path: Path) -> None:
    files = {f"pack/{name}": name for name in ("a.py", "b.py", "c.so", "d.so")}
    install(tmp_path, "pack", "1", {**files, "other/e.py": ""})
    (found,) = read_installed([str(tmp_path)], tmp_path, lambda name: True)
    assert damage_of(found, "pack", lambda path: True) == Damage(checked=4, missing=(), changed=())

    (tmp_path / "pack" / "a.py").write_text("x.py", "utf-8")
    (tmp_path / "pack" / "b.py").unlink()
    (tmp_path / "pack" / "c.so").write_text("x.so", "utf-8")
    (tmp_path / "pack" / "d.so").write_text("longer", "utf-8")
    (tmp_path / "other" / "e.py").unlink()
    damage = damage_of(found, "pack", lambda path: path.endswith(".py"))

    assert damage == Damage(checked=4, missing=("pack/b.py",), changed=("pack/a.py", "pack/d.so"))
    assert str(damage) == "of 4 files 1 missing (such as pack/b.py) and 2 changed (such as pack/a.py)"


@pytest.mark.parametrize("record", ["a,b\n", "", 'pack/a.py,sha256=x,"'], ids=["two fields", "empty", "no CSV"])
def test_a_record_that_cannot_be_read_decides_nothing(tmp_path: Path, record: str) -> None:
    (install(tmp_path, "pack", "1", {"pack/a.py": ""}) / "RECORD").write_text(record, "utf-8")
    (found,) = read_installed([str(tmp_path)], tmp_path, lambda name: True)

    assert damage_of(found, "pack", lambda path: True) == Damage(checked=0, missing=(), changed=())


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("version.py", "__version__ = '2.13.0+cpu'\n", "2.13.0+cpu"),
        ("version.py", '__version__: str = "2.13.0"\n', "2.13.0"),
        ("_version.py", "x = 1\n__version__ = '1'\n", "1"),
        ("__init__.py", "if True:\n    __version__ = '1'\n", ""),
        ("other.py", "__version__ = '1'\n", ""),
    ],
)
def test_the_version_that_the_files_say(tmp_path: Path, name: str, text: str, version: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")

    assert version_in(tmp_path) == version


def test_a_value_that_is_no_string_is_none(tmp_path: Path) -> None:
    file = tmp_path / "version.py"
    file.write_text("cuda: Optional[str] = None\nhip: Optional[str] = '6.2'\ngit_version = 'abc'\n", "utf-8")

    assert [value_in(file, name) for name in ("cuda", "hip", "git_version", "xpu")] == ["", "6.2", "abc", ""]
