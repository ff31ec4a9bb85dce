"""The git lane end to end: a commit of our own upstream becomes a proven overlay, and what may go wrong on the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.native_sample import NativeSample, copy_of, make_native_sample
from tests.upstream import UNKNOWN_COMMIT, compiled_sources, compiler_calls, counting_compilers, download_requirements
from tests.upstream_edits import EDITS, Edit, Kind
from toolkit.errors import BuildError, FetchError, LockError, RecipeError, UsageError

SETUP = "def main() -> None:\n"
"""The line of the upstream's setup.py behind which an edit makes it do something else first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """A project that was built once, unshut, with compilers that note their calls in `compilers`; `answer` is JSON."""

    sample: NativeSample
    compilers: Path
    answer: dict[str, Any]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_requirements(tmp_path_factory.mktemp("wheels"), "build")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    counters = counting_compilers(folder / "compilers")
    sample = make_native_sample(folder, kinds=("python", "native"), ops=True, wheels=wheels)
    sample = replace(sample, environ=sample.environ | {name: counters[name] for name in ("CC", "CXX")})
    done = toolkit(sample, "lock")
    assert done.returncode == 0, done.stderr
    done = toolkit(sample, "build", "--sandbox", "off", "--json")
    assert done.returncode == 0, done.stderr
    return Ground(sample=sample, compilers=folder / "compilers", answer=json.loads(done.stdout))


def toolkit(sample: NativeSample, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sample.toolkit(*words), cwd=sample.root, env=sample.environ, input=stdin, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def variant(ground: Ground, folder: Path, *kinds: Kind | Edit) -> NativeSample:
    """Return the project with another series, on the same store."""
    other = copy_of(ground.sample, folder)
    other = replace(other, environ=other.environ | {"TOOLKIT_STORE": ground.sample.environ["TOOLKIT_STORE"]})
    other.set_patches(*kinds)
    return other


def edit_setup(*lines: str, slug: str = "odd-setup") -> Edit:
    """Return an edit that lets the upstream's setup.py do something before it builds."""
    body = "".join(f"    {line}\n" for line in lines)
    return replace(EDITS["native"], slug=slug, file="setup.py", changes=((SETUP, f"{SETUP}{body}"),))


def wheel_of(answer: str, component: str = "sample_npu") -> Path:
    parts = {part["component"]: part for part in json.loads(answer)["components"]}
    return Path(parts[component]["wheel"]["path"])


def leftovers(store: Path) -> list[str]:
    """List what a build that did not end well must not leave: folders it worked in, half-made entries."""
    half = [str(path.relative_to(store)) for path in store.glob("*/.part-*")]
    return half + [str(path.relative_to(store)) for path in store.glob("build/*")]


# --- the whole way -----------------------------------------------------------------------------------------------


def test_one_command_goes_from_commits_to_a_proven_overlay(ground: Ground) -> None:
    packages = {package["component"]: package for package in ground.answer["packages"]}
    npu, ops = packages["sample_npu"], packages["sample_ops"]
    git_id = ground.sample.upstream.older[:7]

    assert ground.answer["did"] == ["overlay", "proof"]
    assert ground.answer["proof_record"]["ok"] is True
    assert npu["version"].startswith(f"1.2.0+git{git_id}.p2.k")
    assert npu["base_version"] == f"1.2.0+git{git_id}"
    assert npu["patches"] == ["0001-right-answer", "0002-clamp-high"]
    assert (ops["version"].partition(".k")[0], ops["base_version"]) == ("9.1.0+p1", "9.1.0")
    reds = [one for one in ground.answer["proof_record"]["results"] if one["side"] == "base"]
    assert {one["name"]: one["status"] for one in reds} == {
        "answer": "fail", "clamp-high": "fail", "integer-head-ratio": "fail",
    }  # fmt: skip


def test_the_manifest_says_how_each_wheel_was_built(ground: Ground) -> None:
    manifest = json.loads((Path(ground.answer["overlay"]) / "manifest.json").read_bytes())
    built = {package["component"]: package["built"] for package in manifest["packages"]}

    assert built["sample_npu"]["sandbox"] == "none"
    assert len(built["sample_npu"]["tree"]) == 40
    assert "libstdc++.so.6" in built["sample_npu"]["libraries"]
    assert set(built["sample_npu"]["symbol_versions"]) >= {"GLIBC", "GLIBCXX"}
    assert built["sample_ops"]["libraries"] == []


def test_the_env_file_gives_what_was_built(ground: Ground) -> None:
    script = (
        f". {ground.answer['env_file']} && python -c 'import sample_npu, sample_npu.core, importlib.metadata as m; "
        'print(sample_npu.core.answer(), m.version("sample_npu"))\''
    )
    environ = {"PATH": f"{Path(ground.sample.toolkit()[0]).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=environ, capture_output=True, text=True, check=True)
    npu = next(one for one in ground.answer["packages"] if one["component"] == "sample_npu")
    assert done.stdout.split() == ["42", npu["version"]]


def test_a_second_build_has_nothing_to_do(ground: Ground) -> None:
    before = len(compiler_calls(ground.compilers))
    done = toolkit(ground.sample, "build")
    assert (done.returncode, len(compiler_calls(ground.compilers))) == (0, before)
    assert "nothing to do" in done.stdout


# --- what is compiled again --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((replace(EDITS["python"], changes=(("_C.add(40, 1)", "_C.add(41, 1)"),)), "native"), id="edited"),
        pytest.param(("python", "native", "python-second"), id="added"),
        pytest.param(("native",), id="dropped"),
    ],
)
def test_a_python_patch_calls_no_compiler(ground: Ground, tmp_path: Path, kinds: Sequence[Kind | Edit]) -> None:
    before = len(compiler_calls(ground.compilers))
    other = variant(ground, tmp_path, *kinds)
    done = toolkit(other, "build", "--sandbox", "off", "--json")

    assert done.returncode == 0, done.stderr
    assert len(compiler_calls(ground.compilers)) == before
    assert json.loads(done.stdout)["packages"][0]["version"] != ground.answer["packages"][0]["version"]


