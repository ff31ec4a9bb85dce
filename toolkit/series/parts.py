"""Which part of a component a file belongs to, and so which build its change can reach."""

from __future__ import annotations

from pathlib import PurePosixPath

from toolkit.model import Part

NATIVE_SUFFIXES = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hh", ".hpp", ".hxx", ".inl", ".s", ".asm", ".cmake", ".so", ".a", ".o")
)
NATIVE_NAMES = frozenset(("CMakeLists.txt", "Makefile", "setup.py"))
NATIVE_FOLDERS = frozenset(("cmake", "codegen", "csrc", "torchnpugen", "third_party"))
"""Folders at the top of a source tree, or below a package, whose every file feeds the compiler or what it compiles.

`codegen` counts at the top only: inside a package it is Python (Inductor's code generators).
"""

METADATA_SUFFIXES = (".dist-info", ".egg-info")


def classify(path: str) -> Part:
    """Say which part a file is in.

    `generated` is what the build writes itself (metadata, the package's version file, bindings marked as generated);
    `native` is what can change a compiled file, and so everything at the top of a source tree that is not a module;
    all else is `python`: modules, stubs and the data that lies beside them.
    """
    pure = PurePosixPath(path)
    if _is_generated(pure):
        return "generated"
    return "native" if _is_native(pure) else "python"


def _is_generated(path: PurePosixPath) -> bool:
    if path.parts[0].endswith(METADATA_SUFFIXES) or "generated" in path.parts[:-1]:
        return True
    return (path.name == "version.py" and len(path.parts) == 2) or path.name.startswith(("_generated_", "generated_"))


def _is_native(path: PurePosixPath) -> bool:
    if path.suffix.lower() in NATIVE_SUFFIXES or path.name in NATIVE_NAMES or ".so." in path.name:
        return True
    if len(path.parts) == 1:
        return path.suffix not in (".py", ".pyi")
    return path.parts[0] in NATIVE_FOLDERS or "csrc" in path.parts[:-1]
