"""The report that a build leaves: where it lies, what is printed of it, and that a build does not depend on it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from pathlib import Path

import pytest

from tests.changes import edited
from tests.sample import Sample
from toolkit.errors import ProofError
from toolkit.overlay import verify_site

FAILING = "from verify.contract import failed\n\n\ndef check(request):\n    return failed('never')\n"


def toolkit(sample: Sample, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sample.toolkit(*words), env=sample.environ, cwd=sample.root.parent, capture_output=True, text=True, check=False
    )


def generation_of(sample: Sample) -> Path:
    return sample.folder.path / os.readlink(sample.folder.path / "current")


def test_a_build_writes_the_report_and_prints_its_lasting_name(sample: Sample) -> None:
    first = toolkit(sample, "build")
    page = sample.folder.path / "report.html"

    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"env file: {sample.folder.path}/env.sh\nreport: {page}\n")
    assert page.resolve() == generation_of(sample).resolve() / "report.html"
    written = page.read_text(encoding="utf-8")
    assert '<h1>sample <span class="verdict good">✓ proven</span></h1>' in written
    assert "+    return 42" in written
    assert "toolkit verify --recipe sample --check answer" in written
    verify_site(generation_of(sample), full=True)

    for words in (["build"], ["build", "--recipe", "sample"], ["build", "--offline"]):
        again = toolkit(sample, *words)
        assert again.stdout.splitlines()[0].startswith("sample: nothing to do, ")
        assert again.stdout.endswith(f"\nreport: {page}\n")
    assert json.loads(toolkit(sample, "build", "--json").stdout)["report"] == str(page)

    page.unlink()
    for words in (["build"], ["build", "--json"]):
        assert str(page) not in toolkit(sample, *words).stdout


def test_a_proof_that_is_made_again_has_its_report_written_again(sample: Sample) -> None:
    sample.build()
    page = generation_of(sample) / "report.html"
    before = page.read_bytes()
    page.write_bytes(b"old")

    assert toolkit(sample, "verify", "--check", "answer").returncode == 0
    assert page.read_bytes() == b"old"
    assert toolkit(sample, "verify").returncode == 0
    assert b"of another" not in page.read_bytes()
    assert abs(len(page.read_bytes()) - len(before)) < 200


def test_a_build_whose_proof_fails_says_where_the_report_is(sample: Sample) -> None:
    (sample.root / "verify/loads.py").write_text(FAILING, encoding="utf-8")
    done = toolkit(sample, "build")
    (page,) = sample.folder.path.glob("generations/*/report.html")

    assert done.returncode == ProofError.exit_code
    assert f"sample: report: {page}\n" in done.stderr
    assert "<strong>1 result not as required</strong>" in page.read_text(encoding="utf-8")
    assert not (sample.folder.path / "report.html").exists()


def test_a_report_that_cannot_be_written_is_said_and_nothing_else_comes_of_it(
    sample: Sample, caplog: pytest.LogCaptureFixture
) -> None:
    sample.build()
    page = generation_of(sample) / "report.html"
    page.unlink()
    page.mkdir()
    with caplog.at_level(logging.WARNING):
        assert sample.build().proof.ok

    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"the report {page} could not be written: [Errno 21] Is a directory: ")
    assert toolkit(sample, "build").returncode == 0


def test_the_report_of_an_overlay_whose_recipe_was_changed_since_says_so(sample: Sample) -> None:
    sample.build()
    with edited(sample.recipe, "a sample", "an example"):
        done = toolkit(sample, "report", "-o", "a.html", "--json")

    assert json.loads(done.stdout)["notices"] == [
        f"{sample.recipe} was changed after the overlay was built: this is about the overlay as it was built"
    ]
