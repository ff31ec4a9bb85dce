"""From a source tree to a wheel: the environment that a build stands on, and the build itself.

environment = obtain_environment(spec.requirements, …)  ->  build_wheel(tree, spec, environment=environment, …)
"""

from __future__ import annotations

from toolkit.build.drivers import compiler_digest, compiler_drivers, compiler_links
from toolkit.build.environment import obtain_environment
from toolkit.build.jobs import choose_jobs
from toolkit.build.make import BuiltWheel, build_wheel
from toolkit.build.workroom import build_words, shell_command

__all__ = [
    "LOGIC_VERSION",
    "BuiltWheel",
    "build_wheel",
    "build_words",
    "choose_jobs",
    "compiler_digest",
    "compiler_drivers",
    "compiler_links",
    "obtain_environment",
    "shell_command",
]

LOGIC_VERSION = "2"
"""Part of every native wheel's key: raise it when the same inputs would be built to other bytes."""
