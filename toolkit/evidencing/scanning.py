"""`toolkit evidence scan`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.errors import FindingsError, UsageError
from toolkit.options import common_options, complete_recipe, give, make_console, project_of

if TYPE_CHECKING:
    from toolkit.answers import Answer
    from toolkit.model import EvidenceWanted


@click.command("scan")
@click.argument("places", nargs=-1, required=True, metavar="DIR…", callback=lambda _c, _p, value: _paths(value))
@click.option(
    "--require", multiple=True, metavar="PATTERN",
    help="What there must be in at least one file: `@name` is a decorator, anything else a regular expression for the "
    "names of called operators. May be given again, as all of these.",
)  # fmt: skip
@click.option("--all", "in_all", is_flag=True, help="Have what is required in every file.")
@click.option("--forbid", multiple=True, metavar="PATTERN", help="What there must be in no file.")
@click.option("--keep", multiple=True, metavar="REGEX", help="Calls that many files must have; goes with --at-least.")
@click.option(
    "--at-least", multiple=True, type=click.IntRange(1), metavar="N", help="In how many files, --keep by --keep."
)
@click.option("--no-alias-hazard", is_flag=True, help="Fail on any alias hazard, the possible ones too.")
@click.option(
    "--recipe", envvar="TOOLKIT_RECIPE", shell_complete=complete_recipe,
    help="Require what the [evidence] of this recipe says as well.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the JSON document to a file."
)
@common_options
def evidence_scan(places: tuple[Path, ...], recipe: str | None, output: Path | None, **options: Any) -> None:
    """Say what generated code holds: kernels by backend and type, operators, fallbacks, and alias hazards.

    Each DIR is searched for `output_code.py` (torch_compile_debug) and for the wrappers in an Inductor cache, which are
    told by what they hold; files may be named too. Nothing of them is executed. The exit code is 23 where a requirement
    is not met, where a file could not be read, or where there is no generated code.

    \b
    Example:  toolkit evidence scan torch_compile_debug
              toolkit evidence scan torch_compile_debug --require '@dvm.kernel' --all --forbid '@triton.jit' \\
                  --keep 'cann_ops_transformer|sparse_flash_mla' --at-least 64 --no-alias-hazard
              toolkit evidence scan --recipe mine /tmp/torchinductor_me --json

    \b
    where recipes/mine.toml is a recipe of yours with an [evidence] table:
              schema = 1
              extends = "dsv4-dvm-release"
              [evidence]
              require = ["@dvm.kernel"]
              forbid = ["@triton.jit"]
    """
    from toolkit import scan
    from toolkit.evidencing import answers_scanning as answers

    console = make_console(options)
    wanted = _wanted(recipe, options)
    scan.require_patterns(wanted)
    search = scan.find_files(places)
    if output is not None:
        _require_other(output, places, (*(one.path for one in search.candidates), *search.repeated))
    reports = [*search.unreadable, *scan.read_files(search.candidates, os.environ)]
    judged = scan.judge(reports, wanted)
    outcome = scan.overall(reports, judged)
    answer = answers.describe_scan(reports, search.repeated, judged, outcome, verbose=bool(options["verbose"]))
    if output is not None:
        _write(output, answer)
    give(console, answer)
    if outcome != "passed":
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(answers.describe_outcome(reports, judged, outcome), hint=answers.hint_of(reports, judged))


def _paths(words: Sequence[str]) -> tuple[Path, ...]:
    """Return the places; an empty word is none, whatever variable it came from."""
    if not all(words):
        raise click.BadParameter("a DIR is empty: name folders of a run, or files of generated code")
    return tuple(map(Path, words))


def _require_other(output: Path, places: Sequence[Path], scanned: Sequence[str]) -> None:
    """Raise UsageError for an `-o` that is a scanned file, or would be one the next time."""
    real = os.path.realpath(output)
    is_below = any(Path(real).is_relative_to(os.path.realpath(place)) for place in places)
    if real in map(os.path.realpath, scanned) or (is_below and real.endswith(".py")):
        raise UsageError(
            f"-o {str(output)!r} is one of the files that are scanned, or would be taken for one",
            hint="write the document elsewhere, or as .json",
        )


def _wanted(recipe: str | None, options: dict[str, Any]) -> EvidenceWanted:
    """Join what the command line and a recipe want."""
    from toolkit.model import NO_EVIDENCE, EvidenceKept, EvidenceWanted

    keep, at_least = options["keep"], options["at_least"]
    if len(keep) != len(at_least):
        raise UsageError(
            f"--keep is given {len(keep)} times, --at-least {len(at_least)} times",
            hint="write a pair for each: --keep REGEX --at-least N",
        )
    asked = any(options[name] for name in ("require", "forbid", "keep", "no_alias_hazard"))
    said = _said_by(recipe, options, asked=asked) if recipe is not None else NO_EVIDENCE
    return EvidenceWanted(
        require=tuple(dict.fromkeys((*said.require, *options["require"]))),
        in_all=said.in_all or options["in_all"],
        forbid=tuple(dict.fromkeys((*said.forbid, *options["forbid"]))),
        keep=(*said.keep, *(EvidenceKept(pattern=p, at_least=n) for p, n in zip(keep, at_least, strict=True))),
        no_alias_hazard=said.no_alias_hazard or options["no_alias_hazard"],
    )


def _said_by(recipe: str, options: dict[str, Any], *, asked: bool) -> EvidenceWanted:
    """Return what a recipe wants; UsageError where that is nothing and the command line asks for nothing either.

    A recipe that only TOOLKIT_RECIPE names is there for other commands too, and may want nothing.
    """
    from toolkit import plan

    said = plan.read_recipe(project_of(options), recipe).evidence
    if said.require or said.forbid or said.keep or said.no_alias_hazard or asked or not _is_named_here():
        return said
    raise UsageError(
        f"{recipe} requires nothing: {'its [evidence] has only `all`' if said.in_all else 'it has no [evidence]'}",
        hint="write the table into it, add --require, --forbid, --keep or --no-alias-hazard, or leave --recipe out",
    )


def _is_named_here() -> bool:
    return click.get_current_context().get_parameter_source("recipe") is click.core.ParameterSource.COMMANDLINE


def _write(output: Path, answer: Answer) -> None:
    import json

    from toolkit.files import write_output

    write_output(output, json.dumps(answer.document, indent=1) + "\n")
