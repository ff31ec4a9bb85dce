"""What an overlay was made from: its bases by the manifest and the lock, its patches by their hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from toolkit.errors import ToolkitError
from toolkit.files import sha256_file
from toolkit.model import BuildFacts, Overlay, OverlayPackage
from toolkit.page import ComponentAccount, PatchAccount
from toolkit.project import Project
from toolkit.recipe import find_recipe
from toolkit.schema import TomlError, parse_toml
from toolkit.series.mail import parse_mail

SERIES_INPUT = re.compile(r"series\[\d+\] (.+)$")

NOT_AT_HAND = "The patch that was built in is not among the project's patches any more: it was edited or removed since."


def read_recipe_table(project: Project, recipe: str) -> Mapping[str, Any]:
    """Return a recipe's file as it stands, empty where it cannot be read."""
    try:
        return _table(find_recipe(recipe, project.recipes))
    except ToolkitError:  # an overlay may outlive its recipe, and its report says what is still known
        return {}


def describe_components(overlay: Overlay, project: Project, recipe: str) -> tuple[ComponentAccount, ...]:
    """Say of every component what it was and what it became."""
    inputs = _key_inputs(overlay.manifest)
    patches = _patch_files(project)
    locked = _lock_entries(project, recipe)
    return tuple(
        _component(package, inputs, patches, locked.get(package.component, {})) for package in overlay.packages
    )


def _component(
    package: OverlayPackage, inputs: Mapping[str, str], files: Mapping[str, Path], locked: Mapping[str, Any]
) -> ComponentAccount:
    own = {name.partition("/")[2]: value for name, value in inputs.items() if name.startswith(f"{package.component}/")}
    kind, _, digest = own.get("base", "").partition(":")
    patches = [
        _patch(match[1], digest, files, is_in=match[1] in package.patches)
        for name, digest in own.items()
        if (match := SERIES_INPUT.match(name))
    ]
    return ComponentAccount(
        name=package.component,
        kind=kind,
        digest=digest,
        places=tuple(_places(locked, digest)),
        base_version=f"{package.distribution} {package.base_version}",
        version=f"{package.distribution} {package.version}",
        wheel=package.wheel,
        wheel_sha256=package.wheel_sha256,
        built_with=tuple(_built_with(package.built)) if package.built else (),
        patches=tuple(patches),
    )


def _built_with(facts: BuildFacts) -> Iterator[tuple[str, str]]:
    yield "tree", facts.tree
    yield "compiler", facts.compiler
    yield "shut off by", facts.sandbox
    if facts.symbol_versions:
        yield "needs", ", ".join(f"{name} {version}" for name, version in facts.symbol_versions.items())


# --- patches ---------------------------------------------------------------------------------------------------


def _patch_files(project: Project) -> dict[str, Path]:
    """Return every patch file by its hash, retired ones too."""
    files = [path for folder in project.patches for path in sorted(folder.rglob("*.patch")) if path.is_file()]
    return {sha256_file(path): path for path in reversed(files)}


def _patch(name: str, digest: str, files: Mapping[str, Path], *, is_in: bool) -> PatchAccount:
    known = PatchAccount(name=name, sha256=digest, is_in=is_in)
    path = files.get(digest)
    if path is None:
        return replace(known, remark=NOT_AT_HAND)
    mail = parse_mail(path.read_bytes(), [])
    return replace(
        known,
        subject=mail.subject,
        reason=_reason(mail.subject, mail.body),
        upstream_status=", ".join(mail.values("Upstream-Status")),
        witness=next(iter(mail.values("Witness")), ""),
        file="/".join(path.parts[-4:]),
        diff=mail.diff.decode("utf-8", "replace"),
    )


def _reason(subject: str, body: str) -> str:
    """Return the message without its trailers, which are shown by themselves."""
    paragraphs = re.split(r"\n[ \t]*\n", body.strip())
    if "Upstream-Status:" in paragraphs[-1]:
        del paragraphs[-1]
    return "\n\n".join([subject, *paragraphs])


# --- files -----------------------------------------------------------------------------------------------------


def _key_inputs(manifest: Path) -> Mapping[str, str]:
    body = msgspec.json.decode(manifest.read_bytes())
    inputs = body.get("key_inputs") if isinstance(body, dict) else None
    return inputs if isinstance(inputs, dict) else {}


def _lock_entries(project: Project, recipe: str) -> dict[str, Mapping[str, Any]]:
    try:
        table = _table(project.lock_path(find_recipe(recipe, project.recipes)))
    except ToolkitError:
        return {}
    entries = table.get("component")
    named = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {str(entry.get("name")): entry for entry in named}


def _places(locked: Mapping[str, Any], digest: str) -> Iterator[str]:
    """Name the file, or the addresses, of the very artifact with this digest, where the lock still has it."""
    artifacts = locked.get("artifact")
    for artifact in artifacts if isinstance(artifacts, list) else []:
        if isinstance(artifact, dict) and artifact.get("sha256") == digest:
            yield str(artifact.get("file"))
    urls = locked.get("urls")
    if locked.get("commit") == digest and isinstance(urls, list):
        yield from map(str, urls)


def _table(path: Path) -> Mapping[str, Any]:
    try:
        return parse_toml(path.read_bytes())[1]
    except (OSError, TomlError):
        return {}
