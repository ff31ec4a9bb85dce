"""The commands that change a series: new, edit, refresh, split, reorder, retire."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from toolkit.options import common_options, give, make_console, means_of, network_options, project_of
from toolkit.patching.choosing import chosen_series, series_option
from toolkit.patching.working import (
    asker,
    base_option,
    command_option,
    pause_options,
    require_line,
    required,
    worker,
)

if TYPE_CHECKING:
    from toolkit.project import Project
    from toolkit.report import Console
    from toolkit.upkeep.adding import NewPatch
    from toolkit.upkeep.editing import Command as EditCommand
    from toolkit.upkeep.writeback import Written

STATUS = "Pending [not sent yet]"


@click.command("new")
@click.option("--subject", help="What the patch does, as the first line of its message.")
@click.option("--witness", help="The name of the witness that shows the fault.")
@click.option("--status", default=STATUS, show_default=True, help="Its Upstream-Status.")
@click.option(
    "--message",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file with the message's body; your editor asks for it if not given.",
)
@click.option(
    "--from",
    "diff",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take the change from a diff; no shell is opened.",
)
@command_option
@pause_options
@base_option
@series_option
@network_options
@common_options
def patch_new(
    series: str | None, subject: str | None, witness: str | None, status: str, message: Path | None,
    diff: Path | None, command: str | None, goes_on: bool, abort: bool, base: str | None, **options: Any,
) -> None:  # fmt: skip
    """Add a patch at the end of a series.

    A shell is opened in a git work tree with the series applied; what you have changed when you leave it becomes the
    patch. Commits that you make there yourself are taken as they are, each as one patch.

    \b
    Example:  toolkit patch new --subject "dvm: keep the sign" --witness kept-sign --series torch_npu/2.13
              toolkit patch new --subject "dvm: keep the sign" --witness kept-sign --from fix.diff --message why.txt
    """
    from toolkit.upkeep import adding

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    if abort:
        _give_up(console, project, name, "new", goes_on=goes_on)
        return
    ask = asker(message, options)
    if goes_on:
        written = adding.go_on(project, name, means=means_of(project, options), ask=ask)
    else:
        new = _new_patch(subject, witness, status, diff)
        written = adding.add_patch(
            project, name, new, means=means_of(project, options), base=base, ask=ask,
            work=worker(console, options, command, f"series {name}, to be changed"),
        )  # fmt: skip
    _give(console, project, written)


@click.command("edit")
@click.argument("number", type=int, required=False)
@click.option("--amend", is_flag=True, help="With --continue: put what is in no commit into the last one.")
@click.option("--skip", is_flag=True, help="Leave out the patch that conflicts or has nothing left to do, and go on.")
@command_option
@pause_options
@base_option
@series_option
@network_options
@common_options
def patch_edit(
    series: str | None, number: int | None, command: str | None, amend: bool, skip: bool, goes_on: bool, abort: bool,
    base: str | None, **options: Any,
) -> None:  # fmt: skip
    """Change a patch in a git work tree, and put the later ones on top of it again.

    A shell is opened with the series as commits and patch NUMBER checked out: amend its commit, or add others. When
    you leave it, the later patches follow, as `git rebase` does it, and the series is written. What is in no commit,
    or conflicts, is kept for --continue or --abort.

    \b
    Example:  toolkit patch edit 2 --series torch_npu/2.13
              toolkit patch edit --continue --amend --series torch_npu/2.13
    """
    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    if abort:
        _give_up(console, project, name, "edit", goes_on=goes_on)
    elif goes_on or skip:
        _go_on(console, project, name, "edit", amend=amend, skip=skip)
    else:
        _edit(console, project, name, "edit", number, command, base, options)


@click.command("refresh")
@click.argument("numbers", type=int, nargs=-1)
@base_option
@series_option
@network_options
@common_options
def patch_refresh(series: str | None, numbers: tuple[int, ...], base: str | None, **options: Any) -> None:
    """Write patches again as git writes them for their base: normal form, and every hunk at its own line.

    \b
    Example:  toolkit patch refresh --series torch_npu/2.13
              toolkit patch refresh 3 4 --series torch_npu/2.13
    """
    from toolkit.upkeep.reshaping import refresh_series

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    written = refresh_series(project, name, numbers, means=means_of(project, options), base=base)
    _give(console, project, written)


@click.command("split")
@click.argument("number", type=int, required=False)
@click.option(
    "--by", type=click.Choice(("file", "hunk")), default="file", show_default=True, help="What each new patch changes."
)
@click.option("--shell", "by_hand", is_flag=True, help="Open a shell with the patch's change in no commit.")
@click.option("--skip", is_flag=True, help="Leave out the patch that conflicts or has nothing left to do, and go on.")
@command_option
@pause_options
@series_option
@network_options
@common_options
def patch_split(
    series: str | None, number: int | None, by: Literal["file", "hunk"], by_hand: bool, skip: bool,
    command: str | None, goes_on: bool, abort: bool, **options: Any,
) -> None:  # fmt: skip
    """Make several patches of one: one a file or a hunk, or as you commit them in a shell.

    \b
    Example:  toolkit patch split 2 --by hunk --series torch_npu/2.13
              toolkit patch split 2 --shell --series torch_npu/2.13
    """
    from toolkit.upkeep.reshaping import split_patch

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    if abort:
        _give_up(console, project, name, "split", goes_on=goes_on)
    elif goes_on or skip:
        _go_on(console, project, name, "split", amend=False, skip=skip)
    elif by_hand or command is not None:
        _edit(console, project, name, "split", number, command, None, options)
    else:
        means = means_of(project, options)
        _give(console, project, split_patch(project, name, required(number), by=by, means=means))


@click.command("reorder")
@click.argument("order", type=int, nargs=-1, required=True)
@series_option
@network_options
@common_options
def patch_reorder(series: str | None, order: tuple[int, ...], **options: Any) -> None:
    """Put the patches into another order: all their numbers, in the new order.

    \b
    Example:  toolkit patch reorder 2 1 3 4 --series torch_npu/2.13
    """
    from toolkit.upkeep.reshaping import reorder_series

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    _give(console, project, reorder_series(project, name, order, means=means_of(project, options)))


@click.command("retire")
@click.argument("number", type=int)
@click.option("--why", required=True, help="Why it is no longer carried, in one line.")
@click.option("--upstream", default="", metavar="COMMIT", help="The commit with which upstream has solved the same.")
@series_option
@network_options
@common_options
def patch_retire(series: str | None, number: int, why: str, upstream: str, **options: Any) -> None:
    """Take a patch out of its series; its file is kept below patches/retired/ with the reason.

    \b
    Example:  toolkit patch retire 1 --why "in 2.15.0" --upstream 0123abcd --series torch_npu/2.13
    """
    from toolkit.patching import answers_changing as answers
    from toolkit.upkeep.acceptances import stale_acceptances
    from toolkit.upkeep.reshaping import retire_patch

    console, project = make_console(options), project_of(options)
    name = chosen_series(project, series)
    require_line(why, "--why")
    require_line(upstream or "-", "--upstream")
    retired = retire_patch(project, name, number, why=why, upstream=upstream, means=means_of(project, options))
    give(console, answers.describe_retired(retired, stale_acceptances(project, name, retired.written.moved)))


# --- what they have in common ------------------------------------------------------------------------------------


def _edit(
    console: Console, project: Project, name: str, word: EditCommand, number: int | None, command: str | None,
    base: str | None, options: dict[str, Any],
) -> None:  # fmt: skip
    from toolkit.upkeep.editing import edit_patch

    wanted = required(number)
    written = edit_patch(
        project, name, wanted, command=word, means=means_of(project, options), base=base,
        work=worker(console, options, command, f"series {name} at patch {wanted}"),
    )  # fmt: skip
    _give(console, project, written)


def _go_on(console: Console, project: Project, name: str, word: EditCommand, *, amend: bool, skip: bool) -> None:
    from toolkit.upkeep import editing

    if skip:
        _give(console, project, editing.leave_out(project, name, command=word, why=f"toolkit patch {word} --skip"))
    else:
        _give(console, project, editing.go_on(project, name, command=word, amend=amend))


def _give_up(console: Console, project: Project, name: str, word: str, *, goes_on: bool) -> None:
    from toolkit.patching import answers_changing as answers
    from toolkit.upkeep.editing import give_up

    if goes_on:
        raise click.UsageError("--continue and --abort are two things.")
    give(console, answers.describe_given_up(name, give_up(project, name, command=word)))


def _give(console: Console, project: Project, written: Written) -> None:
    from toolkit.patching import answers_changing as answers
    from toolkit.upkeep.acceptances import stale_acceptances

    give(console, answers.describe_written(written, stale_acceptances(project, written.name, written.moved)))


def _new_patch(subject: str | None, witness: str | None, status: str, diff: Path | None) -> NewPatch:
    from toolkit.upkeep.adding import NewPatch

    if not subject or not witness:
        raise click.UsageError("--subject and --witness are needed for a new patch.")
    for value, option in ((subject, "--subject"), (witness, "--witness"), (status, "--status")):
        require_line(value, option)
    return NewPatch(
        subject=subject, witness=witness, status=status, diff=None if diff is None else diff.read_bytes()
    )  # fmt: skip
