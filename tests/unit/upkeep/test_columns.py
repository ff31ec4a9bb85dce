"""Which bases the matrix looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.errors import UsageError
from toolkit.project import Project
from toolkit.series import Line
from toolkit.store import Store
from toolkit.upkeep.columns import asked_columns, usual_columns
from toolkit.work import Means

ID, OTHER = "a" * 40, "b" * 40
NPU = Line(name="torch_npu/2.13", covers=("torch_npu==2.13.0",), upstream=("https://host/pytorch.git",))
OPS = Line(name="ops/9.1", covers=(f"git:{ID}",), upstream=("https://host/ops.git",))
LINES = {"torch_npu": [NPU], "ops": [OPS]}


@pytest.fixture
def means(tmp_path: Path) -> Means:
    project = Project(root=tmp_path, recipes=(), patches=(), verify=tmp_path, overlays=tmp_path)
    return Means(project=project, store=Store(tmp_path / "store"), environ={}, offline=True)


def line(name: str, *covers: str) -> Line:
    return Line(name=f"part/{name}", covers=covers)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([line("1", "part==1.10.0", "part==1.10.0.post2", "part==1.9.1")], ["part==1.9.1", "part==1.10.0.post2"]),
        ([line("2", "part==2.0"), line("1", "part==1.0")], ["part==1.0", "part==2.0"]),
        ([line("1", f"git:{ID}", "part==1.0")], ["part==1.0"]),
        ([line("1", f"git:{ID}", "installed:part==9.1")], [f"git:{ID}", "installed:part==9.1"]),
        ([line("2", "part==2.0"), line("1", f"git:{ID}")], ["part==2.0", f"git:{ID}"]),
        ([line("1", "part==1.0"), line("0", "part==1.0.post1")], ["part==1.0.post1", "part==1.0"]),
    ],
    ids=["newest-by-version", "in-order", "releases-before-commits", "commits-alone", "a-line-without-a-release",
         "a-line-whose-release-is-not-the-newest"],
)  # fmt: skip
def test_offline_the_usual_bases_come_from_what_is_covered(
    lines: Sequence[Line], expected: Sequence[str], means: Means
) -> None:
    assert [str(word) for word in usual_columns(lines, means)] == expected


def test_what_is_asked_for_is_dealt_out_by_component(means: Means) -> None:
    words = ["git:https://host/ops@main", "torch-npu==2.14.0", "torch-npu==2.14.0", f"git:{ID}"]
    found = asked_columns(words, LINES, means)
    assert {name: [str(word) for word in own] for name, own in found.items()} == {
        "torch_npu": ["torch-npu==2.14.0"],
        "ops": ["git:https://host/ops@main", f"git:{ID}"],
    }


def test_a_repository_that_stands_in_for_one_is_known(means: Means, tmp_path: Path) -> None:
    mirrored = replace(means, environ={"TOOLKIT_MIRROR_TORCH_NPU": tmp_path.as_uri()})
    assert list(asked_columns([f"git:{tmp_path}@v1"], LINES, mirrored)) == ["torch_npu"]


def test_a_strange_repository_is_that_of_the_only_component(means: Means) -> None:
    assert list(asked_columns(["git:https://elsewhere/fork.git@v1"], {"ops": [OPS]}, means)) == ["ops"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("git:https://elsewhere/fork.git@v1", "'git:https://elsewhere/fork.git@v1' may be a base of torch_npu or ops"),
        (f"git:{OTHER}", f"'git:{OTHER}' may be a base of torch_npu or ops"),
        (
            "torch_nqu==2.14.0",
            "'torch_nqu==2.14.0' is no release of what the patches are for; did you mean 'torch-npu'?",
        ),
        ("numpy==2.0", "'numpy==2.0' is no release of what the patches are for"),
    ],
    ids=["repository", "commit", "near", "far"],
)
def test_what_belongs_to_nothing_is_refused(word: str, message: str, means: Means) -> None:
    with pytest.raises(UsageError) as caught:
        asked_columns([word], LINES, means)
    assert caught.value.message == message