def test_a_native_patch_compiles_only_its_object_again(ground: Ground, tmp_path: Path) -> None:
    if shutil.which("ccache") is None:
        pytest.skip("there is no ccache")
    before = len(compiled_sources(ground.compilers))
    edit = replace(
        EDITS["native"], changes=(*EDITS["native"].changes, ("#include <algorithm>", "#include <algorithm>\n"))
    )
    other = variant(ground, tmp_path, "python", edit)
    done = toolkit(other, "build", "--sandbox", "off", "--until", "wheel", "--json")

    assert done.returncode == 0, done.stderr
    compiled = compiled_sources(ground.compilers)
    assert sorted(compiled) == sorted([*ground_sources(compiled, before), "clamp.cpp"])
    facts = json.loads(done.stdout)["components"][0]["wheel"]["built"]
    assert facts["cache"]["misses"] == 1
    assert facts["cache"]["hits"] >= 4


def ground_sources(compiled: list[str], count: int) -> list[str]:
    """Return what was compiled before one more of clamp.cpp was."""
    rest = list(compiled)
    rest.remove("clamp.cpp")
    assert len(rest) == count
    return rest


def test_a_file_that_the_build_rewrites_is_built_with_its_patch(ground: Ground, tmp_path: Path) -> None:
    rewriting = edit_setup(
        "core = ROOT / 'sample_npu/core.py'", "core.write_text(core.read_text() + '\\nREWRITTEN = True\\n')"
    )
    other = variant(ground, tmp_path, "python", rewriting, "native")
    done = toolkit(other, "build", "--sandbox", "off", "--until", "wheel", "--json")

    assert done.returncode == 0, done.stderr
    assert (
        "the built wheel's sample_npu/core.py is not the tree's own, so the whole patched tree is built" in done.stderr
    )
    with zipfile.ZipFile(wheel_of(done.stdout)) as archive:
        core = archive.read("sample_npu/core.py")
    assert b"_C.add(40, 2)" in core
    assert b"REWRITTEN" in core
    assert ".p3.k" in wheel_of(done.stdout).name


def test_two_folders_give_the_same_bytes(ground: Ground, tmp_path: Path, wheels: Path) -> None:
    first = wheel_of(toolkit(ground.sample, "build", "--sandbox", "off", "--until", "wheel", "--json").stdout)
    other = copy_of(ground.sample, tmp_path / "a folder elsewhere")
    done = toolkit(other, "build", "--sandbox", "off", "--until", "wheel", "--json")

    assert done.returncode == 0, done.stderr
    again = wheel_of(done.stdout)
    assert (again.name, again.read_bytes()) == (first.name, first.read_bytes())


