from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.envfile import SHELLS, Activation, activate, activation_of, python_path, render, render_all, render_for
from toolkit.errors import OverlayError, RecipeError
from toolkit.model import Contract, Overlay, OverlayPackage, Target

ROOT = Path("/srv/overlays/sample/generations/0123456789abcdef")


def overlay_at(root: Path = ROOT, *, diagnostic: str = "", **env: str) -> Overlay:
    package = OverlayPackage(
        component="sample",
        import_name="sample",
        distribution="sample",
        version="1.0+p1.k01234567",
        base_version="1.0",
        wheel="sample.whl",
        wheel_sha256="0" * 64,
        patches=("0001-change",),
    )
    return Overlay(
        recipe="sample",
        key="0123456789abcdef" * 4,
        root=root,
        target=Target(python_tag="cp311", platform="manylinux_2_28_x86_64"),
        contract=Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0"),
        packages=(package,),
        env=env,
        diagnostic=diagnostic,
    )


@pytest.fixture
def activation() -> Activation:
    return activation_of(overlay_at(MODE="dvm"))


def test_the_caches_lie_in_the_overlay(activation: Activation) -> None:
    assert activation.variables == {
        "TOOLKIT_OVERLAY": f"{ROOT}",
        "TORCH_EXTENSIONS_DIR": f"{ROOT}/torch_extensions",
        "TORCHINDUCTOR_CACHE_DIR": f"{ROOT}/cache/inductor",
        "TRITON_CACHE_DIR": f"{ROOT}/cache/triton",
        "MODE": "dvm",
    }


def test_a_relative_overlay_is_activated_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert activation_of(overlay_at(Path("here"))).site == f"{tmp_path}/here/site"


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        pytest.param({}, f"{ROOT}/site", id="unset"),
        pytest.param({"PYTHONPATH": ""}, f"{ROOT}/site", id="empty"),
        pytest.param({"PYTHONPATH": "::"}, f"{ROOT}/site", id="only colons"),
        pytest.param({"PYTHONPATH": ":/a::/b:"}, f"{ROOT}/site:/a:/b", id="empty entries"),
        pytest.param({"PYTHONPATH": f"/a:{ROOT}/site:/b"}, f"{ROOT}/site:/a:/b", id="already there"),
        pytest.param(
            {"PYTHONPATH": "/other/site:/a", "TOOLKIT_OVERLAY": "/other"}, f"{ROOT}/site:/a", id="another overlay"
        ),
        pytest.param(
            {"PYTHONPATH": ":/other/site::/a:", "TOOLKIT_OVERLAY": "/other"},
            f"{ROOT}/site:/a",
            id="another overlay and empty entries",
        ),
        pytest.param({"PYTHONPATH": "/site:/a"}, f"{ROOT}/site:/site:/a", id="no overlay, but a folder /site"),
    ],
)
def test_site_comes_first_and_no_entry_is_empty(activation: Activation, caller: dict[str, str], expected: str) -> None:
    assert python_path(caller, activation) == expected


def test_activating_twice_is_activating_once(activation: Activation) -> None:
    once = activate({"PYTHONPATH": "/a", "HOME": "/root"}, activation)

    assert activate(once, activation) == once
    assert once["HOME"] == "/root"


