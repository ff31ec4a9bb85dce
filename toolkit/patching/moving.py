"""`toolkit patch import`, `export` and `rebase`: patches from upstream, to upstream, and on to another base."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.errors import UsageError
from toolkit.options import (
    common_options,
    give,
    make_console,
    means_of,
    network_options,
    project_of,
    recipe_option,
)
from toolkit.patching.choosing import chosen_series, series_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.upkeep.exporting import ExportedPatch

    Command = Callable[..., Any]

DEFAULT_BRANCH = "HEAD"
"""The branch that a repository says itself is its main one."""


def waiting_options(command: Command) -> Command:
    """Add what ends or goes on with work that waits for a person."""
    for option in (
        click.option("--abort", is_flag=True, help="Give it up: the series is as it was."),
        click.option("--why", default="", metavar="TEXT", help="With --skip: the reason, for whoever asks later."),
        click.option("--skip", is_flag=True, help="Leave out the patch that waits, and go on."),
        click.option("--continue", "go_on", is_flag=True, help="Go on after a conflict that you have resolved."),
    ):
        command = option(command)
    return command


@click.command("import")
@click.argument("origin", required=False, metavar="[COMMIT|REQUEST|FILE]")
@click.option("--witness", default="", metavar="NAME", help="The witness of the fault that it mends.")
@click.option("--status", default="", metavar="TEXT", help="Its Upstream-Status, if not what its origin says.")
@click.option(
    "--only", multiple=True, metavar="PATH", help="Take only this file or folder of upstream's; again for more."
)
@click.option("--leave-out", multiple=True, metavar="PATH", help="Do without this file or folder of upstream's.")
@click.option(
    "--target", default=DEFAULT_BRANCH, metavar="BRANCH", help="What a request is to go into; the main branch."
)
@click.option("--author", default="", metavar="'NAME <ADDRESS>'", help="Who made a diff that comes without a mail.")
@click.option("--message", default="", metavar="TEXT", help="What such a diff is for: a subject, an empty line, more.")
@click.option("--three-way", is_flag=True, help="Merge what does not fit as it is.")
@waiting_options
@series_option
@recipe_option
@network_options
@common_options
def patch_import(
    origin: str | None, series: str | None, recipe: str, target: str, three_way: bool, go_on: bool, skip: bool,
    abort: bool, why: str, witness: str, status: str, only: tuple[str, ...], leave_out: tuple[str, ...], author: str,
    message: str, **options: Any,
) -> None:  # fmt: skip
    """Put a change of upstream's on top of a series, proven to be the same hunk by hunk.

    COMMIT is a full id of the line's upstream, URL@COMMIT or URL@REF; REQUEST the address of a pull or merge request,
    whose commits become a patch each; FILE a mail, an mbox or a diff.

    \b
    Example:  toolkit patch import deaff7cff952d11ff5bd81e070f1ba2ad7d1a7b9 --series cann_ops_transformer/9.1
              toolkit patch import https://github.com/NAME/REPOSITORY/pull/12 --witness aliased-reduction
              toolkit patch import fix.mbox --leave-out test/
    """
    from toolkit.patching.answers_moving import describe_abort, describe_import
    from toolkit.upkeep import importing
    from toolkit.upkeep.arriving import Wishes

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series, recipe)
    _require_one({"an ORIGIN": origin, "--continue": go_on, "--skip": skip, "--abort": abort})
    if abort:
        importing.abort_import(project, name)
        give(console, describe_abort("import", name))
        return
    if go_on:
        imported = importing.continue_import(project, name)
    elif skip:
        imported = importing.skip_import(project, name, _require_why(why))
    else:
        wishes = Wishes(
            witness=witness, status=status, only=only, leave_out=leave_out, author=author, message=message
        )  # fmt: skip
        imported = importing.import_patches(
            project, means_of(project, options), name, str(origin), wishes, target=target, three_way=three_way
        )
    give(console, describe_import(imported))


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["mbox", "branch"]),
    default="mbox",
    show_default=True,
    help="Mails, or a branch.",
)
@click.option(
    "--patch", "numbers", type=click.IntRange(1), multiple=True, metavar="N", help="Only this patch; again for more."
)
@click.option(
    "--keep-trailers", is_flag=True, help="Leave the trailers that are only ours: Witness, Upstream-Status, …"
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="The mbox; COMPONENT-LINE.mbox if not given."
)
@click.option("--repository", type=click.Path(path_type=Path, file_okay=False), help="The clone that gets the branch.")
@click.option("--branch", metavar="NAME", help="The branch to make there; it must not be there yet.")
@click.option("--onto", metavar="REF", help="The commit that it begins at.")
@click.option("--committer", default="", metavar="'NAME <ADDRESS>'", help="Who commits, if not whom the clone names.")
@series_option
@recipe_option
@network_options
@common_options
def patch_export(
    form: str, series: str | None, recipe: str, numbers: tuple[int, ...], keep_trailers: bool, output: Path | None,
    repository: Path | None, branch: str | None, onto: str | None, committer: str, **options: Any,
) -> None:  # fmt: skip
    """Write a series for upstream: as an mbox that `git am` takes, or as a branch in a clone of yours.

    In the clone only objects and that one branch are made; its work tree, index, HEAD and configuration stay.

    \b
    Example:  toolkit patch export --series torch_npu/2.13 --output dvm.mbox
              toolkit patch export --format branch --repository ../pytorch --branch dvm-fixes --onto origin/master
    """
    from toolkit.patching.answers_moving import describe_branch, describe_mbox
    from toolkit.upkeep.exporting import export_branch, export_mails

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series, recipe)
    means = means_of(project, options)
    if form == "mbox":
        _refuse({"--repository": repository, "--branch": branch, "--onto": onto, "--committer": committer}, form)
        place = output or Path(f"{name.replace('/', '-')}.mbox")
        _require_absent(place)
        mails = export_mails(project, means, name, numbers=numbers, keep_trailers=keep_trailers)
        _write_mbox(mails, place)
        give(console, describe_mbox(name, mails, place))
        return
    _refuse({"--output": output}, form)
    if repository is None or branch is None or onto is None:
        raise UsageError("a branch needs --repository DIR, --branch NAME and --onto REF")
    mails = export_mails(project, means, name, numbers=numbers, keep_trailers=keep_trailers)
    made = export_branch(
        mails, repository, branch=branch, onto=onto, committer=committer, environ=os.environ
    )  # fmt: skip
    give(console, describe_branch(name, mails, made, repository))


@click.command("rebase")
@click.option("--onto", metavar="BASE", help="The new base: NAME==VERSION, git:URL@REF, or as `covers` has it.")
@click.option("--into", default="", metavar="COMPONENT/LINE", help="Make a new line of it; the old one stays as it is.")
@waiting_options
@series_option
@recipe_option
@network_options
@common_options
def patch_rebase(
    onto: str | None, into: str, series: str | None, recipe: str, go_on: bool, skip: bool, abort: bool, why: str,
    **options: Any,
) -> None:  # fmt: skip
    """Move a series to another base: three-way, patch by patch; a conflict stops it, with the work tree kept.

    \b
    Example:  toolkit patch rebase --onto torch_npu==2.14.0 --series torch_npu/2.13
              toolkit patch rebase --onto torch_npu==2.13.0 --series torch_npu/2.12 --into torch_npu/2.13
              toolkit patch rebase --continue --series torch_npu/2.13
    """
    from toolkit.patching.answers_moving import describe_abort, describe_rebase
    from toolkit.upkeep import rebasing

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series, recipe)
    _require_one({"--onto BASE": onto, "--continue": go_on, "--skip": skip, "--abort": abort})
    means = means_of(project, options)
    if abort:
        rebasing.abort_rebase(project, name)
        give(console, describe_abort("rebase", name))
        return
    if go_on:
        moved = rebasing.continue_rebase(project, means, name)
    elif skip:
        moved = rebasing.skip_patch(project, means, name, _require_why(why))
    else:
        moved = rebasing.rebase_series(project, means, name, str(onto), into=into)
    give(console, describe_rebase(moved))


def _require_one(choices: dict[str, Any]) -> None:
    chosen = [name for name, value in choices.items() if value]
    if len(chosen) != 1:
        raise UsageError(
            f"{' and '.join(chosen)} do not go together" if chosen else "nothing was asked for",
            hint=f"say one of {', '.join(choices)}",
        )


def _require_why(why: str) -> str:
    if not why.strip():
        raise UsageError("--skip leaves a patch out, and nothing says why", hint="say it: --why 'TEXT'")
    return why.strip()


def _refuse(choices: dict[str, Any], form: str) -> None:
    if chosen := [name for name, value in choices.items() if value]:
        raise UsageError(f"--format {form} takes no {chosen[0]}")


def _require_absent(place: Path) -> None:
    if os.path.lexists(place):
        raise UsageError(f"{place} is there already", hint="name another file with --output")


def _write_mbox(mails: list[ExportedPatch], place: Path) -> None:
    from toolkit.files import write_atomic

    write_atomic(place.absolute(), b"".join(one.mail for one in mails))
