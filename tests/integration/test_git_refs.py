"""Refs and requests of real servers: old ones, guarded ones, and those that do not answer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.git_server import GitServer, make_certificate
from tests.moving_sample import SERIES, Moving, core, make_moving
from tests.repositories import git
from toolkit.errors import FetchError
from toolkit.git import Limits
from toolkit.git.refs import list_refs, list_unmerged
from toolkit.upkeep.arriving import Wishes
from toolkit.upkeep.importing import import_patches

LIMITS = Limits(whole=20, silence=1)
PASSWORD = "me:se%3Acret%2F@"

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[GitServer]:
    (tmp_path / "served").mkdir()
    with GitServer(tmp_path / "served", *certificate).running() as running:
        yield running


@pytest.fixture
def moving(tmp_path: Path, server: GitServer) -> Moving:
    """Make a project whose upstream is served as `x`, with a request of two commits."""
    made = make_moving(tmp_path)
    made.commit({"ext/pkg/core.py": core(seven="7 + 0")}, "core: mend seven")
    made.commit({"ext/pkg/core.py": core(seven="7 + 0", eight="8 + 0")}, "core: mend eight")
    git(made.upstream, "update-ref", "refs/pull/7/head", "HEAD")
    git(made.upstream, "reset", "--quiet", "--hard", made.home)
    made.commit({"README.md": "Read more.\n"})
    git(tmp_path, "clone", "--quiet", "--mirror", str(made.upstream), str(server.root / "x"))
    return replace(made, environ={**made.environ, **server.env})


def address(server: GitServer, way: str) -> str:
    where = server.address(way, "x")
    return where.replace("https://", f"https://{PASSWORD}") if way == "guarded" else where


@pytest.mark.parametrize("way", ["smart", "old", "guarded"])
def test_a_request_comes_from_every_server_that_works(
    moving: Moving, server: GitServer, tmp_path: Path, way: str
) -> None:
    where = address(server, way)
    refs = list_refs(where, env=server.env, limits=LIMITS)

    commits = list_unmerged(
        where, "refs/pull/7/head", "HEAD", env=server.env, limits=LIMITS, scratch=tmp_path / "scratch"
    )

    assert refs["refs/heads/main"] == git(moving.upstream, "rev-parse", "main")
    assert commits == git(moving.upstream, "rev-list", "--reverse", f"{moving.home}..refs/pull/7/head").split()


def test_a_password_gets_into_no_command_and_no_patch(moving: Moving, server: GitServer) -> None:
    word = f"{address(server, 'guarded')}/pull/7"

    imported = import_patches(moving.project, moving.means, SERIES, word, Wishes(witness="answer"), target="HEAD")

    assert [patch.name for patch in imported.patches] == ["0003-core-mend-seven", "0004-core-mend-eight"]
    patch = moving.patch("0004-core-mend-eight")
    assert f"\nUpstream-Status: Submitted [{server.address('guarded', 'x')}/pull/7]\n" in patch
    assert f"\nOrigin: {server.address('guarded', 'x')} " in patch
    written = [path.read_bytes() for path in moving.root.rglob("*") if path.is_file()]
    assert [raw for raw in (*server.commands, *written) if b"cret" in raw] == []


@pytest.mark.parametrize(
    ("way", "why", "hint"),
    [
        ("403", "The requested URL returned error: 403", "mend the address"),
        ("guarded", "could not read Username", "mend the address"),
        ("away", 'Protocol "http"', "try again"),
        ("silent", "Operation too slow", "try again"),
    ],
)
def test_a_server_that_does_not_answer_is_named(
    moving: Moving, server: GitServer, way: str, why: str, hint: str
) -> None:
    where = server.address(way, "x") if way != "guarded" else address(server, way).replace("cret", "crets")

    with pytest.raises(FetchError) as caught:
        list_refs(where, env=server.env, limits=LIMITS)

    assert caught.value.message.startswith(f"the refs of {server.address(way, 'x')} cannot be read: ")
    assert why in caught.value.message
    assert caught.value.hint == f"{hint}, or name a folder with a clone"
    assert "cret" not in caught.value.message
