"""What a rule gives as a command can be typed as it is, and deletes nothing."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

from toolkit.process import run
from toolkit.triage import shipped_rules

COMMANDS = {rule.cause: rule.command for rule in shipped_rules().rules if rule.command}
SHOWN = {cause: command.format_map(defaultdict(lambda: "x")) for cause, command in COMMANDS.items()}
DELETES = re.compile(r"\b(?:rm|rmdir|uninstall|kill|pkill|usermod|reboot|mkfs|shred|truncate)\b|-delete\b|>")
OF_ONE_SYSTEM = re.compile(r"\b(?:apt|apt-get|yum|dnf|zypper|apk)\b")
PLACEHOLDER = re.compile(r"…|\b(?:PATH|DIR|LOGS?|LOG_DIR|FILE|PACKAGE|THE_PACKAGE|LIBRARY|OVERLAY|NAME|USER|CMD)\b")


def without_variables(command: str) -> str:
    return re.sub(r"\$\{?\w+|\b\w+=", "", command)


def without_quoted(command: str) -> str:
    return re.sub(r"'[^']*'", "", command)


def test_no_command_is_an_option_alone() -> None:
    assert [cause for cause, command in SHOWN.items() if command.startswith("-")] == []


def test_no_command_has_a_placeholder() -> None:
    assert [cause for cause, command in SHOWN.items() if PLACEHOLDER.search(without_variables(command))] == []


def test_no_command_deletes_anything() -> None:
    assert [cause for cause, command in SHOWN.items() if DELETES.search(without_quoted(command))] == []


def test_no_command_is_of_one_kind_of_system() -> None:
    assert [cause for cause, command in SHOWN.items() if OF_ONE_SYSTEM.search(command)] == []


def test_what_a_log_says_is_quoted_in_a_command() -> None:
    named = re.compile(r"(?<!\{)\{(\w+)\}")
    loose = {cause: named.findall(without_quoted(command)) for cause, command in COMMANDS.items()}

    assert {cause: names for cause, names in loose.items() if names} == {}


def test_a_shell_can_read_every_command(tmp_path: Path) -> None:
    run(["bash", "-n", "-c", "\n".join(SHOWN.values())], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
