"""Traces in the form in which torch writes them, made up: for what real compiles would take long to show."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COMPILE = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
VERSION = {"artifact": {"name": "torch_version", "encoding": "json"}}
CODE = {"inductor_output_code": {"filename": "c.py"}, **COMPILE}


def record(header: Mapping[str, Any], payload: str | None = None, *, stamp: str = "07:28:05.762000") -> str:
    """Write one record, with its payload's own digest in it."""
    if payload is None:
        return f"V1130 {stamp} 5796 torch/_dynamo/utils.py:2350] {json.dumps(header)}\n"
    digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    body = "\n\t".join(payload.split("\n"))
    return f"V1130 {stamp} 5796 torch/x.py:1] {json.dumps({**header, 'has_payload': digest})}\n\t{body}\n"


def version(torch: str = "2.13.0") -> str:
    return record(VERSION, json.dumps({"pytorch_version": torch}))


def lookup(name: str, content: Mapping[str, Any], **where: Any) -> str:
    """Write a look into a cache: `fx_graph_cache_miss`, `aotautograd_cache_hit` and the like."""
    return record({"artifact": {"name": name, "encoding": "json"}, **COMPILE, **where}, json.dumps(content))


def part(name: str, text: str, digest: str | None = None) -> str:
    return f"[{digest or hashlib.sha256(text.encode()).hexdigest()[:51]}] {name}: {text}"


def fx(state: str, key: str | None = "fkey", parts: Sequence[str] | None = ("gm: f",), **more: Any) -> str:
    """Write a look into the FX graph cache; a part is `name: text`, without its digest."""
    where = {name: more.pop(name) for name in ("frame_id", "frame_compile_id", "rank") if name in more}
    content = {"cache_state": state, "key": key, **more}
    if parts is not None:
        content["components"] = [part(*one.split(": ", 1)) for one in parts]
    return lookup(f"fx_graph_cache_{state}", content, **where)


def metrics(seconds: float, name: str = "f", *, backward: bool = False, **more: Any) -> str:
    content = {"co_name": name, "co_filename": "/x/m.py", "co_firstlineno": 3, "duration_us": int(seconds * 1e6)}
    return record({("bwd_" if backward else "") + "compilation_metrics": {**content, **more}, **COMPILE})


def write_program(place: Path, runs: Sequence[Mapping[str, str]], *, after: str = "") -> list[str]:
    """Return a command that writes these traces, each time it is run the next; `after` is what else it does."""
    (place / "runs.json").write_text(json.dumps(runs), encoding="utf-8")
    code = (
        "import json, os, pathlib, sys\n"
        f"place = pathlib.Path({str(place)!r})\n"
        "count = place / 'count'\n"
        "number = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(number + 1))\n"
        "for name, text in json.loads((place / 'runs.json').read_text())[number].items():\n"
        "    pathlib.Path(os.environ['TORCH_TRACE'], name).write_text(text)\n" + after
    )
    (place / "program.py").write_text(code, encoding="utf-8")
    return ["--", sys.executable, str(place / "program.py")]
