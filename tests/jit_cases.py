"""Folders of JIT extensions as torch makes them, and the processes that are at them."""

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HEADER_SIZE = 64

HOLD = "import os, sys, time; os.open(sys.argv[1], os.O_CREAT | os.O_EXCL); print('ready', flush=True); time.sleep(60)"
"""As torch's own FileBaton holds its lock."""


def make_build(folder: Path, name: str) -> Path:
    """Make a build's folder as it is when its only source is compiled, and not linked yet."""
    build = folder / name
    build.mkdir(parents=True)
    for file in ("build.ninja", ".ninja_log", "it.o"):
        (build / file).touch()
    return build


def make_library(path: Path) -> Path:
    """Write a real library."""
    path.write_bytes(_library())
    return path


@cache
def _library() -> bytes:
    """Compile, once, a library that has data, so that its segments reach behind its first page."""
    source = b"int data[4096] = {1}; int answer(void) { return data[1]; }"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "it.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", made], input=source, check=True)
        return made.read_bytes()


def hold_lock(lock: Path) -> list[str]:
    """Return the command of a process that takes a lock, prints `ready`, and keeps it for a minute."""
    return [sys.executable, "-S", "-c", HOLD, str(lock)]


def start_as_ninja(folder: Path) -> list[str]:
    """Return the command of a process that is named ninja, prints `ready`, and works on until it is told something."""
    shutil.copy(shutil.which("sh") or "sh", folder / "ninja")
    return [str(folder / "ninja"), "-c", "echo ready; read line"]


STAND_IN = {
    "torch/__init__.py": "",
    "torch/utils/__init__.py": "",
    "torch/utils/cpp_extension.py": '''
import os, re, subprocess, sys, time, types
from pathlib import Path

WAY = os.environ.get("STAND_IN_WAY", "")

def load(name, sources, verbose, **flags):
    """Compile, so to speak, as torch does: once, into a folder of its own below TORCH_EXTENSIONS_DIR."""
    build = Path(os.environ["TORCH_EXTENSIONS_DIR"], name)
    if WAY == "ignores the folder":
        build = Path(os.environ["HOME"], ".cache/torch_extensions", name)
    library, log = build / f"{name}.so", build / ".ninja_log"
    build.mkdir(parents=True, exist_ok=True)
    if WAY == "cannot compile":
        print("[1/2] c++ -c first.cpp\\n/usr/include/x.h:1:2: error: no such thing\\nninja: build stopped", flush=True)
        raise RuntimeError(f"Error building extension {name!r}")
    if WAY == "hangs":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        Path(os.environ["HOME"], "hanging").write_text(str(child.pid))
        time.sleep(60)
    if WAY == "is killed":
        os.kill(os.getpid(), 9)
    (source,) = sources
    if not library.exists() or WAY == "compiles each time":
        library.write_text(re.search('"(first|other)"', Path(source).read_text())[1])
        with log.open("a") as lines:
            lines.write(f"{time.time_ns()}\\n")
    return types.SimpleNamespace(__file__=str(library), made_for=library.read_text())
''',
}
"""A torch that compiles nothing and keeps its books as torch does; STAND_IN_WAY makes it misbehave in one way."""
