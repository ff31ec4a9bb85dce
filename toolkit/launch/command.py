"""Read the words of a command: what stands in front of it, the launcher, the run script, the training program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.launch.config import with_config
from toolkit.launch.options import OPTION, read_option, read_options
from toolkit.launch.shell import Step, follow_text
from toolkit.launch.values import Launch, Option, is_known, shown

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
PYTHON = re.compile(r"python(\d+(\.\d+)?)?|pypy3?")
LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
LAUNCHER_SWITCHES = ("standalone", "no_python", "run_path", "virtual_local_rank", "help")
DEEPEST = 8
"""How many commands may stand in each other (`bash -c "bash -c …"`) before the rest is left unread."""

LARGEST = 1 << 20
"""How many bytes of a run script are read; one that is longer is none."""

PREFIXES: Mapping[str, tuple[str, ...]] = {
    "nohup": (), "setsid": (), "time": ("-f", "-o"), "exec": ("-a",), "command": (), "builtin": (), "stdbuf": (),
    "nice": ("-n", "--adjustment"), "ionice": ("-c", "-n", "--class", "--classdata"), "unbuffer": (),
    "timeout": ("-k", "-s", "--kill-after", "--signal"), "taskset": (), "numactl": ("-N", "-m", "-C", "-i", "-p"),
    "srun": (
        "-n", "-N", "-c", "-p", "-w", "-J", "-A", "-t", "-o", "-e", "-i", "-D", "--ntasks", "--nodes", "--partition",
        "--nodelist", "--job-name", "--account", "--time", "--output", "--error", "--gres", "--cpus-per-task",
        "--ntasks-per-node", "--chdir", "--export", "--mpi", "--qos", "--reservation",
    ),
    "mpirun": ("-n", "-np", "-x", "-H", "--host", "--hostfile", "--map-by", "--bind-to"),
    "sudo": ("-u", "-g", "--user", "--group"), "chrt": (), "catchsegv": (), "tee": (),
}  # fmt: skip
"""What may stand in front of a command, each with those of its options that take the next word."""

OPERANDS = {"timeout": 1, "taskset": 1, "chrt": 1}
"""How many words of its own such a command has before the one that it starts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Start:
    """What is known before a command's words are read."""

    environ: Mapping[str, str]
    is_environ_whole: bool
    folder: Path | None
    depth: int = 0


