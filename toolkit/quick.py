"""The two commands that are run all the time, answered at once where nothing is to be done.

Starting the whole command line costs more than the work of a build that has nothing to do. So `toolkit build` and
`toolkit env`, with at most `--recipe`, are tried here first; whatever is not plain sailing (another option, a changed
input, an overlay that does not hold) is left to `toolkit.cli`, which does the same and can say what is wrong.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.errors import INTERRUPTED
from toolkit.project import DEFAULT_RECIPE, find_project

COMMANDS = ("build", "env")

YOUNG_OBJECTS = 50_000
"""So many new objects before they are looked through: starting makes many, and hardly any of them is garbage."""

OTHERS_SAY = ("TOOLKIT_PYTHON",)
"""Variables that stand for options which are not looked at here."""


def main() -> None:
    """Answer if that can be done at once, else run the command line."""
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        answer = quick_answer(sys.argv[1:], os.environ)
        if answer is not None and _say(answer):
            return
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    from toolkit.cli import main as run_command_line

    run_command_line()


def quick_answer(words: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return what `build` or `env` prints where the overlay stands unchanged and holds; None for anything else."""
    recipe = _asked_recipe(words, environ)
    if recipe is None:
        return None
    from toolkit import current  # All other commands start sooner without it.

    answers = {"build": current.BUILD_ANSWER, "env": current.ENV_ANSWER}
    try:
        root = environ.get("TOOLKIT_PROJECT")
        project = find_project(start=Path.cwd(), environ=environ, root=Path(root) if root else None)
        folder = current.recipe_folder(project, recipe)
        facts = current.facts_of(project, folder, recipe, sys.executable, environ)
        trace = current.up_to_date(folder, facts, environ)
    except Exception:  # the command line comes upon the same, and can report it
        return None
    answer = trace.result.get(answers[words[0]]) if trace else None
    if answer and words[0] == "build" and (report := folder.report):
        return f"{answer}\nreport: {report}"
    return answer


def _asked_recipe(words: Sequence[str], environ: Mapping[str, str]) -> str | None:
    if not words or words[0] not in COMMANDS or any(environ.get(name) for name in OTHERS_SAY):
        return None
    if len(words) == 1:
        return environ.get("TOOLKIT_RECIPE") or DEFAULT_RECIPE
    return words[2] if len(words) == 3 and words[1] == "--recipe" else None


def _say(answer: str) -> bool:
    """Print an answer; False where nobody takes it, or there is no output at all: the command line can report it."""
    try:
        sys.stdout.write(answer if answer.endswith("\n") else f"{answer}\n")
        sys.stdout.flush()
    except (OSError, UnicodeEncodeError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main()
