"""The facts of a report as one document, for a program."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from toolkit.page import Account, CheckAccount, ComponentAccount


def facts_document(account: Account) -> dict[str, Any]:
    """Return what a report tells, without the texts that it shows: patches and code are named by hash and by file."""
    return {
        "recipe": account.recipe,
        "description": account.description,
        "ok": account.proof.ok,
        "runtime": account.proof.runtime,
        "overlay": str(account.overlay.root),
        "key": account.overlay.key,
        "target": str(account.overlay.target),
        "notices": list(account.notices),
        "components": [_component(part) for part in account.components],
        "checks": [_check(check) for check in account.checks],
        "numbers": to_builtins(account.numbers),
        "programs": to_builtins(account.programs),
        "graphs": [
            {
                "check": graph.check,
                "graph": graph.graph,
                "code": {side: file.path for side, file in graph.code.items()},
                "stages": {side: file.path for side, file in graph.stages.items()},
            }
            for graph in account.graphs
        ],
        "commands": [{"what": what, "command": command} for what, command in account.commands],
    }


def _component(part: ComponentAccount) -> dict[str, Any]:
    patches = [
        {
            "name": patch.name,
            "subject": patch.subject,
            "sha256": patch.sha256,
            "in": patch.is_in,
            "upstream_status": patch.upstream_status,
            "witness": patch.witness,
            "remark": patch.remark,
        }
        for patch in part.patches
    ]
    base = {"kind": part.kind, "digest": part.digest, "version": part.base_version, "from": list(part.places)}
    wheel = {"file": part.wheel, "sha256": part.wheel_sha256}
    return {"name": part.name, "base": base, "version": part.version, "wheel": wheel, "patches": patches}


def _check(check: CheckAccount) -> dict[str, Any]:
    sides: dict[str, dict[str, Any]] = {
        side: {
            "status": result.status,
            "wanted": result.wanted,
            "required": result.required,
            "ok": result.ok,
            "detail": result.detail,
            "seconds": result.seconds,
        }
        for side, result in check.results.items()
    }
    return {"name": check.name, "summary": check.summary, **sides, "files": list(check.files), "command": check.command}
