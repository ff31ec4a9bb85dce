"""Versions that contradict the overlay's, wherever they are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.verify_cases import VERSION, make_torch_npu, write_files

Run = Callable[..., dict[str, Any]]

INFO = f"torch_npu-{VERSION}.dist-info"


def test_an_overlay_that_tells_one_version_everywhere_passes(run_check: Run) -> None:
    record = run_check("distribution")

    assert (record["status"], record["detail"]) == ("pass", f"torch_npu {VERSION}")


def test_an_installed_package_behind_the_overlay_does_not_matter(run_check: Run, site: Path, tmp_path: Path) -> None:
    make_torch_npu(tmp_path / "torch-site", "2.13.0")

    assert run_check("distribution")["status"] == "pass"


def test_an_overlay_without_its_own_dist_info_is_seen(run_check: Run, site: Path, tmp_path: Path) -> None:
    for file in (site / INFO).iterdir():
        file.unlink()
    (site / INFO).rmdir()
    installed = make_torch_npu(tmp_path / "torch-site", "2.13.0")

    record = run_check("distribution")

    assert record["evidence"]["faults"] == [
        f"distribution torch_npu 2.13.0 is found in {installed}, expected in {site}",
        f"entry point torch.backends: torch_npu is torch_npu 2.13.0's in {installed}, expected {VERSION}'s",
    ]


def test_no_distribution_at_all_is_seen(run_check: Run, site: Path) -> None:
    for file in (site / INFO).iterdir():
        file.unlink()
    (site / INFO).rmdir()

    record = run_check("distribution")

    assert record["evidence"]["faults"] == [
        f"no distribution torch_npu is found, expected {VERSION} in {site}",
        "no entry point torch_npu in group torch.backends: torch would not load the backend by itself",
    ]


def test_another_version_in_the_metadata_is_seen(run_check: Run, site: Path) -> None:
    write_files(site, {f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: torch_npu\nVersion: 2.13.0\n"})

    record = run_check("distribution")

    assert record["evidence"]["faults"] == [
        f"distribution torch_npu has version 2.13.0, expected {VERSION}",
        f"entry point torch.backends: torch_npu is torch_npu 2.13.0's in {site}, expected {VERSION}'s",
    ]


def test_a_second_dist_info_in_the_site_is_seen(run_check: Run, site: Path) -> None:
    metadata = "Metadata-Version: 2.1\nName: torch-npu\nVersion: 2.13.0\n"
    write_files(site, {"torch_npu-2.13.0.dist-info/METADATA": metadata})

    record = run_check("distribution")

    assert record["status"] == "fail"
    assert f"{site} holds 2 dist-infos of torch_npu (" in record["detail"]


def test_a_lost_entry_point_is_seen(run_check: Run, site: Path) -> None:
    (site / INFO / "entry_points.txt").unlink()

    record = run_check("distribution")

    assert record["detail"] == (
        "no entry point torch_npu in group torch.backends: torch would not load the backend by itself"
    )


def test_an_entry_point_of_another_distribution_is_seen(run_check: Run, site: Path, tmp_path: Path) -> None:
    other = write_files(
        tmp_path / "torch-site",
        {
            "nightly-1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: nightly\nVersion: {VERSION}\n",
            "nightly-1.dist-info/entry_points.txt": "[torch.backends]\ntorch_npu = torch_npu:_autoload\n",
        },
    )

    record = run_check("distribution")

    assert record["detail"] == (
        f"entry point torch.backends: torch_npu is nightly {VERSION}'s in {other}, expected {VERSION}'s"
    )


def test_another_version_in_the_package_is_seen(run_check: Run, site: Path) -> None:
    write_files(site, {"torch_npu/__init__.py": "__version__ = '2.13.0'\n"})

    assert run_check("distribution")["detail"] == f"torch_npu.__version__ is 2.13.0, expected {VERSION}"
