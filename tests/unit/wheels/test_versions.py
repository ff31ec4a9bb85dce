from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from toolkit.errors import RepackError
from toolkit.wheels.versions import base_version_of, patched_version


@pytest.mark.parametrize(
    ("base", "key8", "expected"),
    [
        pytest.param("2.13.0", "1a2b3c4d", "2.13.0+p4.k1a2b3c4d", id="release"),
        pytest.param("2.12.0.post3", "1a2b3c4d", "2.12.0.post3+p4.k1a2b3c4d", id="post release"),
        pytest.param("2.12.0-3", "1a2b3c4d", "2.12.0.post3+p4.k1a2b3c4d", id="post release, spelled short"),
        pytest.param("2.13.0+gitc798c65", "1a2b3c4d", "2.13.0+gitc798c65.p4.k1a2b3c4d", id="base local"),
        pytest.param("2.13.0+GIT_C798-c65", "1a2b3c4d", "2.13.0+git.c798.c65.p4.k1a2b3c4d", id="base local, odd"),
        pytest.param("2.13.0+007", "1a2b3c4d", "2.13.0+7.p4.k1a2b3c4d", id="base local of digits"),
        pytest.param("v2.13.0RC1", "1a2b3c4d", "2.13.0rc1+p4.k1a2b3c4d", id="candidate, odd"),
        pytest.param("1!2.0.dev3", "1a2b3c4d", "1!2.0.dev3+p4.k1a2b3c4d", id="epoch"),
        pytest.param("2.13.0", "00001234", "2.13.0+p4.k00001234", id="key of digits keeps its zeros"),
        pytest.param("2.13.0", "12345678", "2.13.0+p4.k12345678", id="key of digits"),
        pytest.param("2.13.0", "1234567e", "2.13.0+p4.k1234567e", id="key that looks like a number"),
    ],
)
def test_the_version_is_in_normal_form(base: str, key8: str, expected: str) -> None:
    assert patched_version(base, 4, key8) == expected
    assert str(Version(expected)) == expected


BASES = st.builds(
    lambda release, suffix, local: ".".join(map(str, release)) + suffix + (f"+{local}" if local else ""),
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
    st.sampled_from(["", "rc1", ".post3", ".dev7", "a1.post2", "-1"]),
    st.lists(st.from_regex("[a-zA-Z0-9]{1,8}", fullmatch=True), max_size=3).map(".".join),
)
KEYS = st.from_regex("[0-9a-f]{8}", fullmatch=True)


@given(base=BASES, count=st.integers(0, 999), key8=KEYS)
def test_nothing_that_normalises_ever_comes_out(base: str, count: int, key8: str) -> None:
    version = patched_version(base, count, key8)

    assert str(Version(version)) == version
    assert version.endswith(f"p{count}.k{key8}")
    assert Version(version).public == Version(base).public
    assert Version(version) > Version(base)


@given(base=BASES, count=st.integers(0, 999), key8=KEYS)
def test_the_base_can_be_read_back(base: str, count: int, key8: str) -> None:
    assert base_version_of(patched_version(base, count, key8)) == str(Version(base))


@given(base=BASES, one=KEYS, other=KEYS)
def test_another_key_is_another_version(base: str, one: str, other: str) -> None:
    assert (Version(patched_version(base, 1, one)) == Version(patched_version(base, 1, other))) is (one == other)


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+gitc798c65", "2.13.0+p4", "2.13.0+p4.kxyz"])
def test_a_version_that_is_not_ours_is_its_own_base(version: str) -> None:
    assert base_version_of(version) == version


def test_a_base_without_a_version_is_refused() -> None:
    with pytest.raises(RepackError) as caught:
        patched_version("trunk", 1, "1a2b3c4d")

    assert caught.value.message == "the base's version 'trunk' is not in PEP 440's form"


@pytest.mark.parametrize("key8", ["1a2b3c4", "1A2B3C4D", "1a2b3c4d5", "../../..", ""])
def test_only_eight_hex_digits_of_a_key_go_in(key8: str) -> None:
    with pytest.raises(ValueError, match="expected a count and eight hex digits"):
        patched_version("1.0", 1, key8)
