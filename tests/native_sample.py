"""A whole project in small whose base is a commit: our own upstream, a series, a recipe and a witness for each patch.

Like `tests/sample.py`, with a base that has to be compiled. The series begins with the patch `python`, which makes
`sample_npu.core.answer()` 42.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.sample import ANSWER, CHECKS, LOADS, own_tag, silent_console, torch_version
from tests.upstream import Upstream, build_requirements, download_requirements, make_patches, make_upstream
from tests.upstream_edits import EDITS, Edit, Kind
from toolkit import pipeline
from toolkit.current import RecipeFolder, facts_of, recipe_folder
from toolkit.plan import Plan, make_plan
from toolkit.project import Project, find_project
from toolkit.store import Store
from toolkit.work import Means

RECIPE = """\
schema = 1
description = "a sample whose base is a commit"

[target]
python = ["{python_tag}"]
platforms = ["{platform}"]
torch = "{torch}"

[[component]]
name = "sample_npu"
series = "sample_npu/1.2"

[component.base]
kind = "git"
urls = ["{url}"]
commit = "{commit}"

[component.base.build]
backend = "setup.py"
requires = {requires}
pass_env = ["CC", "CXX"]
"""

OPS_COMPONENT = """
[[component]]
name = "sample_ops"
series = "sample_ops/9.1"

[component.base]
kind = "git"
urls = ["{url}"]
commit = "{commit}"
subfolder = "torch_extension"
submodules = false

[component.base.build]
backend = "pep517"
requires = ["build", "setuptools>=70.1"]
"""

VERIFY = """
[env]
SAMPLE_BACKEND = "small"

[verify]
checks = ["loads"]
"""

WITNESS = """\
from verify.contract import failed, passed


def check(request):
    {statement}
    return passed(str(value)) if value == {right} else failed(f"it is {{value}}")
"""

SEEN = {
    "scalar-numel": ("from sample_npu import shapes; value = shapes.numel(())", 1),
    "clamp-high": ("from sample_npu import _C; value = _C.clamp(9, 0, 5)", 5),
    "bind-subtract": ("from sample_npu import _C; value = hasattr(_C, 'subtract')", True),
    "newer-headers": ("from sample_npu import _C; value = _C.headers_release()", 2),
    "lower-bound": ("from sample_npu import core; value = core.is_error(-1_000_000, -1)", True),
    "integer-head-ratio": (
        "from sample_ops.ops.attention import softmax_shape; value = str(softmax_shape((1, 8, 64, 2), (1, 8, 1, 2)))",
        "'(1, 1, 8, 64)'",
    ),
}
"""What each patch's witness computes, and the value that it must have; `answer` is the one of `tests/sample.py`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeSample:
    """A project at `root` on repositories of its own; `environ` lets pip find build requirements without an index."""

    root: Path
    upstream: Upstream
    environ: dict[str, str]

    @property
    def series(self) -> Path:
        """The folder of the patches of `sample_npu`."""
        return self.root / "patches/sample_npu/1.2"

    @property
    def recipe(self) -> Path:
        """Its only recipe."""
        return self.root / "recipes/sample.toml"

    @property
    def overlays(self) -> Path:
        """Where its overlays go."""
        return self.root / "overlays"

    @property
    def store(self) -> Store:
        """Where it keeps what it fetched and built."""
        return Store(Path(self.environ["TOOLKIT_STORE"]))

    @property
    def project(self) -> Project:
        """Its places, as a command finds them."""
        return find_project(start=self.root, environ={})

    @property
    def folder(self) -> RecipeFolder:
        """The folder of its recipe's overlays."""
        return recipe_folder(self.project, "sample")

    def plan(self) -> Plan:
        """Plan a build of it for this interpreter."""
        return make_plan(
            project=self.project, name="sample", interpreter=Path(sys.executable), environ=self.environ,
            python_tag=None, platform=None,
        )  # fmt: skip

    def build(self) -> pipeline.BuildResult:
        """Build it in this process."""
        means = Means(project=self.project, store=self.store, environ=self.environ)
        facts = facts_of(self.project, self.folder, "sample", sys.executable, self.environ)
        return pipeline.build(self.plan(), means, silent_console(), facts=facts)

    def toolkit(self, *words: str) -> list[str]:
        """Return the argv of a toolkit command on this project."""
        return [sys.executable, "-m", "toolkit", *words]

    def set_patches(self, *kinds: Kind | Edit) -> list[Path]:
        """Let the series of `sample_npu` be patches of these kinds, in this order."""
        if self.series.exists():
            shutil.rmtree(self.series)
        return make_patches(self.upstream, kinds, self.series)


