"""The command line: parse, build the values, make one call, show the result."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from toolkit import __version__
from toolkit.ending import (
    Commands,
    ending_by_signal,
    let_streams_take_all_text,
    open_closed_streams,
    run_commands,
)
from toolkit.errors import ProofError, UsageError
from toolkit.options import (
    checked_overlay,
    common_options,
    give,
    interpreter_of,
    interpreter_option,
    junit_option,
    make_console,
    means_of,
    names_target,
    plan_of,
    project_of,
    recipe_option,
    target_options,
    warn_of_extensions,
    work_options,
)

if TYPE_CHECKING:
    from toolkit.envfile import Shell
    from toolkit.pipeline import Stage

STAGES = ("fetch", "patch", "wheel", "overlay", "verify")
SHELLS = ("sh", "fish", "json", "dotenv", "github")

LATE: Mapping[str, str] = MappingProxyType(
    {
        "cache": "toolkit.groups:cache",
        "debug": "toolkit.groups:debug",
        "diagnose": "toolkit.diagnosing.logs:diagnose",
        "doctor": "toolkit.diagnosing.machine:doctor",
        "evidence": "toolkit.evidencing:evidence",
        "key": "toolkit.groups:key",
        "lint": "toolkit.diagnosing.code:lint",
        "patch": "toolkit.patching:patch",
        "preflight": "toolkit.diagnosing.launches:preflight",
        "recipe": "toolkit.groups:recipe_group",
        "report": "toolkit.reporting:report",
    }
)
"""Where commands are that are imported only when they are asked for."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the code of `docs/exit-codes.md`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    let_streams_take_all_text()
    with ending_by_signal():
        sys.exit(run_commands(cli, words))


