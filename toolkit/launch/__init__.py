"""A training command, read: its variables, its options in any spelling, and the run script that it starts.

Nothing is run, and nothing is guessed: what only a shell could tell is unknown, and a fact that nobody knows is absent.
"""

from __future__ import annotations

from toolkit.launch.command import read_command, read_command_text
from toolkit.launch.environment import read_environment_text
from toolkit.launch.facts import launch_facts, process_count
from toolkit.launch.options import is_switch
from toolkit.launch.values import CONFIG_FILE, Launch, Option

__all__ = [
    "CONFIG_FILE",
    "Launch",
    "Option",
    "is_switch",
    "launch_facts",
    "process_count",
    "read_command",
    "read_command_text",
    "read_environment_text",
]
