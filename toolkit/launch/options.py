"""Read options in any spelling: with `=` or a blank, with `-` or `_`, as a switch, as its `no-` form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit.launch.values import Option, is_known, shown

OPTION = re.compile(r"--?[A-Za-z]")
NEGATED = re.compile(r"(^|\.)no_(?=.)")
TRUE = {"true", "1", "yes", "on"}
FALSE = {"false", "0", "no", "off"}

SWITCHES = re.compile(
    r"(^|\.)(enable(_\w+)?|disable(_\w+)?|deterministic(_warn_only)?|load_only|initial_load_(model_only|in_hf\w*)"
    r"|last_save_(model_only|in_hf)|create_seed_checkpoint|print_config|detect_anomaly|help|moe_force_load_balance"
    r"|compile|fsdp_async|force_\w+|batch_invariant|spmd_typechecking|gc_debug|\w+_in_hf)$"
)
"""Names, in their normal form, of options that are true when nothing follows them, and to which a word that follows is
a value only where it says so (true, false, 0, 1)."""


MOVED = {
    "job.dump_folder": "dump_folder",
    "training.dataset": "dataloader.dataset",
    "training.dataset_path": "dataloader.dataset_path",
    "training.seed": "debug.seed",
    "training.deterministic": "debug.deterministic",
    "model.hf_assets_path": "hf_assets_path",
    "model.tokenizer_path": "hf_assets_path",
    "training.compile": "compile.enable",
}
"""Options of torchtitan's releases up to 0.2 by the names that they have now."""


def read_options(words: Sequence[str]) -> tuple[dict[str, Option], tuple[str, ...]]:
    """Return the options by their normal names, the last one of each winning, and the positional words."""
    found: dict[str, Option] = {}
    positionals: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            positionals += words[at:]
            break
        if not OPTION.match(word):
            positionals.append(word)
            continue
        following = words[at] if at < len(words) else None
        one, took = read_option(word, following)
        at += took
        before = found.pop(one.name, None)
        found[one.name] = _after(one, before)
    return found, tuple(shown(word) for word in positionals)


def read_option(word: str, following: str | None) -> tuple[Option, int]:
    """Return one option, and how many of the words that follow it belong to it: none or one."""
    written, equals, value = word.partition("=")
    name = normal_name(written)
    positive, is_negated = _without_no(name)
    if is_negated:
        said = _is_true(value) if equals else True
        negated = None if said is None else ("false" if said else "true")
        return Option(name=positive, value=negated, written=shown(word)), 0
    if equals:
        return Option(name=name, value=_value(value, name), written=shown(word)), 0
    if following is None or OPTION.match(following) or following == "--" or not _takes(name, following):
        return Option(name=name, value="true", written=shown(word)), 0
    return Option(name=name, value=_value(following, name), written=shown(f"{word} {following}")), 1


def normal_name(written: str) -> str:
    """Return an option's normal name: `--training.global-batch-size` is `training.global_batch_size`.

    One that has moved since has its present name.
    """
    name = written.lstrip("-").replace("-", "_")
    return MOVED.get(name, name)


def is_switch(name: str) -> bool:
    """Whether an option, by its normal name, is one that is on when nothing follows it."""
    return bool(SWITCHES.search(name))


def _without_no(name: str) -> tuple[str, bool]:
    """Take the `no_` off, wherever tyro and argparse put it: in front of it all, or of the last part."""
    head, dot, last = name.rpartition(".")
    if NEGATED.match(name):
        return normal_name(name[3:]), True
    is_negated = last.startswith("no_") and last != "no_"
    return (normal_name(f"{head}{dot}{last[3:]}"), True) if is_negated else (name, False)


def _takes(name: str, following: str) -> bool:
    return not is_switch(name) or following.lower() in TRUE | FALSE


def _value(value: str, name: str) -> str | None:
    """Return a value as a rule can compare it: a switch's is "true" or "false", however it is written."""
    if not is_known(value):
        return None
    said = _is_true(value) if is_switch(name) else None
    return value if said is None else str(said).lower()


def _is_true(value: str) -> bool | None:
    return True if value.lower() in TRUE else False if value.lower() in FALSE else None


def _after(option: Option, before: Option | None) -> Option:
    if before is None:
        return option
    earlier = (*before.earlier, before.value)
    return Option(name=option.name, value=option.value, written=option.written, earlier=earlier)
