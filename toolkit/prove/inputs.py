"""What a proof is made by: the checks that it runs, and all of `verify/` that those take part in."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator
from pathlib import Path

from toolkit.files import sha256_bytes, sha256_file
from toolkit.prove.plan import CATALOGUE

CHECKS = ("checks", "witnesses")
"""The folders of modules that only those proofs depend on which run them; what else there is, all do."""


def proof_inputs(verify_folder: Path, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """List what decides the outcome of these checks, by name; the catalogue must have them."""
    entries = json.loads((verify_folder / CATALOGUE).read_bytes())
    for name in sorted(names):
        yield f"check/{name}", sha256_bytes(json.dumps(entries[name], sort_keys=True).encode())
    for path in check_files(verify_folder, [entries[name]["module"] for name in names]):
        yield f"verify/{path.relative_to(verify_folder)}", sha256_file(path)


def check_files(verify_folder: Path, modules: Collection[str]) -> list[Path]:
    """List the files of `verify/` that these modules (`verify.x.y`) take part in, the catalogue left out."""
    own = {path for name in CHECKS for path in (verify_folder / name).glob("*.py")}
    found = {path for path in verify_folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts} - own
    found.discard(verify_folder / CATALOGUE)
    pending = [_file_of(module, verify_folder) for module in modules]
    while pending:
        path = pending.pop()
        if path not in found and path.is_file():
            found.add(path)
            pending += _imported_files(path, verify_folder)
    return sorted(found)


def _imported_files(path: Path, verify_folder: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith("verify."):
                yield _file_of(name, verify_folder)


def _file_of(module: str, verify_folder: Path) -> Path:
    return verify_folder.joinpath(*module.split(".")[1:]).with_suffix(".py")
