"""Compile one small C++ extension through torch, or find it compiled: a process of its own for jit-extensions.

    python -m verify.jit_probe NAME SOURCE RESULT [CANN]

Where it goes is torch's affair, which reads TORCH_EXTENSIONS_DIR. With the home of CANN, the extension is compiled
with its headers and linked to its runtime, as those of operator packages are. What the compiler prints is on standard
output. RESULT is JSON, there only if all went well: the `file` that was loaded, whom its source was `made_for`, and
the `seconds` that torch took.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any


def main(name: str, source: str, result: str, cann: str = "") -> None:
    """Load the extension `name` and write what came of it."""
    cpp_extension = importlib.import_module("torch.utils.cpp_extension")
    began = time.monotonic()
    module = cpp_extension.load(name=name, sources=[source], verbose=True, **flags(cann))
    told = {
        "file": module.__file__,
        "made_for": module.made_for,
        "seconds": round(time.monotonic() - began, 3),
    }
    Path(result).write_text(json.dumps(told), encoding="utf-8")


def flags(cann: str) -> dict[str, Any]:
    """Return what torch is given besides, to compile against the CANN home `cann`; nothing without one."""
    if not cann:
        return {}
    return {
        "extra_include_paths": [os.path.join(cann, "include")],
        # Unlike the include paths, these words reach the shell as they are.
        "extra_ldflags": [shlex.quote(f"-L{cann}/lib64"), "-lascendcl"],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
