"""What a build's environment holds, and who wins."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.wheels import CP311
from toolkit.build.variables import compose_variables, named_paths, split_command
from toolkit.build.workroom import Workroom
from toolkit.errors import UsageError
from toolkit.model import BuildSpec, BuildTree, FetchedBase

ROOM = Workroom(root=Path("/srv/room"))
CALLER = {"PATH": "/caller/bin", "HOME": "/home/user", "SECRET": "s3cret", "CANN": "/opt/cann", "LANG": "de_DE"}
FLAG = "-ffile-prefix-map=/srv/env=/usr/src/build-environment -ffile-prefix-map=/srv/room/tree=/usr/src/part"


def spec(env: Mapping[str, str] | None = None, pass_env: tuple[str, ...] = ()) -> BuildSpec:
    return BuildSpec(backend="setup.py", requirements=(), env=env or {}, pass_env=pass_env)


def tree(root: str = "/srv/room/tree") -> BuildTree:
    base = FetchedBase(
        component="part", kind="git", digest="d", path=Path("/srv/repository"), file="", distribution="", version="",
        target=CP311, epoch=1_750_000_000,
    )  # fmt: skip
    return BuildTree(base=base, root=Path(root), digest="t", native_digest="n")


def compose(asked: BuildSpec, root: str = "/srv/room/tree") -> dict[str, str]:
    return compose_variables(
        asked, tree(root), ROOM, environment=Path("/srv/env"), temporary=ROOM.tmp, jobs=3, caller=CALLER
    )


def test_an_environment_is_the_same_for_every_caller() -> None:
    assert compose(spec()) == {
        "PATH": "/srv/env/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/srv/room/home",
        "TMPDIR": "/srv/room/tmp",
        "VIRTUAL_ENV": "/srv/env",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": "1750000000",
        "MAX_JOBS": "3",
        "CMAKE_BUILD_PARALLEL_LEVEL": "3",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": "/srv/room",
        "CFLAGS": FLAG,
        "CXXFLAGS": FLAG,
    }


@pytest.mark.parametrize(
    ("asked", "name", "value"),
    [
        pytest.param(spec({"MAX_JOBS": "1"}), "MAX_JOBS", "1", id="the recipe wins"),
        pytest.param(spec(pass_env=("CANN",)), "CANN", "/opt/cann", id="passed on"),
        pytest.param(spec({"CANN": "/mine"}, ("CANN",)), "CANN", "/mine", id="set wins over passed on"),
        pytest.param(spec({"CFLAGS": "-O1"}), "CFLAGS", f"-O1 {FLAG}", id="flags are added to"),
        pytest.param(spec({"HOME": "/mine"}, ("HOME",)), "HOME", "/srv/room/home", id="the home stays private"),
        pytest.param(spec({"TMPDIR": "/mine"}), "TMPDIR", "/srv/room/tmp", id="so does the temporary folder"),
        pytest.param(spec(pass_env=("PATH",)), "PATH", "/srv/env/bin:/caller/bin", id="PATH comes behind"),
    ],
)
def test_who_wins(asked: BuildSpec, name: str, value: str) -> None:
    assert compose(asked)[name] == value


def test_what_the_caller_does_not_have_is_left_out() -> None:
    assert "MISSING" not in compose(spec(pass_env=("MISSING",)))


def test_a_folder_with_a_space_in_its_name_can_stand_in_flags() -> None:
    flags = shlex.split(compose(spec(), "/srv/my work/tree")["CFLAGS"])

    assert flags == [FLAG.split()[0], "-ffile-prefix-map=/srv/my work/tree=/usr/src/part"]


def test_a_build_environment_is_mapped_by_every_name_and_the_longest_comes_last(tmp_path: Path) -> None:
    real, link = tmp_path / "env-of-the-store", tmp_path / "env"
    real.mkdir()
    link.symlink_to(real)

    flags = compose_variables(
        spec(), tree("/t"), ROOM, environment=link, temporary=ROOM.tmp, jobs=3, caller=CALLER
    )["CFLAGS"]  # fmt: skip

    assert flags.split() == [
        "-ffile-prefix-map=/t=/usr/src/part",
        f"-ffile-prefix-map={link}=/usr/src/build-environment",
        f"-ffile-prefix-map={real}=/usr/src/build-environment",
    ]


def test_named_paths_are_those_that_the_recipe_means() -> None:
    asked = spec({"LIBS": "/opt/a:/opt/b", "NAME": "x"}, ("CANN", "HOME", "MISSING"))

    assert sorted(named_paths(asked, CALLER)) == [Path("/opt/a"), Path("/opt/b"), Path("/opt/cann")]


def test_a_command_whose_quotes_do_not_match_is_told_with_its_variable() -> None:
    with pytest.raises(UsageError) as caught:
        split_command("CC", '"unbalanced')

    assert caught.value.message == "CC='\"unbalanced' cannot be read as a command: No closing quotation"
    assert caught.value.hint == ("give CC matching quotes, in the environment or in `env` of `[component.base.build]`")
    assert split_command("CC", "ccache 'my cc' -m64") == ["ccache", "my cc", "-m64"]
