"""A whole project in small: a release wheel, a series, a recipe and checks that need no torch, for tests of the story.

The wheel's fault is that `sample_npu.core.answer()` gives 41; the series makes it 42, and the witness looks at that.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import packaging.tags

from tests.wheels import make_wheel
from toolkit import pipeline
from toolkit.current import RecipeFolder, facts_of, recipe_folder
from toolkit.plan import Plan, make_plan
from toolkit.project import Project, find_project
from toolkit.report import Console
from toolkit.store import Store
from toolkit.work import Means

RECIPE = """\
schema = 1
description = "a sample"

[target]
python = ["{python_tag}"]
platforms = ["{platform}"]
torch = "{torch}"

[[component]]
name = "sample_npu"
series = "sample_npu/1.0"

[component.base]
kind = "wheel"
distribution = "sample_npu"
version = "1.0"

[env]
SAMPLE_BACKEND = "small"

[verify]
checks = ["loads"]
"""

PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: The toolkit authors <toolkit@example.invalid>
Date: Tue, 1 Sep 2026 00:00:00 +0000
Subject: [PATCH] sample: give the right answer

Without it `answer()` is 41.

Upstream-Status: Pending [a sample]
Witness: answer
---
 sample_npu/core.py | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/sample_npu/core.py b/sample_npu/core.py
index 1111111..2222222 100644
--- a/sample_npu/core.py
+++ b/sample_npu/core.py
@@ -1,2 +1,2 @@
 def answer():
-    return 41
+    return 42
"""

LINE = """\
schema = 1
covers = ["sample_npu==1.0"]
"""

CHECKS = {
    "loads": {
        "module": "verify.loads",
        "group": "import",
        "sides": ["overlay"],
        "env": {},
        "static": False,
        "summary": "the package is imported from the overlay",
    },
    "answer": {
        "module": "verify.answer",
        "sides": ["base", "overlay"],
        "witness": True,
        "static": False,
        "env": {},
        "summary": "the answer is right",
    },
}

LOADS = """\
from verify.contract import failed, passed


def check(request):
    import sample_npu

    if sample_npu.__file__.startswith(str(request.site)):
        return passed("it comes from the overlay", file=sample_npu.__file__)
    return failed("it comes from elsewhere", file=sample_npu.__file__)
"""

ANSWER = """\
from verify.contract import failed, passed


def check(request):
    from sample_npu.core import answer

    return passed("42") if answer() == 42 else failed(f"the answer is {answer()}")
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A project at `root`; `environ` lets pip find its wheel in a folder, without an index."""

    root: Path
    wheel: Path
    environ: dict[str, str]

    @property
    def patch(self) -> Path:
        """The series' only patch."""
        return self.root / "patches/sample_npu/1.0/0001-right-answer.patch"

    @property
    def line(self) -> Path:
        """Which bases its series is for."""
        return self.patch.with_name("series.toml")

    @property
    def recipe(self) -> Path:
        """Its only recipe."""
        return self.root / "recipes/sample.toml"

    @property
    def overlays(self) -> Path:
        """Where its overlays go."""
        return self.root / "overlays"

    @property
    def project(self) -> Project:
        """Its places, as a command finds them."""
        return find_project(start=self.root, environ={})

    @property
    def folder(self) -> RecipeFolder:
        """The folder of its recipe's overlays."""
        return recipe_folder(self.project, "sample")

    @property
    def means(self) -> Means:
        """What a build of it works with."""
        return Means(project=self.project, store=Store(Path(self.environ["TOOLKIT_STORE"])), environ=self.environ)

    @property
    def facts(self) -> dict[str, str]:
        """The facts of a build of it in this interpreter."""
        return facts_of(self.project, self.folder, "sample", sys.executable, self.environ)

    def plan(self, *, python_tag: str | None = None, platform: str | None = None) -> Plan:
        """Plan a build of it, for this interpreter unless told otherwise."""
        return make_plan(
            project=self.project,
            name="sample",
            interpreter=Path(sys.executable),
            environ=self.environ,
            python_tag=python_tag,
            platform=platform,
        )

    def build(self, plan: Plan | None = None) -> pipeline.BuildResult:
        """Build it in this process, by a plan made now or before."""
        return pipeline.build(plan or self.plan(), self.means, silent_console(), facts=self.facts)

    def toolkit(self, *words: str) -> list[str]:
        """Return the argv of a toolkit command on this project."""
        return [sys.executable, "-m", "toolkit", *words]


def silent_console() -> Console:
    """Return a console that nobody sees."""
    return Console(stdout=io.StringIO(), stderr=io.StringIO(), environ={})


def copy_of(sample: Sample, folder: Path) -> Sample:
    """Copy the project as a clone of it would be: with its lock, without overlays, with a store of its own."""
    root = folder / "project"
    shutil.copytree(sample.root, root, ignore=shutil.ignore_patterns("overlays"))
    environ = sample.environ | {"TOOLKIT_PROJECT": str(root), "TOOLKIT_STORE": str(folder / "store")}
    return Sample(root=root, wheel=sample.wheel, environ=environ)


def make_sample(folder: Path, *, store: Path | None = None) -> Sample:
    """Write the project below `folder`, its lock made for the wheel that it writes too."""
    root = folder / "project"
    tag = own_tag()
    platform = tag.platform
    wheel = make_wheel(folder / "index", "sample_npu", tag=f"{tag.interpreter}-{tag.abi}-{platform}")
    (root / "recipes").mkdir(parents=True)
    recipe = RECIPE.format(python_tag=tag.interpreter, platform=platform, torch=torch_version())
    (root / "recipes/sample.toml").write_text(recipe, encoding="utf-8")
    _write_verify(root / "verify")
    patch = root / "patches/sample_npu/1.0/0001-right-answer.patch"
    patch.parent.mkdir(parents=True)
    patch.write_text(PATCH, encoding="utf-8")
    patch.with_name("series.toml").write_text(LINE, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TOOLKIT_"))}
    environ |= {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_CONFIG_FILE": os.devnull,
        "TOOLKIT_PROJECT": str(root),
        "TOOLKIT_STORE": str(store or folder / "store"),
        "TOOLKIT_RECIPE": "sample",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    return Sample(root=root, wheel=wheel, environ=environ)


def _write_verify(folder: Path) -> None:
    """Write checks of our own beside the real verify's ways to run them."""
    real = Path(__file__).parent.parent / "verify"
    folder.mkdir()
    for name in ("__init__.py", "__main__.py", "contract.py"):
        (folder / name).write_bytes((real / name).read_bytes())
    (folder / "checks.json").write_text(json.dumps(CHECKS), encoding="utf-8")
    (folder / "loads.py").write_text(LOADS, encoding="utf-8")
    (folder / "answer.py").write_text(ANSWER, encoding="utf-8")


def own_tag() -> packaging.tags.Tag:
    return next(tag for tag in packaging.tags.sys_tags() if tag.platform.startswith("manylinux_2"))


def torch_version() -> str:
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return "2.13.0"
