"""The error classes: their codes are a promise to scripts."""

from __future__ import annotations

import inspect

import pytest

from toolkit import errors
from toolkit.errors import CommandError, HashMismatchError, ToolkitError, all_errors

CODES = {
    "UsageError": 2,
    "RecipeError": 3,
    "LockError": 4,
    "FetchError": 5,
    "HashMismatchError": 6,
    "SourceError": 7,
    "SeriesError": 8,
    "ApplyError": 9,
    "RepackError": 10,
    "StoreError": 11,
    "StorageError": 12,
    "OverlayError": 13,
    "ContractMismatchError": 14,
    "SysrootError": 15,
    "ProofError": 16,
    "TargetError": 17,
    "ArchiveError": 18,
    "CommandError": 19,
}


def _defined() -> list[type[ToolkitError]]:
    members = [value for _, value in inspect.getmembers(errors, inspect.isclass)]
    return [error for error in members if issubclass(error, ToolkitError) and error is not ToolkitError]


def test_exit_codes_that_scripts_rely_on_stay() -> None:
    found = {error.__name__: error.exit_code for error in _defined()}

    assert {name: found.get(name) for name in CODES} == CODES


def test_every_error_has_an_exit_code_of_its_own() -> None:
    codes = [error.exit_code for error in _defined()]

    assert len(set(codes)) == len(codes)
    assert not {0, 1, errors.INTERNAL_ERROR, errors.INTERRUPTED}.intersection(codes)
    assert max(codes) < 126, "codes from 126 on mean something to a shell"


@pytest.mark.parametrize("error", _defined(), ids=lambda error: error.__name__)
def test_every_error_says_when_it_is_raised(error: type[ToolkitError]) -> None:
    assert "__doc__" in vars(error)
    assert (error.__doc__ or "").splitlines()[0].endswith(".")


def test_all_errors_lists_every_class_once_by_exit_code() -> None:
    ours = [error for error in all_errors() if error.__module__ == errors.__name__]

    assert ours == sorted(_defined(), key=lambda error: error.exit_code)


def test_an_error_keeps_its_message_hint_and_details() -> None:
    fault = ToolkitError("it failed", hint="do this", details=["one", "two"])

    assert str(fault) == fault.message == "it failed"
    assert (fault.hint, fault.details) == ("do this", ("one", "two"))


def test_a_hash_mismatch_names_the_file_its_origin_and_both_hashes() -> None:
    fault = HashMismatchError(what="a.whl", expected="aa", actual="bb", origin="the index")

    assert str(fault) == "a.whl from the index has sha256 bb, expected aa"
    assert (fault.expected, fault.actual) == ("aa", "bb")
    assert fault.hint == (
        "do not use the file; if the pin is what is wrong, run `toolkit lock --upgrade` and review the change"
    )


def test_a_hash_mismatch_may_have_another_remedy() -> None:
    fault = HashMismatchError(what="a.whl", expected="aa", actual="bb", origin="x.tar", hint="export it again")

    assert fault.hint == "export it again"


def test_a_command_error_keeps_argv_and_code() -> None:
    fault = CommandError("it failed", argv=["cc", "-c"], returncode=-9, details=["last line"])

    assert (fault.argv, fault.returncode, fault.details) == (("cc", "-c"), -9, ("last line",))
