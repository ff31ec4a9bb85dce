"""The env files in real shells: what they do to the environment is what `envfile.activate` says, and can be undone."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolkit.envfile import Activation, activate, render

POSIX = {
    "sh": ["sh", "-eu"],
    "dash": ["dash", "-eu"],
    "bash": ["bash", "--noprofile", "--norc", "-eu", "-o", "pipefail"],
    "bash --posix": ["bash", "--posix", "-eu"],
    "zsh": ["zsh", "-f", "-eu"],
    "busybox ash": ["busybox", "ash", "-eu"],
}
SHELLS = {**POSIX, "fish": ["fish", "--no-config"]}
VOLATILE = {"_", "SHLVL", "PWD", "OLDPWD"}

CALLERS: dict[str, dict[str, str]] = {
    "unset": {},
    "empty": {"PYTHONPATH": ""},
    "one": {"PYTHONPATH": "/opt/lib"},
    "empty entries": {"PYTHONPATH": ":/opt/a::/opt/b c:"},
    "only colons": {"PYTHONPATH": "::"},
    "glob and quotes": {"PYTHONPATH": "/opt/*:/opt/it's:$HOME:/opt/$(id)"},
    "own variables set": {"TORCH_EXTENSIONS_DIR": "/mine", "TRITON_CACHE_DIR": "", "MODE": "a\nb 'c' $d"},
}
NAMES = ["plain", "with space", "it's", 'say "$HOME" `id` \\', "two\nlines"]


@pytest.fixture(params=SHELLS, ids=lambda name: name.replace(" ", "-"))
def shell(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(SHELLS[name][0]) is None:
        pytest.skip(f"{SHELLS[name][0]} is not installed")
    return name


def activation_at(root: Path, **variables: str) -> Activation:
    (root / "site").mkdir(parents=True, exist_ok=True)
    own = {"TOOLKIT_OVERLAY": str(root), "TORCH_EXTENSIONS_DIR": str(root / "torch_extensions")}
    return Activation(
        recipe="sample",
        key="0123456789abcdef",
        versions="sample 1.0+p1.k01234567",
        root=root,
        variables={**own, "TRITON_CACHE_DIR": str(root / "cache" / "triton"), **variables},
    )


def write_env_file(shell: str, activation: Activation, path: Path) -> str:
    """Write the env file and return the command that sources it."""
    kind = "fish" if shell == "fish" else "sh"
    path.write_text(render("fish" if kind == "fish" else "sh", activation), encoding="utf-8")
    return f"{'source' if kind == 'fish' else '.'} {shlex.quote(str(path))}"


def states(shell: str, steps: list[str], environ: Mapping[str, str], tmp_path: Path) -> list[dict[str, str]]:
    """Run the steps in one shell and return the environment that a child sees before the first and after each."""
    dump = f"{shlex.quote(sys.executable)} -I {shlex.quote(str(tmp_path / 'dump.py'))}"
    (tmp_path / "dump.py").write_text("import json, os; print(json.dumps(dict(os.environ)))\n")
    script = tmp_path / "script"
    script.write_text("\n".join([dump, *(line for step in steps for line in (step, dump))]) + "\n")
    done = subprocess.run(
        [*SHELLS[shell], str(script)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **environ},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in one.items() if name not in VOLATILE} for one in found]


@pytest.mark.parametrize("caller", CALLERS.values(), ids=CALLERS.keys())
def test_sourcing_does_what_activate_says_and_the_way_back_undoes_it(
    shell: str, caller: Mapping[str, str], tmp_path: Path
) -> None:
    activation = activation_at(tmp_path / "overlay", MODE="dvm")
    source = write_env_file(shell, activation, tmp_path / "env")

    before, after, back = states(shell, [source, "toolkit_deactivate"], caller, tmp_path)

    assert after == activate(before, activation)
    assert back == before


@pytest.mark.parametrize("name", NAMES, ids=["plain", "space", "quote", "expansions", "newline"])
def test_any_path_and_any_value_arrives_unchanged(shell: str, name: str, tmp_path: Path) -> None:
    activation = activation_at(tmp_path / name, MODE=f"value {name}")
    source = write_env_file(shell, activation, tmp_path / "env")

    before, after = states(shell, [source], {"PYTHONPATH": "/opt/lib"}, tmp_path)

    assert after == activate(before, activation)
    assert after["PYTHONPATH"] == f"{tmp_path / name}/site:/opt/lib"


@pytest.mark.parametrize("caller", CALLERS.values(), ids=CALLERS.keys())
def test_sourcing_twice_changes_nothing_and_one_way_back_is_enough(
    shell: str, caller: Mapping[str, str], tmp_path: Path
) -> None:
    source = write_env_file(shell, activation_at(tmp_path / "overlay"), tmp_path / "env")

    before, once, twice, back = states(shell, [source, source, "toolkit_deactivate"], caller, tmp_path)

    assert twice == once
    assert back == before


def test_a_file_that_outlived_its_overlay_refuses_and_changes_nothing(shell: str, tmp_path: Path) -> None:
    activation = activation_at(tmp_path / "overlay")
    source = write_env_file(shell, activation, tmp_path / "env")
    shutil.rmtree(activation.root)
    argv = [word for word in SHELLS[shell] if word not in ("-eu", "-o", "pipefail")]  # dash ends with -e, told or not
    done = subprocess.run(
        [*argv, "-c", f'{source} || echo refused "$PYTHONPATH"'],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "/opt/lib"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "refused /opt/lib\n"
    assert done.stderr == (
        f"there is no overlay at {activation.root}: build it again where it shall be, with `toolkit build`\n"
    )


def test_another_overlay_takes_the_place_of_the_first(shell: str, tmp_path: Path) -> None:
    first, second = activation_at(tmp_path / "one", ONLY_ONE="1"), activation_at(tmp_path / "two", MODE="2")
    steps = [write_env_file(shell, first, tmp_path / "a"), write_env_file(shell, second, tmp_path / "b")]

    before, _, after, back = states(shell, [*steps, "toolkit_deactivate"], {"PYTHONPATH": "/opt/lib"}, tmp_path)

    assert after == activate(before, second)
    assert back == before


def test_a_shell_that_inherited_another_overlay_gives_it_up(shell: str, tmp_path: Path) -> None:
    first, second = activation_at(tmp_path / "one"), activation_at(tmp_path / "two")
    inherited = activate({"PYTHONPATH": "/opt/lib"}, first)
    inherited["PYTHONPATH"] += "::/opt/more:"

    before, after, back = states(
        shell, [write_env_file(shell, second, tmp_path / "b"), "toolkit_deactivate"], inherited, tmp_path
    )

    assert after["PYTHONPATH"] == f"{second.site}:/opt/lib:/opt/more"
    assert back == before


def test_a_site_that_is_there_already_moves_to_the_front(shell: str, tmp_path: Path) -> None:
    activation = activation_at(tmp_path / "overlay")
    caller = {"PYTHONPATH": f"/opt/lib:{activation.site}:/opt/more"}

    _, after = states(shell, [write_env_file(shell, activation, tmp_path / "env")], caller, tmp_path)

    assert after["PYTHONPATH"] == f"{activation.site}:/opt/lib:/opt/more"


def test_nothing_but_the_way_back_is_left_in_the_shell(shell: str, tmp_path: Path) -> None:
    source = write_env_file(shell, activation_at(tmp_path / "overlay"), tmp_path / "env")
    listing = {"fish": "set -g; functions", "zsh": "typeset; functions"}.get(shell, "set")
    probe = f"if {{ {listing}; }} | grep -a toolkit_ > /dev/null; then exit 3; fi"
    if shell == "fish":
        probe = f"begin; {listing}; end | string match -q '*toolkit_*'; and exit 3; or true"

    states(shell, [source, "toolkit_deactivate", probe], {"PYTHONPATH": "/opt/lib"}, tmp_path)


def test_a_diagnostic_overlay_says_so_when_it_is_activated(shell: str, tmp_path: Path) -> None:
    notice = "not for training: 0001's fix is left out"
    quiet = activation_at(tmp_path / "overlay")
    told = Activation(
        recipe="sample", key=quiet.key, versions="", root=quiet.root, variables=quiet.variables, notice=notice
    )
    source = write_env_file(shell, told, tmp_path / "env")

    done = subprocess.run([*SHELLS[shell], "-c", source], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("", notice + "\n")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_puts_back_what_was_not_exported(tmp_path: Path) -> None:
    source = write_env_file("fish", activation_at(tmp_path / "overlay", MODE="dvm"), tmp_path / "env")
    probe = 'set -qgx MODE; and exit 3; test (count $MODE) = 2 -a "$MODE[2]" = b; or exit 4'

    states("fish", ["set -g MODE a b", source, "toolkit_deactivate", probe], {}, tmp_path)
