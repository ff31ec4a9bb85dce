"""The configuration file that torchtitan's older releases take: what it says counts where the command says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from toolkit.launch.options import normal_name
from toolkit.launch.values import CONFIG_FILE, Launch

LARGEST = 1 << 20
"""How many bytes of a configuration file are read; one that is longer is none."""


def with_config(launch: Launch, folder: Path | None) -> Launch:
    """Return a launch with what its configuration file says, where it names one that can be read."""
    named = launch.options.get(CONFIG_FILE)
    if named is None or not named.value or folder is None:
        return launch
    values = _read_values((launch.folder or folder) / named.value)
    return launch if values is None else replace(launch, config=values, config_path=named.value)


def _read_values(path: Path) -> Mapping[str, str] | None:
    from toolkit.schema import TomlError, parse_toml

    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
        return None if len(raw) > LARGEST else dict(_flatten(parse_toml(raw)[1], ""))
    except (OSError, ValueError, TomlError):
        return None


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of all tables with what they hold, by the options' normal names."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.")
        elif isinstance(value, list):
            yield normal_name(name), ",".join(map(str, value))
        else:
            yield normal_name(name), str(value).lower() if isinstance(value, bool) else str(value)