def read_command(
    words: Sequence[str], *, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> Launch:  # fmt: skip
    """Read a command that is given as words, as a process gets them.

    `environ` is the environment that it is started in, None where nobody knows it. With a `folder`, a run script that
    is found from there is read: what it sets, and what it passes on. Nothing is started.
    """
    start = _Start(environ=environ or {}, is_environ_whole=environ is not None, folder=folder)
    return with_config(_read(tuple(words), start), folder)


def read_command_text(
    text: str, *, environ: Mapping[str, str] | None = None, folder: Path | None = None,
    arguments: Sequence[str] | None = None,
) -> Launch:  # fmt: skip
    """Read a command as it is typed into a shell, or a run script: its exports, assignments and continuations.

    Words with NUL between them, as /proc has them, are taken as they are.
    Of several commands the last is taken that starts a training: torchrun, python, a run script. `arguments` are those
    that the text itself is given (`"$@"`), None where nobody knows them. Raises UsageError for text with a quote that
    is not closed, and for more of it than a run script has.
    """
    if len(text) > LARGEST:
        raise UsageError(
            f"the command's text has {len(text)} characters, more than {LARGEST}", hint="give the command or run script"
        )
    start = _Start(environ=environ or {}, is_environ_whole=environ is not None, folder=folder)
    if "\0" in text:
        return with_config(_read(tuple(text.rstrip("\0").split("\0")), start), folder)
    return with_config(_read_text(text, start, arguments=arguments, name="bash")[0], folder)


def _read_text(text: str, start: _Start, *, arguments: Sequence[str] | None, name: str) -> tuple[Launch, Step]:
    steps = follow_text(
        text,
        environ=start.environ if start.is_environ_whole else None,
        arguments=arguments,
        name=name,
        folder=start.folder,
    )
    chosen = max(enumerate(steps), key=lambda pair: (_likeness(pair[1].words), pair[1].is_sure, pair[0]))[1]
    if not start.is_environ_whole:
        chosen = replace(chosen, environ={**start.environ, **chosen.environ})
    at = _Start(
        environ={key: value for key, value in chosen.environ.items() if key not in chosen.own},
        is_environ_whole=chosen.is_environ_whole,
        folder=chosen.folder,
        depth=start.depth + 1,
    )
    words = chosen.words if _likeness(chosen.words) else ()
    launch = _read((*(f"{key}={value}" for key, value in chosen.own.items()), *words), at)
    return replace(launch, sourced=(*chosen.sourced, *launch.sourced)), chosen


def _likeness(words: tuple[str, ...]) -> int:
    """Say how much a command looks like one that starts a training."""
    names = [Path(word).name for word in words[:12]]
    if any(name in LAUNCHERS for name in names):
        return 4
    if any(name.endswith(".sh") or PYTHON.fullmatch(name) for name in names):
        return 3 if any(re.match(r"--?\w+[._-]?\w*", word) for word in words) else 2
    return 1 if any(word.startswith("--") and "." in word for word in words) else 0


# --- what stands in front ----------------------------------------------------------------------------------------


def _read(words: tuple[str, ...], start: _Start) -> Launch:
    """Read what stands in front of a command, then the command."""
    own: dict[str, str] = {}
    while words and (found := ASSIGNMENT.fullmatch(words[0])):
        own[found[1]] = found[2]
        words = words[1:]
    argv, environ = words, {**start.environ, **own}
    is_whole = start.is_environ_whole
    while words and (name := Path(words[0]).name) in (*PREFIXES, "env"):
        if name == "env":
            words, environ, is_whole, added = _peel_env(words[1:], environ, is_whole)
            own |= added
        else:
            words = _peel_prefix(words[1:], name)
    known = {key: value for key, value in environ.items() if is_known(value)}
    bare = Launch(
        environ=known,
        own={key: value for key, value in own.items() if is_known(value)},
        unknown=frozenset(environ.keys() - known.keys()),
        is_environ_whole=is_whole,
        argv=tuple(map(shown, argv)),
        is_exact=all(map(is_known, argv)) and all(map(is_known, own.values())),
        program=shown(words[0]) if words else "",
        starter=shown(words[0]) if words else "",
        folder=start.folder,
    )
    inner = replace(start, environ=environ, is_environ_whole=is_whole)
    return _read_program(words, bare, inner)


def _peel_env(
    words: tuple[str, ...], environ: Mapping[str, str], is_whole: bool
) -> tuple[tuple[str, ...], dict[str, str], bool, dict[str, str]]:
    """Take `env` off: what is left, the environment, whether that is all of it, and what was added."""
    changed = dict(environ)
    added: dict[str, str] = {}
    while words:
        word, rest = words[0], words[1:]
        if word in ("-i", "-", "--ignore-environment"):
            changed, is_whole = dict(added), True
        elif word in ("-u", "--unset", "-C", "--chdir", "-S", "--split-string") and rest:
            if word in ("-u", "--unset"):
                changed.pop(rest[0], None)
            rest = rest[1:]
        elif word.startswith("--unset="):
            changed.pop(word.partition("=")[2], None)
        elif found := ASSIGNMENT.fullmatch(word):
            added[found[1]] = changed[found[1]] = found[2]
        elif not word.startswith("-"):
            break
        words = rest
    return words, changed, is_whole, added


def _peel_prefix(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    taking, operands = PREFIXES[name], OPERANDS.get(name, 0)
    while words and (words[0].startswith("-") or operands):
        operands -= not words[0].startswith("-")
        words = words[2 if words[0] in taking else 1 :]
    return words


# --- what is started ---------------------------------------------------------------------------------------------


def _read_program(words: tuple[str, ...], bare: Launch, start: _Start) -> Launch:
    name = Path(words[0]).name if words else ""
    if words and words[0].startswith("--"):
        return _targeted(replace(bare, program="", starter=""), "", words)
    rest = words[1:]
    if name in SHELLS:
        return _read_shell(rest, bare, start)
    if PYTHON.fullmatch(name):
        return _read_python(rest, bare)
    if name in LAUNCHERS:
        return _read_launcher(rest, bare)
    if name == "toolkit" and rest[:1] == ("run",) and "--" in rest and start.depth < DEEPEST:
        return replace(_read(rest[rest.index("--") + 1 :], replace(start, depth=start.depth + 1)), argv=bare.argv)
    return _read_script(words, bare, start) if words else bare


def _read_shell(words: tuple[str, ...], bare: Launch, start: _Start) -> Launch:
    """Read `bash script …` or `bash -c text …`."""
    while words and words[0].startswith(("-", "+")):
        if re.fullmatch(r"-\w*c", words[0]) and len(words) > 1 and start.depth < DEEPEST:
            inner, _ = _read_text(shown(words[1]), start, arguments=words[3:], name="".join(words[2:3]) or "bash")
            return replace(inner, argv=bare.argv, is_exact=bare.is_exact, own={**bare.own, **inner.own})
        words = words[2 if words[0] in ("-o", "+o", "--rcfile", "--init-file") else 1 :]
    return (
        _read_script(words, replace(bare, program="".join(words[:1]), starter="".join(words[:1])), start)
        if words
        else bare
    )


def _read_python(words: tuple[str, ...], bare: Launch) -> Launch:
    """Read `python [options] -m module …` or `python [options] file …`."""
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
        words = words[2 if words[0] in ("-W", "-X", "--check-hash-based-pycs") else 1 :]
    if words[:1] == ("-m",) and len(words) > 1:
        return _read_launcher(words[2:], bare) if words[1] in LAUNCHERS else _targeted(bare, words[1], words[2:])
    if words[:1] in (("-c",), ("-",)):
        return _targeted(bare, "", words[2 if words[0] == "-c" else 1 :])
    return _targeted(bare, words[0], words[1:]) if words else bare


def _read_launcher(words: tuple[str, ...], bare: Launch) -> Launch:
    """Read torchrun's own options, then what it starts."""
    given: dict[str, Option] = {}
    while words and OPTION.match(words[0]) and words[0] not in ("-m", "--module"):
        one, took = read_option(words[0], words[1] if len(words) > 1 else None)
        is_switch = one.name in LAUNCHER_SWITCHES
        given[one.name] = replace(one, value="true") if is_switch else one
        words = words[1 if is_switch else 1 + took :]
    if words[:1] in (("-m",), ("--module",)):
        words = words[1:]
    words = words[1:] if words[:1] == ("--",) else words
    return _targeted(replace(bare, launcher=given), words[0], words[1:]) if words else replace(bare, launcher=given)


def _targeted(bare: Launch, target: str, words: Sequence[str]) -> Launch:
    options, positionals = read_options(words)
    return replace(bare, target=shown(target), options=options, positionals=positionals, is_open=_is_open(words))


def _is_open(words: Sequence[str]) -> bool:
    """Whether there may be options that nobody can see: in a word that is unknown from its beginning."""
    return any(not is_known(word.partition("=")[0]) for word in words)


# --- run scripts -------------------------------------------------------------------------------------------------


def _read_script(words: tuple[str, ...], bare: Launch, start: _Start) -> Launch:
    """Read a run script's arguments as the training program's, and the script for what it makes of them."""
    options, positionals = read_options(words[1:])
    plain = replace(bare, options=options, positionals=positionals, is_open=_is_open(words[1:]))
    found = _script_text(words[0], start)
    if found is None or start.depth >= DEEPEST:
        return plain
    path, text = found
    try:
        inner, step = _read_text(text, start, arguments=words[1:], name=words[0])
    except UsageError:
        return replace(plain, script_path=str(path))
    script = {name: value for name, value in step.assigned.items() if is_known(value)}
    if not inner.target:
        return replace(plain, script_path=str(path), script=script, passes_on=None)
    return replace(
        inner,
        own=bare.own,
        argv=bare.argv,
        is_exact=bare.is_exact,
        program=bare.program,
        script_path=str(path),
        script=script,
        options={**options, **inner.options} if inner.is_open else inner.options,
        passes_on=None if inner.is_open else set(options) <= set(inner.options),
        folder=bare.folder,
    )


def _script_text(word: str, start: _Start) -> tuple[Path, str] | None:
    """Return a run script's place and text, where there is one that can be read."""
    if start.folder is None or not is_known(word) or not word:
        return None
    path = start.folder / word
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except (OSError, ValueError):
        return None
    is_text = len(raw) <= LARGEST and b"\0" not in raw and (raw.startswith(b"#!") or path.suffix in (".sh", ".bash"))
    is_shell = not raw.startswith(b"#!") or b"sh" in raw.partition(b"\n")[0]
    return (path, raw.decode("utf-8", errors="replace")) if is_text and is_shell else None
