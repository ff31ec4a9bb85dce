"""Write the generated pages of docs/: `python -m tests.generate_docs` (or `make docs`); test_docs.py holds them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from tests.generate_layers import layer_pages, schema_page
from toolkit import recipe, series, sources
from toolkit.errors import INTERNAL_ERROR, INTERRUPTED, all_errors
from toolkit.prove import load_catalogue
from toolkit.schema import key_table

DOCS = Path(__file__).parent.parent / "docs"

RECIPE_HEAD = """\
# Recipe reference

A recipe is a TOML file; its name is the file's, without `.toml`. `--recipe` takes the name of one in `recipes/`, or the
path of one that lies anywhere; its lock lies beside it. Unknown keys are refused; all faults of a file are reported at
once, each with its path and line. `extends = "other"` takes another recipe as the start: tables merge key by key,
components by their name, anything else replaces what the other recipe says. This page is generated from the types that
decode a recipe.

"""

LINE_HEAD = """
## `series.toml` of a series

Beside the patches of every series, `patches/<component>/<line>/series.toml` says which bases they are for; a recipe
with another base is refused before anything is fetched. A base is named as `torch_npu==2.13.0` (a release),
`git:` and a full commit id, or `installed:` and a package with its version.

"""

CHECKS_HEAD = """
## Checks

What `[verify]` may name. The witnesses of a recipe's patches run in any case.

| name | | what must be so |
| --- | --- | --- |
"""

CODES_HEAD = """\
# Exit codes

Stable: a script may rely on them. With `--json`, a failed command prints
`{"error": {"kind", "message", "details", "hint", "exit_code"}}`. This page is generated from `toolkit/errors.py`.

| code | error | when |
|---|---|---|
| 0 | | all is well |
| 1 | | `toolkit key diff` found a difference; or whoever reads the output has closed it |
"""


def generated_pages() -> Mapping[str, str]:
    """Return the generated pages by file name."""
    return {
        "recipe-reference.md": recipe_reference(),
        "exit-codes.md": exit_codes(),
        "diagnose-schema.json": schema_page(),
        **layer_pages(),
    }


def recipe_reference() -> str:
    """Return the reference of every key of a recipe and of a series."""
    kinds = sources.available_sources()
    keys = recipe.schema_reference({kind: source.Base for kind, source in kinds.items()})
    return RECIPE_HEAD + keys + LINE_HEAD + key_table(series.LineTable) + "\n" + checks_table()


def checks_table() -> str:
    """Return the table of the checks that a recipe may name."""
    catalogue = load_catalogue(DOCS.parent / "verify")
    rows = [f"| `{one.name}` | {'witness' if one.witness else 'check'} | {one.summary} |" for one in catalogue.values()]
    return CHECKS_HEAD + "\n".join(rows) + "\n"


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [f"| {error.exit_code} | `{error.__name__}` | {_summary(error)} |" for error in all_errors()]
    rows += [
        f"| {INTERNAL_ERROR} | | a bug of toolkit: the traceback is in the log file that the message names |",
        f"| {INTERRUPTED} | | interrupted from the keyboard |",
        "| 129, 143 | | ended by SIGHUP or SIGTERM |",
    ]
    return CODES_HEAD + "\n".join(rows) + "\n\n`toolkit run` ends with the code of the command that it became.\n"


def _summary(error: type) -> str:
    return " ".join((inspect.getdoc(error) or "").split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in generated_pages().items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")