def test_patches_of_submodules_and_of_what_is_generated_are_built_in(ground: Ground, tmp_path: Path) -> None:
    other = variant(ground, tmp_path, "python", "template", "gitlink", "submodule")
    done = toolkit(other, "build", "--sandbox", "off", "--json")

    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["proof_record"]["results"]
    assert {one["name"]: one["status"] for one in results if one["side"] == "base"} == {
        "answer": "fail", "bind-subtract": "fail", "newer-headers": "fail", "lower-bound": "fail",
        "integer-head-ratio": "fail",
    }  # fmt: skip


def test_a_change_that_the_commit_has_is_upstream_and_green_on_the_base(ground: Ground, tmp_path: Path) -> None:
    other = variant(ground, tmp_path, "python")
    text = other.recipe.read_text().replace(other.upstream.older, other.upstream.newer)
    other.recipe.write_text(text)
    assert toolkit(other, "lock").returncode == 0
    done = toolkit(other, "build", "--sandbox", "off")
    assert done.returncode == 9
    assert "has nothing to do: sample_npu" in done.stderr

    accepted = 'series = "sample_npu/1.2"\naccept_upstream = ["0001-right-answer"]\n'
    other.recipe.write_text(text.replace('series = "sample_npu/1.2"\n', accepted))
    done = toolkit(other, "build", "--sandbox", "off", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["patches"]["sample_npu"] == [{"name": "0001-right-answer", "status": "upstream", "offsets": []}]
    assert "0001-right-answer is skipped, the base has it already" in done.stderr
    statuses = {(one["name"], one["side"]): one["status"] for one in answer["proof_record"]["results"]}
    assert (statuses["answer", "base"], statuses["answer", "overlay"]) == ("pass", "pass")
    assert answer["packages"][0]["version"] == f"1.2.0+git{other.upstream.newer[:7]}"


# --- what a run without work notices ----------------------------------------------------------------------------


def test_a_variable_that_the_build_gets_is_noticed_when_nothing_else_changed(ground: Ground, tmp_path: Path) -> None:
    other = variant(ground, tmp_path, "python", "native")
    words = ("build", "--sandbox", "off")
    assert toolkit(other, *words).returncode == 0
    assert "nothing to do" in toolkit(other, *words).stdout
    elsewhere = counting_compilers(tmp_path / "compilers")
    changed = replace(other, environ=other.environ | {"CXX": elsewhere["CXX"]})

    assert json.loads(toolkit(changed, "key", "--json").stdout) != json.loads(toolkit(other, "key", "--json").stdout)
    done = toolkit(changed, *words, "--json")
    assert (done.returncode, json.loads(done.stdout)["did"]) == (0, ["overlay", "proof"]), done.stderr


def test_leaving_the_submodules_out_is_another_build(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    before = toolkit(other, "key").stdout
    text = other.recipe.read_text()
    other.recipe.write_text(
        text.replace(f'commit = "{other.upstream.older}"', f'commit = "{other.upstream.older}"\nsubmodules = false')
    )
    assert toolkit(other, "lock").returncode == 0
    assert toolkit(other, "key").stdout != before


def test_where_a_sandbox_is_required_a_wheel_from_without_is_built_again(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    environ = {name: value for name, value in other.environ.items() if name not in ("CC", "CXX")}
    other = replace(other, environ=environ)
    assert toolkit(other, "build", "--sandbox", "off").returncode == 0
    done = toolkit(other, "build", "--sandbox", "require", "--json")

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert {package["built"]["sandbox"] for package in answer["packages"]} <= {"bubblewrap", "network namespace"}
    done = toolkit(other, "build", "--sandbox", "require")
    assert (done.returncode, "build the wheel with" in done.stderr) == (0, False)


# --- stages ------------------------------------------------------------------------------------------------------


def test_each_stage_can_be_the_last(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    words = ("build", "--sandbox", "off", "--component", "sample_ops", "--json")

    fetched = json.loads(toolkit(other, *words, "--until", "fetch").stdout)["components"]
    assert [part["component"] for part in fetched] == ["sample_ops"]
    patched = json.loads(toolkit(other, *words, "--until", "patch", "--offline").stdout)["components"]
    assert [one["status"] for one in patched[0]["patches"]] == ["clean"]
    assert len(patched[0]["tree"]) == 40
    assert wheel_of(toolkit(other, *words, "--until", "wheel", "--offline").stdout, "sample_ops").is_file()
    assert not (other.overlays / "sample/current").exists()

    overlay = toolkit(other, "build", "--until", "overlay", "--component", "sample_ops")
    assert (overlay.returncode, "--component takes one component only" in overlay.stderr) == (
        UsageError.exit_code,
        True,
    )
    unknown = toolkit(other, "build", "--until", "patch", "--component", "sample")
    assert (unknown.returncode, "has no component 'sample'" in unknown.stderr) == (UsageError.exit_code, True)


def test_all_that_was_fetched_suffices_for_a_build_offline(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    other.set_patches("python", "gitlink", "submodule")
    assert toolkit(other, "build", "--until", "fetch").returncode == 0
    shutil.move(other.upstream.root, tmp_path / "not there")
    try:
        done = toolkit(other, "build", "--offline", "--sandbox", "off", "--json")
    finally:
        shutil.move(tmp_path / "not there", other.upstream.root)
    assert done.returncode == 0, done.stderr


def test_a_proof_that_is_not_made_is_not_written(ground: Ground, tmp_path: Path) -> None:
    done = toolkit(ground.sample, "build", "--until", "wheel", "--junit", str(tmp_path / "proof.xml"))
    assert (done.returncode, "--until wheel makes none" in done.stderr) == (UsageError.exit_code, True)


def test_an_overlay_without_a_proof_is_not_the_current_one(ground: Ground, tmp_path: Path) -> None:
    other = variant(ground, tmp_path, "python", "native")
    answer = json.loads(toolkit(other, "build", "--until", "overlay", "--json").stdout)
    assert (Path(answer["overlay"]) / "manifest.json").is_file()
    assert not (other.overlays / "sample/current").exists()


# --- what a build may not do ---------------------------------------------------------------------------------------


def failing(ground: Ground, folder: Path, *lines: str, words: Sequence[str] = ()) -> tuple[NativeSample, str]:
    """Build with a setup.py that does something first; the build must fail. Returns what was said."""
    other = variant(ground, folder, edit_setup(*lines, slug=folder.name.replace("_", "-")[:40].strip("-")))
    done = toolkit(other, "build", "--until", "wheel", *words)
    assert done.returncode == BuildError.exit_code, done.stderr
    return other, done.stderr


def test_a_build_that_asks_the_network_is_told_apart(ground: Ground, tmp_path: Path) -> None:
    _, said = failing(
        ground, tmp_path, "import urllib.request", "urllib.request.urlopen('http://192.0.2.1/', timeout=9)"
    )
    assert "asked for the network" in said


def test_a_build_that_writes_outside_of_its_folder_is_told_apart(ground: Ground, tmp_path: Path) -> None:
    outside = Path("/var/tmp") / f"toolkit-test-{os.getpid()}"
    _, said = failing(ground, tmp_path, f"open({str(outside)!r}, 'w').write('x')")
    assert f"writes outside its folder: {outside}" in said
    assert not outside.exists()


def test_a_build_does_not_have_the_callers_secrets(ground: Ground, tmp_path: Path) -> None:
    other = variant(
        ground, tmp_path, edit_setup("import os, sys", "print(sorted(os.environ.items()))", "sys.exit('shown')")
    )
    other = replace(other, environ=other.environ | {"REGISTRY_TOKEN": "not-for-builds"})
    done = toolkit(other, "build", "--until", "wheel")

    log = (other.overlays / "sample/failed-sample_npu/logs/build.log").read_text()
    assert done.returncode == BuildError.exit_code
    assert "SOURCE_DATE_EPOCH" in log
    assert "not-for-builds" not in log + done.stderr


def test_a_failed_build_is_kept_opened_by_the_debug_shell_and_begun_anew(ground: Ground, tmp_path: Path) -> None:
    other, said = failing(ground, tmp_path, "(ROOT / 'sample_npu/csrc/clamp.cpp').write_text('int x = y;')")
    assert re.search(r"clamp\.cpp:1:9: error: \S+ was not declared in this scope", said)
    assert "toolkit debug shell --recipe sample --component sample_npu" in said

    shell = toolkit(other, "debug", "shell", stdin="pwd; cat sample_npu/csrc/clamp.cpp; echo $SOURCE_DATE_EPOCH\n")
    assert shell.returncode == 0, shell.stderr
    assert "int x = y;" in shell.stdout
    assert "/tree" in shell.stdout

    kept = (other.overlays / "sample/failed-sample_npu").resolve()
    other.set_patches("python", "native")
    edit = replace(
        EDITS["native"], changes=(*EDITS["native"].changes, ("namespace sample {", "namespace sample {  //"))
    )
    other.set_patches(edit)
    assert toolkit(other, "build", "--sandbox", "off", "--until", "wheel").returncode == 0
    assert not kept.exists()
    gone = toolkit(other, "debug", "shell", "--component", "sample_ops")
    assert (gone.returncode, "there is no failed build of 'sample_ops'" in gone.stderr) == (UsageError.exit_code, True)


def test_an_interrupt_ends_the_build_and_leaves_nothing(ground: Ground, tmp_path: Path) -> None:
    other = variant(ground, tmp_path, edit_setup("import time", "print('asleep', flush=True)", "time.sleep(600)"))
    child = subprocess.Popen(
        other.toolkit("build", "--until", "wheel"), cwd=other.root, env=other.environ, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    store = Path(other.environ["TOOLKIT_STORE"])
    log = wait_for(lambda: next((p for p in store.glob("build/*/logs/build.log") if "asleep" in p.read_text()), None))
    assert running_below(log.parent.parent)
    child.send_signal(signal.SIGINT)

    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert not log.parent.parent.exists()
    assert not running_below(log.parent.parent)
    assert not list(store.glob("native/.part-*"))
    assert not list(other.overlays.glob("sample/failed-*"))


def wait_for(look: Any) -> Any:
    for _ in range(600):
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")


def running_below(folder: Path) -> list[int]:
    """List the processes whose current folder lies below `folder`, there or gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            here = os.readlink(process / "cwd")
        except OSError:
            continue
        if here.startswith(str(folder)):
            found.append(int(process.name))
    return found


def test_two_builds_at_once_compile_once(ground: Ground, tmp_path: Path) -> None:
    before = len(compiled_sources(ground.compilers))
    edit = replace(
        EDITS["native"], changes=(*EDITS["native"].changes, ("#include <algorithm>", "#include <algorithm>\n\n"))
    )
    others = [variant(ground, tmp_path / str(number), "python", edit) for number in range(2)]
    children = [
        subprocess.Popen(
            other.toolkit("build", "--sandbox", "off", "--until", "wheel"), cwd=other.root, env=other.environ,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for other in others
    ]  # fmt: skip
    said = [child.communicate(timeout=300)[1] for child in children]

    assert [child.returncode for child in children] == [0, 0], said
    assert compiled_sources(ground.compilers).count("clamp.cpp") >= 1
    assert sum("build the wheel with" in text for text in said) == 1
    assert len(compiled_sources(ground.compilers)) - before <= 5


# --- where the sources come from ------------------------------------------------------------------------------------


def test_a_mirror_takes_the_place_of_addresses_that_do_not_answer(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    gone = tmp_path / "gone"
    other.recipe.write_text(other.recipe.read_text().replace(other.upstream.root.as_uri(), gone.as_uri()))
    assert toolkit(other, "lock").returncode == 0
    words = ("build", "--until", "patch", "--component", "sample_npu", "--json")

    done = toolkit(other, *words)
    assert done.returncode == FetchError.exit_code
    assert f"{gone.as_uri()}/sample_npu.git" in done.stderr
    assert "--mirror" in done.stderr

    done = toolkit(other, *words, "--mirror", f"sample_npu={other.upstream.main}")
    assert done.returncode == 0, done.stderr
    assert [one["status"] for one in json.loads(done.stdout)["components"][0]["patches"]] == ["clean", "clean"]


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        pytest.param("{commit}", UNKNOWN_COMMIT, FetchError.exit_code, UNKNOWN_COMMIT, id="an unknown commit"),
        pytest.param("{commit}", "main", RecipeError.exit_code, "'main' is not a full commit id", id="a branch"),
        pytest.param("file://", "ext::sh -c", RecipeError.exit_code, "ext::", id="a transport that runs a command"),
    ],
)
def test_a_base_that_is_none_is_refused(
    ground: Ground, tmp_path: Path, old: str, new: str, code: int, message: str
) -> None:
    other = copy_of(ground.sample, tmp_path)
    other.recipe.write_text(other.recipe.read_text().replace(old.format(commit=other.upstream.older), new))
    done = toolkit(other, "lock")
    if done.returncode == 0:
        done = toolkit(other, "build", "--until", "patch")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_a_mirror_for_what_the_recipe_does_not_name_is_told(ground: Ground, tmp_path: Path) -> None:
    words = ("build", "--until", "patch", "--component", "sample_npu", "--mirror", f"sample_np={tmp_path}")
    done = toolkit(ground.sample, *words)
    assert done.returncode == 0
    assert "TOOLKIT_MIRROR_SAMPLE_NP; did you mean 'TOOLKIT_MIRROR_SAMPLE_NPU'?" in done.stderr
    done = toolkit(ground.sample, "build", "--mirror", "https://me:secret@h/x")
    assert (done.returncode, "secret" in done.stderr) == (UsageError.exit_code, False)


@pytest.mark.parametrize(("name", "said"), [("it's", "build tools stumble over"), ("a\nb", "has control characters")])
def test_a_store_that_no_build_could_work_in_is_refused(ground: Ground, tmp_path: Path, name: str, said: str) -> None:
    other = copy_of(ground.sample, tmp_path)
    done = toolkit(other, "build", "--until", "wheel", "--store", str(tmp_path / name))
    assert (done.returncode, said in done.stderr) == (UsageError.exit_code, True), done.stderr


def test_offline_needs_what_was_fetched_before(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    far = "https://git.example.invalid"
    other.recipe.write_text(other.recipe.read_text().replace(other.upstream.root.as_uri(), far))
    assert toolkit(other, "lock").returncode == 0
    words = ("build", "--until", "patch", "--component", "sample_npu", "--offline")
    done = toolkit(other, *words)
    assert done.returncode == FetchError.exit_code
    assert "offline nothing is fetched" in done.stderr

    done = toolkit(other, *words, "--mirror", f"sample_npu={other.upstream.main}")
    assert done.returncode == 0, done.stderr


def test_a_lock_for_other_requirements_is_stale(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    other.recipe.write_text(other.recipe.read_text().replace('"setuptools>=70.1"', '"setuptools>=70.2"', 1))
    done = toolkit(other, "build", "--until", "patch")
    assert (done.returncode, "stale" in done.stderr) == (LockError.exit_code, True)


def test_a_lock_that_was_edited_by_hand_is_refused(ground: Ground, tmp_path: Path) -> None:
    other = copy_of(ground.sample, tmp_path)
    lock = other.recipe.with_suffix(".lock")
    text = lock.read_text()
    blocks = text.split("[[component.requirement]]\n")
    pybind = next(block for block in blocks if block.startswith('distribution = "pybind11"'))

    lock.write_text(text.replace(f"[[component.requirement]]\n{pybind}", f"[[component.requirement]]\n{pybind}" * 2, 1))
    done = toolkit(other, "key")
    assert (done.returncode, "there are two wheels of pybind11 for" in done.stderr) == (LockError.exit_code, True)
    lock.write_text(text.replace(f"[[component.requirement]]\n{pybind}", "", 1))
    done = toolkit(other, "build")
    assert (done.returncode, "the lock has no pybind11 for" in done.stderr) == (LockError.exit_code, True)


# --- elsewhere -----------------------------------------------------------------------------------------------------


def test_an_exported_cache_builds_without_sources_and_without_a_compiler(ground: Ground, tmp_path: Path) -> None:
    file = tmp_path / "cache.tar"
    assert toolkit(ground.sample, "cache", "export", str(file)).returncode == 0
    other = copy_of(ground.sample, tmp_path / "elsewhere")
    assert toolkit(other, "cache", "import", str(file)).returncode == 0
    before = len(compiler_calls(ground.compilers))

    done = toolkit(other, "build", "--offline", "--json")
    assert done.returncode == 0, done.stderr
    assert len(compiler_calls(ground.compilers)) == before
    assert json.loads(done.stdout)["key"] == ground.answer["key"]
