"""Say where the target would import packages from; runs in the target, on the standard library alone.

Started by `survey.START`, which leaves `sys.path` and `sys.meta_path` as the target's start made them in `_seen`, and
has only the standard library's places in force. Arguments are the packages' names; the answer is one line of JSON on
the file descriptor 1. Finders are asked, as an import would ask them; no package is imported.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import os
import site
import sys
import sysconfig
from typing import Any

MARK = "toolkit-survey:"
SEEN = "_seen"
"""The global that START leaves."""


def look(names: list[str], path: list[str], finders: list[Any]) -> dict[str, Any]:
    """Return what decides about imports here, and for each name who wins and who else is on the path."""
    sys.path[:], sys.meta_path[:] = path, finders
    importlib.invalidate_caches()
    return {
        "path": path,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "site": _site_folders(),
        "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else None,
        "include": sysconfig.get_path("include"),
        "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
        "finders": [_name(finder) for finder in finders if not _is_standard(finder)],
        "packages": {name: {"winner": _winner(name), "all": _all(name, path)} for name in names},
    }


def _site_folders() -> list[str]:
    return site.getsitepackages() if hasattr(site, "getsitepackages") else []


def _winner(name: str) -> dict[str, Any] | None:
    """Ask the finders in their order; one that fails is what an import would fail with."""
    for finder in sys.meta_path:
        try:
            find: Any = getattr(finder, "find_spec", None)
            spec = find(name, None, None) if find is not None else None
        except Exception as fault:  # A finder is anybody's code.
            return {"finder": _name(finder), "fault": f"{type(fault).__name__}: {fault}"}
        if spec is not None:
            return {"finder": "" if _is_standard(finder) else _name(finder), **_describe(spec)}
    return None


def _all(name: str, path: list[str]) -> list[dict[str, Any]]:
    found = []
    for entry in path:
        try:
            spec = importlib.machinery.PathFinder.find_spec(name, [entry])
        except Exception:  # A path hook is anybody's code too; the winner tells of its fault.
            continue
        if spec is not None:
            found.append({"entry": entry, **_describe(spec)})
    return found


def _describe(spec: Any) -> dict[str, Any]:
    places = [os.path.abspath(place) for place in spec.submodule_search_locations or ()]
    origin = os.path.abspath(spec.origin) if spec.origin not in (None, "namespace") else None
    return {"origin": origin, "places": places, "namespace": bool(places) and origin is None}


def _name(finder: Any) -> str:
    kind = finder if isinstance(finder, type) else type(finder)
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_standard(finder: Any) -> bool:
    return str(getattr(finder, "__module__", "")).startswith("_frozen_importlib")


if __name__ == "__main__":
    os.write(1, f"\n{MARK}{json.dumps(look(sys.argv[2:], *globals()[SEEN]))}\n".encode())
