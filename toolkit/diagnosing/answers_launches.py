"""What `toolkit preflight` answers: a line for each thing, then the whole command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.answers import Answer
from toolkit.diagnosing.answers_machine import describe_observations
from toolkit.diagnosing.wrapping import WIDTH
from toolkit.model import Observation
from toolkit.preflight import filled_command, filled_variables

if TYPE_CHECKING:
    from toolkit.preflight import Subject


def describe_preflight(
    observations: Sequence[Observation], subject: Subject, *, verbose: bool, width: int = WIDTH
) -> Answer:  # fmt: skip
    """Show the observations, and the command with the variables that the overlay and the command itself set."""
    seen = describe_observations(observations, verbose=verbose, width=width)
    variables = filled_variables(subject)
    text = filled_command(variables, subject.argv)
    document = {
        **seen.document,
        "recipe": subject.overlay.recipe,
        "overlay": str(subject.overlay.root),
        "command": {"variables": variables, "argv": list(subject.argv), "text": text},
    }
    return Answer(text=f"{seen.text}\n\n{text}", document=document)
