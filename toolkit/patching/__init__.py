"""The `toolkit patch` commands: each parses, makes one call into `upkeep`, and shows what came of it."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("list", "show", "status"), "looking"),
        "matrix": "matrix",
        "lint": "linting",
        **dict.fromkeys(("new", "edit", "refresh", "split", "reorder", "retire"), "changing"),
        **dict.fromkeys(("import", "export", "rebase"), "moving"),
    }
)
"""The module of each command, where a function or group `patch_<command>` is; it is imported when it is asked for."""


class _PatchCommands(click.Group):
    """Finds the commands in this package's modules, so that no other command pays for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of a patch's life."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that has a command."""
        if cmd_name not in MODULES:
            return None
        found: click.Command = getattr(importlib.import_module(f"{__name__}.{MODULES[cmd_name]}"), f"patch_{cmd_name}")
        return found


@click.group(cls=_PatchCommands)
def patch() -> None:
    """Carry patches: see how they stand, change them, move them to another base, send them upstream, retire them.

    \b
    Example:  toolkit patch status
              toolkit patch matrix --against torch_npu==2.14.0
              toolkit patch edit 2 --series torch_npu/2.13
    """
