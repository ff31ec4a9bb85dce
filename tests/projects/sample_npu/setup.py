"""Build sample_npu: write its version, generate its bindings, compile its native part with CMake and ninja."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "sample_npu"
HEADERS = ROOT / "third_party" / "sample_headers"
SUBMODULES = (HEADERS / "include", HEADERS / "inner" / "include")


def main() -> None:
    version, commit = read_version()
    write_version(version, commit)
    # Before setup(): what is generated for Python must be there when the package's files are listed.
    subprocess.check_call([sys.executable, str(ROOT / "codegen" / "generate.py"), str(PACKAGE)])
    setup(
        name="sample_npu",
        version=version,
        description="Whole numbers within a bound, computed by a native part",
        packages=["sample_npu"],
        python_requires=">=3.10",
        ext_modules=[Extension("sample_npu._C", sources=[])],
        cmdclass={"build_clib": BuildNative, "build_ext": InstallNative},
        zip_safe=False,
    )


def read_version() -> tuple[str, str]:
    """Return the version and the commit's id; without the id neither says so."""
    version = (ROOT / "version.txt").read_text(encoding="utf-8").strip()
    if "BUILD_WITHOUT_SHA" in os.environ:
        return version, "Unknown"
    commit = read_commit()
    return f"{version}+git{commit[:7]}", commit


def read_commit() -> str:
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as fault:
        reason = (getattr(fault, "stderr", "") or str(fault)).strip()
        sys.exit(
            f"sample_npu: `git rev-parse HEAD` gives no commit for the version: {reason}\n"
            "sample_npu: build in a clone with git on PATH, or set BUILD_WITHOUT_SHA=1"
        )
    return done.stdout.strip()


def write_version(version: str, commit: str) -> None:
    text = f"__version__ = {version!r}\ngit_version = {commit!r}\n"
    (PACKAGE / "version.py").write_text(text, encoding="utf-8")


class BuildNative(build_clib):
    """Compile everything below the build folder."""

    def run(self) -> None:
        require_submodules()
        folder = ROOT / self.build_temp / "native"
        pybind11 = subprocess.check_output([sys.executable, "-m", "pybind11", "--cmakedir"], text=True).strip()
        subprocess.check_call(
            [
                "cmake", "-S", str(ROOT), "-B", str(folder), "-GNinja",
                "-DCMAKE_BUILD_TYPE=Release",
                f"-Dpybind11_DIR={pybind11}",
                f"-DPython_EXECUTABLE={sys.executable}",
                f"-DSAMPLE_NPU_VERSION={self.distribution.get_version()}",
            ]
        )  # fmt: skip
        jobs = os.environ.get("MAX_JOBS")
        subprocess.check_call(["ninja", *(["-j", jobs] if jobs else [])], cwd=folder)


class InstallNative(build_ext):
    """Put the extension and its library where setuptools packs them from."""

    def run(self) -> None:
        self.run_command("build_clib")
        native = ROOT / self.get_finalized_command("build_clib").build_temp / "native"
        place = ROOT if self.inplace else ROOT / self.build_lib
        # CMake takes a file for the installed one where their times differ by less than a second.
        for old in place.glob("sample_npu/**/*.so"):
            old.unlink()
        subprocess.check_call(["cmake", "--install", str(native), "--prefix", str(place)])

    def get_outputs(self) -> list[str]:
        return [self.get_ext_fullpath("sample_npu._C")]


def require_submodules() -> None:
    missing = [str(folder.relative_to(ROOT)) for folder in SUBMODULES if not folder.is_dir()]
    if missing:
        sys.exit(
            f"sample_npu: no headers in {', '.join(missing)}\nsample_npu: run `git submodule update --init --recursive`"
        )


if __name__ == "__main__":
    main()