class _AllCommands(Commands):
    """Finds some commands in modules of their own, so that no other command pays for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return sorted({*super().list_commands(ctx), *LATE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that has a command."""
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        module, _, name = LATE[cmd_name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return found


@click.group(cls=_AllCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="toolkit")
def cli() -> None:
    """Turn a recipe of pinned bases and patches for torch_npu into a proven overlay.

    \b
    Example:  toolkit build --recipe dsv4-dvm-release
              source overlays/dsv4-dvm-release/env.sh
    """


@cli.command()
@click.option("--until", default="verify", show_default=True, type=click.Choice(STAGES), help="Stop after this stage.")
@click.option(
    "--component", "names", multiple=True, metavar="NAME", help="Only this component; for stages before the overlay."
)
@recipe_option
@junit_option
@target_options
@work_options
@common_options
def build(recipe: str, junit: Path | None, until: Stage, names: tuple[str, ...], **options: Any) -> None:
    """Build a recipe's overlay, prove it, and print its env file.

    \b
    Example:  toolkit build --recipe dsv4-dvm-release
              toolkit build --python-tag cp312 --platform manylinux_2_28_aarch64
              toolkit build --recipe dsv4-dvm --until patch --mirror torch_npu=/src/pytorch
    """
    from toolkit import answers, current

    console, project = make_console(options), project_of(options)
    if until != "verify" or names:
        _build_until(until, names, junit, recipe, options)
        return
    folder = current.recipe_folder(project, recipe)
    facts = current.facts_of(project, folder, recipe, str(interpreter_of(options)), os.environ)
    current.require_own(folder, facts)
    is_plain = not names_target(options) and junit is None and options["sandbox"] != "require"
    if is_plain and current.up_to_date(folder, facts):
        standing = current.open_current(folder)
        give(console, answers.describe_overlay(standing, folder.path, did=(), proof=None, report=folder.report))
        return
    from toolkit import pipeline, prove

    plan = plan_of(project, recipe, options)
    result = pipeline.build(plan, means_of(project, options), console, facts=facts)
    if junit is not None:
        prove.write_junit(result.proof, junit)
    record = prove.proof_document(result.proof)
    made = answers.describe_overlay(
        result.overlay, result.folder.path, did=result.did, proof=record, report=result.folder.report
    )
    document = {**made.document, "patches": answers.describe_patches(result.wheels)}
    if plan.can_load:
        give(console, answers.Answer(text=made.text, document=document))
    else:
        other = answers.describe_other_target(result.overlay)
        text = "\n".join([other.text, *answers.report_lines(result.folder.report)])
        give(console, answers.Answer(text=text, document={**document, **other.document}))


@cli.command()
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check; may be given again.")
@junit_option
@recipe_option
@target_options
@work_options
@common_options
def verify(recipe: str, checks: tuple[str, ...], junit: Path | None, **options: Any) -> None:
    """Prove the current overlay again; exit with 0 only if every required check came out as required.

    \b
    Example:  toolkit verify --recipe dsv4-dvm-release --check dvm-backend --json
    """
    from toolkit import pipeline, prove
    from toolkit.current import PROOF_FILE

    console, project = make_console(options), project_of(options)
    plan = plan_of(project, recipe, options)
    overlay, proof = pipeline.verify(plan, means_of(project, options), console, checks=checks)
    if junit is not None:
        prove.write_junit(proof, junit)
    if options["as_json"]:
        console.answer("", prove.proof_document(proof))
        raise click.exceptions.Exit(0 if proof.ok else ProofError.exit_code)
    pipeline.require_proof(proof, overlay.root / (pipeline.LOGS if checks else PROOF_FILE))


@cli.command()
@click.option("--shell", type=click.Choice(SHELLS), default="sh", show_default=True, help="For whom.")
@recipe_option
@interpreter_option
@common_options
def env(recipe: str, shell: Shell, **options: Any) -> None:
    """Print what activates the overlay, once its files are checked.

    \b
    Example:  eval "$(toolkit env)"
              toolkit env --shell github >> "$GITHUB_ENV"
    """
    from toolkit import envfile

    overlay = checked_overlay(recipe, options)
    chosen: Shell = "json" if options["as_json"] else shell
    click.echo(envfile.render_for(chosen, overlay, os.environ), nl=False)


@cli.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--host", is_flag=True, help="On a machine without an NPU: also with the host sysroot.")
@click.option("--base", is_flag=True, help="With the unpatched base in the overlay's place, to see what a patch mends.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@recipe_option
@interpreter_option
@common_options
def run(recipe: str, host: bool, base: bool, command: tuple[str, ...], **options: Any) -> None:
    """Run a command with the overlay active; `python` is then the interpreter that the overlay was checked for.

    \b
    Example:  toolkit run -- python train.py --steps 10
              toolkit run --host -- python -c "import torch_npu"
    """
    from toolkit import envfile
    from toolkit.process import replace_process

    overlay = checked_overlay(recipe, options)
    warn_of_extensions(overlay, options)
    activation = envfile.activation_of(overlay)
    environ = envfile.activate(os.environ, activation)
    if host or base:
        from toolkit import grounds

        project = project_of(options)
        needs = plan_of(project, recipe, options), means_of(project, options), make_console(options)
        if base:
            environ = envfile.activate_base(os.environ, activation, grounds.obtain_base_site(*needs))
        if host:
            environ |= grounds.runtime_variables(*needs)
    environ["PATH"] = f"{interpreter_of(options).absolute().parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    replace_process(list(command), environ)


@cli.command()
@click.option("--upgrade", is_flag=True, help="Resolve every base again, not only what is missing or stale.")
@recipe_option
@common_options
def lock(recipe: str, upgrade: bool, **options: Any) -> None:
    """Resolve a recipe's bases to exact artifacts and write the lock beside it.

    \b
    Example:  toolkit lock --recipe dsv4-dvm-release
    """
    from toolkit import answers, resolve

    console, project = make_console(options), project_of(options)
    written, changed = resolve.resolve_recipe(project, recipe, upgrade=upgrade, environ=os.environ, stage=console.stage)
    give(console, answers.describe_lock(written, changed))


@cli.command()
@recipe_option
@target_options
@work_options
@common_options
def sysroot(recipe: str, **options: Any) -> None:
    """Make the host sysroot of a recipe's base and print its path and the variables that put it to use.

    \b
    Example:  toolkit sysroot --recipe dsv4-dvm-release --json
    """
    from toolkit import answers, grounds
    from toolkit import sysroot as room

    console, project = make_console(options), project_of(options)
    plan = plan_of(project, recipe, options)
    root = grounds.obtain_sysroot(plan, means_of(project, options), console)
    give(console, answers.describe_sysroot(root, room.sysroot_variables(root)))


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell's completion script.

    \b
    Example:  eval "$(toolkit completion bash)"
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "toolkit", "_TOOLKIT_COMPLETE").source())


def _build_until(
    until: Stage, names: tuple[str, ...], junit: Path | None, recipe: str, options: dict[str, Any]
) -> None:  # fmt: skip
    from toolkit import answers, pipeline

    if junit is not None:
        raise UsageError(f"--junit writes a proof, and --until {until} makes none", hint="leave one of them out")
    if names and until not in pipeline.PART_STAGES:
        raise UsageError(
            "--component takes one component only, an overlay has all",
            hint=f"add --until with one of {', '.join(pipeline.PART_STAGES)}",
        )
    console, project = make_console(options), project_of(options)
    plan = plan_of(project, recipe, options)
    means = means_of(project, options)
    if until == "overlay":
        built = pipeline.build_overlay(plan, means, console)
        give(console, answers.describe_unproven(built))
    else:
        results = pipeline.build_parts(plan, means, console, until, names)
        give(console, answers.describe_parts(plan.recipe.name, until, results))


if __name__ == "__main__":
    main()