def copy_of(sample: NativeSample, folder: Path) -> NativeSample:
    """Copy the project as a clone of it would be: with its lock, without overlays, with a store of its own."""
    root = folder / "project"
    shutil.copytree(sample.root, root, ignore=shutil.ignore_patterns("overlays"))
    environ = sample.environ | {"TOOLKIT_PROJECT": str(root), "TOOLKIT_STORE": str(folder / "store")}
    return replace(sample, root=root, environ=environ)


def make_native_sample(
    folder: Path, *, kinds: Sequence[Kind | Edit] = ("python",), ops: bool = False, wheels: Path | None = None
) -> NativeSample:
    """Write the project and its repositories below `folder`; the lock is left to `toolkit lock`.

    With `ops` there is a second component, in Python only. `wheels` is a folder that `download_requirements` has
    filled, so that many samples can share it.
    """
    root = folder / "project"
    upstream = make_upstream(folder / "upstream")
    wheels = wheels or download_requirements(folder / "wheels", "build")
    (root / "recipes").mkdir(parents=True)
    (root / "recipes/sample.toml").write_text(_recipe_text(upstream, ops=ops), encoding="utf-8")
    _write_verify(root / "verify")
    if ops:
        make_patches(upstream, ["ops"], root / "patches/sample_ops/9.1")
    sample = NativeSample(root=root, upstream=upstream, environ=_environ(root, folder / "store", wheels))
    sample.set_patches(*kinds)
    return sample


def _recipe_text(upstream: Upstream, *, ops: bool) -> str:
    tag = own_tag()
    main = RECIPE.format(
        python_tag=tag.interpreter, platform=tag.platform, torch=torch_version(), url=upstream.main.as_uri(),
        commit=upstream.older, requires=json.dumps(build_requirements()),
    )  # fmt: skip
    second = OPS_COMPONENT.format(url=upstream.ops.as_uri(), commit=upstream.ops_older) if ops else ""
    return main + second + VERIFY


def _environ(root: Path, store: Path, wheels: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TOOLKIT_"))}
    return kept | {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONFIG_FILE": os.devnull,
        "TOOLKIT_PROJECT": str(root),
        "TOOLKIT_STORE": str(store),
        "TOOLKIT_RECIPE": "sample",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }


def _write_verify(folder: Path) -> None:
    """Write a witness for each patch beside the real verify's ways to run them."""
    real = Path(__file__).parent.parent / "verify"
    folder.mkdir()
    for path in real.glob("*.py"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "loads.py").write_text(LOADS, encoding="utf-8")
    (folder / "answer.py").write_text(ANSWER, encoding="utf-8")
    checks = dict(CHECKS)
    for edit in EDITS.values():
        if edit.witness in SEEN:
            module = edit.witness.replace("-", "_")
            statement, right = SEEN[edit.witness]
            (folder / f"{module}.py").write_text(WITNESS.format(statement=statement, right=right), encoding="utf-8")
            checks[edit.witness] = CHECKS["answer"] | {"module": f"verify.{module}", "summary": edit.subject}
    (folder / "checks.json").write_text(json.dumps(checks), encoding="utf-8")
