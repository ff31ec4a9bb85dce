"""The `toolkit evidence` commands: each parses, makes one call into its room, and shows what came of it."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULES: Mapping[str, str] = MappingProxyType({"scan": "scanning", "repeat": "repeating", "cachekey": "caching"})
"""The module of each command, where a function `evidence_<command>` is; it is imported when it is asked for."""


class _EvidenceCommands(click.Group):
    """Finds the commands in this package's modules, so that no other command pays for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that has a command."""
        if cmd_name not in MODULES:
            return None
        module = importlib.import_module(f"{__name__}.{MODULES[cmd_name]}")
        found: click.Command = getattr(module, f"evidence_{cmd_name}")
        return found


@click.group(cls=_EvidenceCommands)
def evidence() -> None:
    """Look at what runs have left and done: generated code, results of repeated runs, cache keys.

    \b
    Example:  toolkit evidence scan torch_compile_debug --require '@dvm.kernel' --all
    """
