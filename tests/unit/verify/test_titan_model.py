"""How the DeepSeek-V4 model of torchtitan_npu is got hold of, on a small package of the same shape."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.verify_cases import write_files, write_manifest
from toolkit.files import sha256_file
from verify.checks.titan_model import TAKEN, stand_ins

Run = Callable[..., dict[str, Any]]

VERSION = "0.2.2.post2+p4.k12345678"
PACKAGES = [
    {
        "component": "torchtitan_npu", "import_name": "torchtitan_npu", "distribution": "torchtitan_npu",
        "version": VERSION,
    }
]  # fmt: skip
MODEL = "torchtitan_npu/models/deepseek_v4/model/model.py"
PATCHES = "raise RuntimeError('torchtitan is patched here')\n"
FILES = {
    "torchtitan_npu/__init__.py": PATCHES,
    "torchtitan_npu/models/common/__init__.py": "",
    "torchtitan_npu/models/common/loss.py": "SCALE = 1\n",
    "torchtitan_npu/models/deepseek_v4/__init__.py": PATCHES,
    "torchtitan_npu/models/deepseek_v4/model/args.py": """
from dataclasses import dataclass
from torchtitan.config import JobConfig
from torchtitan.models.utils import get_moe_model_nparams_and_flops
from torchtitan.protocols.model import BaseModelArgs
from torchtitan.tools.logging import logger
from .moe import MoE

@dataclass
class Args(BaseModelArgs):
    eps: float = 1e-6
    def update(self, config: JobConfig) -> None: ...
""",
    "torchtitan_npu/models/deepseek_v4/model/moe.py": """
from torchtitan.models.moe.moe import MoE, TokenChoiceTopKRouter
class MoE(MoE): pass
""",
    MODEL: """
import scipy
from torchtitan.protocols.model import AttentionMasksType
from torchtitan.protocols.train_spec import ModelProtocol
from torchtitan_npu.models.common.loss import SCALE
from .args import Args
def attend(masks: AttentionMasksType | None) -> None: ...
class Model(ModelProtocol): pass
""",
    f"torchtitan_npu-{VERSION}.dist-info/METADATA": f"Name: torchtitan_npu\nVersion: {VERSION}\n",
}
MODULES = [
    "torchtitan_npu",
    "torchtitan_npu.models",
    "torchtitan_npu.models.common",
    "torchtitan_npu.models.common.loss",
    "torchtitan_npu.models.deepseek_v4",
    "torchtitan_npu.models.deepseek_v4.model",
    "torchtitan_npu.models.deepseek_v4.model.args",
    "torchtitan_npu.models.deepseek_v4.model.model",
    "torchtitan_npu.models.deepseek_v4.model.moe",
]


@pytest.fixture
def titan(site: Path) -> Path:
    """Add the package to the site, which has a torch_npu."""
    return write_files(site, FILES)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Make a folder in which all is installed that the package needs, and say so to whoever imports it."""
    names = {name.replace(".", "/"): taken for name, taken in TAKEN.items()}
    files = {
        f"{name}{'/__init__' if name == 'scipy' else ''}.py": "".join(f"class {word}: pass\n" for word in taken)
        for name, taken in names.items()
    }
    return write_files(tmp_path / "installed", {"torchtitan/__init__.py": "", **files})


def missing() -> str:
    return ", ".join(name for name in ("scipy", "torchtitan") if importlib.util.find_spec(name) is None)


def test_the_model_is_loaded_by_itself_where_something_is_not_installed(run_check: Run, titan: Path) -> None:
    record = run_check("titan-model", packages=PACKAGES)
    detail = f"{titan / MODEL}, imported by itself, without {missing()}"
    assert (record["status"], record["detail"]) == ("pass", detail)
    assert record["evidence"] == {
        "file": str(titan / MODEL),
        "sha256": sha256_file(titan / MODEL),
        "imported": f"by itself, without {missing()}",
        "modules": MODULES,
    }


