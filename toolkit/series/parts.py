"""Which part of a component a file belongs to, and so which build its change can reach."""

from __future__ import annotations

from pathlib import PurePosixPath

from toolkit.model import Part

NATIVE_SUFFIXES = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".in", ".s",
     ".asm", ".pyx", ".pxd", ".pxi", ".cmake", ".so", ".a", ".o")
)  # fmt: skip
NATIVE_NAMES = frozenset(("CMakeLists.txt", "Makefile", "meson.build", "setup.py"))
NATIVE_FOLDERS = frozenset(("cmake", "codegen", "csrc", "torchnpugen", "third_party"))
"""Folders whose every file feeds the compiler or what it compiles, at the top of a source tree; `csrc` anywhere.

`codegen` inside a package is Python (Inductor's code generators), and `third_party` may be.
"""

READ_BY_BUILDS = frozenset(("__init__.py", "__about__.py", "__version__.py", "_version.py", "version.py"))
"""Modules at the top of a package where projects keep their version, which `setup.py` and `attr =` read from there."""

METADATA_SUFFIXES = (".dist-info", ".egg-info")
MODULE_SUFFIXES = (".py", ".pyi")
SOURCES = "src/"


def classify(path: str) -> Part:
    """Say which part a file is in.

    `native` is what can change a compiled file, and so everything at the top of a source tree that is not a module;
    `generated` is what the build writes itself (metadata, the package's version file, Python marked as generated);
    all else is `python`: modules, stubs and the data that lies beside them. A source that is marked as generated but
    tracked is native like any other: headers of that kind are in the compiled library and in the wheel alike.
    """
    pure = PurePosixPath(path.removeprefix(SOURCES) or path)
    if pure.parts[0].endswith(METADATA_SUFFIXES):
        return "generated"
    if _is_native(pure):
        return "native"
    return "generated" if _is_generated(pure) else "python"


def is_native_input(path: str, *, package: str) -> bool:
    """Say whether a file of a source tree can change what its build makes besides the file itself.

    Only the Python modules and stubs of the package cannot: they come into the wheel as they are. Those at its top that
    builds commonly read can all the same; that a build reads or runs another module of the package is not noticed, and
    no recipe can say so. Of other files in the package only the build knows whether it ships them at all, or makes
    code from them; a change of what lies outside of it reaches no wheel but through the build. `package` is the import
    name.
    """
    place, top = wheel_path(path, package=package), f"{_folder(package)}/"
    if not (place.startswith(top) and path.endswith(MODULE_SUFFIXES) and classify(path) == "python"):
        return True
    return place.removeprefix(top) in READ_BY_BUILDS


def wheel_path(path: str, *, package: str) -> str:
    """Return where in a wheel a file of a package's source tree lies: `src/` is no part of it."""
    return path.removeprefix(SOURCES) if path.startswith(f"{SOURCES}{_folder(package)}/") else path


def _folder(package: str) -> str:
    return package.replace(".", "/")


def _is_native(path: PurePosixPath) -> bool:
    if path.suffix.lower() in NATIVE_SUFFIXES or path.name in NATIVE_NAMES or ".so." in path.name:
        return True
    if len(path.parts) == 1:
        return path.suffix not in MODULE_SUFFIXES
    return path.parts[0] in NATIVE_FOLDERS or "csrc" in path.parts[:-1]


def _is_generated(path: PurePosixPath) -> bool:
    if "generated" in path.parts[:-1]:
        return True
    return (path.name == "version.py" and len(path.parts) == 2) or path.name.startswith(("_generated_", "generated_"))