def test_activating_leaves_the_callers_environment_alone(activation: Activation) -> None:
    caller = {"PYTHONPATH": "/a"}

    activate(caller, activation)

    assert caller == {"PYTHONPATH": "/a"}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        pytest.param({"A B": "1"}, "'A B' is no variable's name", id="blank"),
        pytest.param({"A;rm -rf /": "1"}, "'A;rm -rf /' is no variable's name", id="command"),
        pytest.param({"A\n": "1"}, "'A\\n' is no variable's name", id="newline at the end"),
        pytest.param({"1A": "1"}, "'1A' is no variable's name", id="digit first"),
        pytest.param({"PYTHONPATH": "/x"}, "PYTHONPATH is set by the overlay itself", id="PYTHONPATH"),
        pytest.param({"TRITON_CACHE_DIR": "/x"}, "TRITON_CACHE_DIR is set by the overlay itself", id="own"),
        pytest.param({"A": "x\0y"}, "A has a NUL byte", id="NUL"),
    ],
)
def test_a_recipe_variable_that_cannot_be_set_is_refused(env: dict[str, str], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        activation_of(overlay_at(**env))

    assert caught.value.message == f"[env] of recipe 'sample' cannot be used: {message}"
    assert caught.value.details == (message,)


def test_a_path_with_a_colon_is_refused() -> None:
    with pytest.raises(OverlayError) as caught:
        activation_of(overlay_at(Path("/srv/a:b")))

    assert caught.value.message == "the overlay's path '/srv/a:b' has a colon, which PYTHONPATH cannot hold"
    assert caught.value.hint == "choose another place with --overlays DIR"


def test_json_says_what_to_set_and_what_to_prepend(activation: Activation) -> None:
    assert json.loads(render("json", activation)) == {
        "recipe": "sample",
        "key": "0123456789abcdef" * 4,
        "versions": "sample 1.0+p1.k01234567",
        "notice": "",
        "set": dict(activation.variables),
        "prepend": {"PYTHONPATH": f"{ROOT}/site"},
    }


def test_dotenv_quotes_every_value() -> None:
    overlay = overlay_at(A='say "hi" \\ now', B="two\nlines", C="$HOME", D="it's $5")

    assert render_for("dotenv", overlay, {"PYTHONPATH": ":/a"}) == (
        "# Overlay sample, key 01234567: sample 1.0+p1.k01234567\n"
        f'TOOLKIT_OVERLAY="{ROOT}"\n'
        f'TORCH_EXTENSIONS_DIR="{ROOT}/torch_extensions"\n'
        f'TORCHINDUCTOR_CACHE_DIR="{ROOT}/cache/inductor"\n'
        f'TRITON_CACHE_DIR="{ROOT}/cache/triton"\n'
        'A="say \\"hi\\" \\\\ now"\n'
        'B="two\\nlines"\n'
        "C='$HOME'\n"
        'D="it\'s \\$5"\n'
        f'PYTHONPATH="{ROOT}/site:/a"\n'
    )


def test_github_entries_cannot_be_broken_out_of() -> None:
    value = "x\nEOF\ntoolkit_\nPATH<<toolkit_\n/evil"

    found = parse_github(render_for("github", overlay_at(A=value), {"PYTHONPATH": "/a"}))

    assert found["A"] == value
    assert found["PYTHONPATH"] == f"{ROOT}/site:/a"
    assert "PATH" not in found


def parse_github(text: str) -> dict[str, str]:
    """Read a GITHUB_ENV file as the runner does."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, mark = line.split("<<")
        body: list[str] = []
        for part in lines:
            if part == mark:
                break
            body.append(part)
        found[name] = "\n".join(body)
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_rendering_repeats(shell: str, activation: Activation) -> None:
    assert render(shell, activation) == render(shell, activation)  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", ["sh", "fish", "dotenv"])
def test_a_notice_of_several_lines_stays_a_comment(shell: str) -> None:
    text = render_for(shell, overlay_at(diagnostic="one\ntouch /evil\rthree"), {})  # type: ignore[arg-type]
    comment = [line for line in text.split("\n") if line.startswith("#")]

    assert comment[0] == "# Overlay sample, key 01234567: sample 1.0+p1.k01234567"
    assert comment[-3:] == ["# for diagnosis only: one", "# touch /evil", "# three"]


def test_a_line_break_in_a_name_does_not_end_the_comment(activation: Activation) -> None:
    text = render("sh", replace(activation, recipe="a\ntouch /evil"))

    assert text.startswith("# Overlay a touch /evil, key 01234567: sample 1.0+p1.k01234567\n")


def test_the_files_beside_an_overlay_are_those_that_hold_for_any_caller() -> None:
    overlay = overlay_at()

    assert render_all(overlay) == {
        "env.sh": render_for("sh", overlay, {"PYTHONPATH": "/a"}),
        "env.fish": render_for("fish", overlay, {}),
        "env.json": render_for("json", overlay, {}),
    }