def test_the_whole_package_is_imported_where_all_is_installed(run_check: Run, titan: Path, installed: Path) -> None:
    around = {name: "READY = True\n" for name, text in FILES.items() if text == PATCHES}
    model = "import torchtitan_npu\nassert torchtitan_npu.READY and torchtitan_npu.models.deepseek_v4.READY\n"
    write_files(titan, {**around, MODEL: FILES[MODEL] + model})
    record = run_check("titan-model", packages=PACKAGES, before=[installed])
    detail = f"{titan / MODEL}, imported with its whole package"
    assert (record["status"], record["detail"]) == ("pass", detail)


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("from torchtitan.protocols.model import Other", "ImportError: cannot import name 'Other' from"),
        ("import torchtitan.components", "ModuleNotFoundError: No module named 'torchtitan.components'"),
        ("import absent_package", "ModuleNotFoundError: No module named 'absent_package'"),
    ],
    ids=["name", "module", "package"],
)
def test_nothing_stands_in_for_what_the_model_did_not_need_so_far(
    run_check: Run, titan: Path, line: str, detail: str
) -> None:
    write_files(titan, {MODEL: f"{line}\n{FILES[MODEL]}"})
    record = run_check("titan-model", packages=PACKAGES)
    assert record["status"] == "error"
    assert record["detail"].startswith(detail)


def test_another_copy_before_the_site_is_named(run_check: Run, titan: Path, tmp_path: Path) -> None:
    other = write_files(tmp_path / "other", FILES)
    record = run_check("titan-model", packages=PACKAGES, before=[other])
    assert record["status"] == "fail"
    assert record["detail"].startswith(
        f"torchtitan_npu is not imported from {titan}: the earlier PYTHONPATH entry {other} stands in its place"
    )


def test_a_witness_does_not_judge_another_copy(run_check: Run, titan: Path, tmp_path: Path) -> None:
    other = write_files(tmp_path / "other", FILES)
    record = run_check("titan-query-norm", packages=PACKAGES, before=[other])
    assert record["status"] == "error"
    assert record["detail"].startswith(
        f"ImportError: module torchtitan_npu was loaded from {other}/torchtitan_npu/__init__.py; "
    )


def test_a_file_that_is_not_the_manifest_s_is_named(run_check: Run, titan: Path) -> None:
    listed = sha256_file(titan / MODEL)
    write_manifest(titan)
    write_files(titan, {MODEL: FILES[MODEL] + "\n"})
    record = run_check("titan-model", packages=PACKAGES)
    detail = f"{MODEL} has sha256 {sha256_file(titan / MODEL)}, listed {listed}"
    assert (record["status"], record["detail"]) == ("fail", detail)


def test_a_file_that_the_manifest_lacks_is_named(run_check: Run, titan: Path) -> None:
    (titan / MODEL).unlink()
    write_manifest(titan)
    write_files(titan, {MODEL: FILES[MODEL]})
    record = run_check("titan-model", packages=PACKAGES)
    detail = f"{MODEL} has sha256 {sha256_file(titan / MODEL)}, listed none"
    assert (record["status"], record["detail"]) == ("fail", detail)


def test_a_distribution_of_another_version_is_named(run_check: Run, titan: Path) -> None:
    packages = [{**PACKAGES[0], "version": "0.2.2.post2"}]
    record = run_check("titan-model", packages=packages)
    detail = f"distribution torchtitan_npu is {VERSION} in {titan}, expected 0.2.2.post2 in {titan}"
    assert (record["status"], record["detail"]) == ("fail", detail)


def test_stand_ins_are_classes_and_gone_afterwards() -> None:
    names = absent_names()
    with stand_ins(["absent"], taken=names):
        protocols = importlib.import_module("absent.protocols.model")
        assert isinstance(protocols.Masks | None, type(int | None))
        assert type("Derived", (protocols.Masks,), {})()
        assert importlib.import_module("absent.config").Config is not protocols.Masks
        assert "other" not in sys.modules
    assert not [name for name in sys.modules if name.split(".")[0] in ("absent", "other")]


def test_stand_ins_are_gone_after_a_failure_too() -> None:
    with pytest.raises(ZeroDivisionError), stand_ins(["absent"], taken=absent_names()):
        raise ZeroDivisionError
    assert not [name for name in sys.modules if name.split(".")[0] == "absent"]


def absent_names() -> Mapping[str, tuple[str, ...]]:
    return {"absent.protocols.model": ("Masks",), "absent.config": ("Config",), "other": ()}
