"""What launchers, containers and loggers put in front of a line: one row per prefix, its pattern and what it says."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from toolkit.triage.stamps import CLOCK, GLOG, ISO, NAMED, NUMBERED, SINCE_1970

Level = Literal["", "debug", "info", "warning", "error", "fatal"]
Need = Literal["", "record", "torch", "no level"]
"""What must stand before a prefix: a time, level or origin; an origin within torch; anything but a level."""

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        **dict.fromkeys(("D", "T", "V", "DEBUG", "TRACE", "VERBOSE"), "debug"),
        **dict.fromkeys(("I", "N", "INFO", "NOTICE", "EVENT", "SUCCESS"), "info"),
        **dict.fromkeys(("W", "WARN", "WARNING"), "warning"),
        **dict.fromkeys(("E", "ERR", "ERROR"), "error"),
        **dict.fromkeys(("C", "F", "CRIT", "CRITICAL", "FATAL"), "fatal"),
    }
)

_WORDS = tuple(word for word in LEVELS if len(word) > 1)
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_ANY_CASE = f"(?i:{_WORD})"

_BLANK = r"(?: (?=(?:  )*(?! )))?"
"""The blank behind a colon: torch writes one, torchrun and mpirun none. Python indents evenly: an even run stays."""

_PREFIX = (
    rf"\[(?:rank|default)\d|\((?:[^\s()]+ )?(?:rank=\d+,? )?pid=\d|\[[IWEF](?:\d{{3,4}}| [\w./]+:\d)"
    rf"|[DIWEFV]\d{{4}} \d\d:|\[?(?:19|20)\d\d[-/]\d\d[-/]\d\d[T -]\d\d:|\[(?:{_WORD})\] |(?:{_WORD}):[\w.]+:"
)
"""How a prefix begins that is taken for nothing else."""

_TELLING = (
    rf"{_PREFIX}|(?:{_WORD})(?: |:)|  File \"|Traceback \(most|E[A-Z0-9]\d{{4}}: "
    r"|[\w.]{0,160}(?:Error|Exception|Interrupt|Exit|Warning)(?::|$)|During handling of|The above exception|Caused by:"
)
"""What is worth taking a doubtful prefix away for."""

_HOST = r"(?:node|host|worker|master|compute|server|slave|trainer|pod|login|launcher|dgx|hgx|atlas|cn|nid|ip)"
_DAEMON = r"(?:[\w./@-]{1,60}\[\d+\]|kernel|kubelet|slurmd|slurmstepd|dockerd|containerd|systemd)"
_PLACE = r"[^\s\]:|]{1,200}\.(?:py|cc|cpp|c|cu|h|hpp|ts|go|rs):\d+"
_STAMP = f"{NUMBERED}|{NAMED}"

_LOWER, _LETTERS, _DIGITS = string.ascii_lowercase, string.ascii_letters, string.digits


class Prefix:
    """One prefix: its pattern, compiled when a line is first held against it, as all of them would slow every start.

    `says` names the groups that say something: `rank` and `local` are ranks (`local` counts within a group of processes
    and gives way to any other); `stamp` is a time, `level` a word or letter of `LEVELS`, `origin` the line of code that
    wrote, `frame` Dynamo's compile id, `process` a launcher's number of its worker.
    """

    __slots__ = ("_pattern", "_shape", "needs", "says")

    def __init__(self, pattern: str, needs: Need) -> None:
        self.needs = needs
        self.says: tuple[str, ...] = ()
        self._pattern = pattern
        self._shape: re.Pattern[str] | None = None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """Match the prefix at a place of a text."""
        shape = self._shape
        if shape is None:
            shape = self._shape = re.compile(self._pattern)
            self.says = tuple(shape.groupindex)
        return shape.match(text, at)


def _padded(word: str, colon: str = "") -> str:
    """Match a level with the blanks that fill it up to eight letters, but not the indentation of a frame."""
    return rf"{word}{colon}(?:(?! {{3}}File \")[ \t]{{1,{max(9 - len(word), 1)}}}(?![ \t])|[ \t](?=[ \t]))"


_BARE = "|".join(_padded(word) for word in _WORDS)
_COLON = "|".join(_padded(word, ":") for word in _WORDS)


def _level(shape: str) -> str:
    """Put the level's word, without what fills it up, in its group; `DEBUG = False` is none."""
    return rf"(?=(?P<level>{_WORD})\b(?! *=))(?:{shape})"


_ROWS: tuple[tuple[str, str, Need], ...] = (
    # torch, torchrun (--role), Lightning, ProcessGroup, mpirun --tag-output
    ("[", rf"\[(?:rank|RANK)[ :=]{{0,2}}(?P<rank>\d{{1,6}})\]:?{_BLANK}", ""),
    ("[", rf"\[Rank[ :=]{{0,2}}(?P<local>\d{{1,6}})\]:?{_BLANK}", ""),
    ("[", rf"\[(?:default|trainer|train|worker|role|actor|critic|learner)_?(?P<rank>\d{{1,6}})\]:{_BLANK}", ""),
    ("[", rf"\[[\w.@~-]{{1,120}},(?P<rank>\d{{1,6}})\]<std(?:out|err|diag)>:?{_BLANK}", ""),
    # c10 and torch_npu in C++, Ray in C++
    ("[", rf"\[(?P<level>[A-Z])(?P<stamp>{GLOG}) (?P<origin>[^\s\]]{{1,240}}:\d+)\] ?", ""),
    ("[", r"\[(?P<level>[IWEF]) (?P<origin>[\w./-]{1,240}:\d+)\] ?", ""),
    (
        "[",
        rf"\[(?P<stamp>{ISO}) (?P<level>[A-Z]) \d+ \d+\] (?:\(\w+\) )?(?P<origin>[^\s:]{{1,240}}:\d+):(?:  ?(?! )| |$)",
        "",
    ),
    # a time, with SGLang's ranks; a level, with the place of transformers
    ("[", rf"\[(?P<stamp>{_STAMP}|{CLOCK})(?: TP(?P<local>\d{{1,6}}))?(?: [A-Z]{{2}}\d+){{0,5}}\]:?{_BLANK}", ""),
    ("[", rf"\[ ?(?P<level>{_ANY_CASE}) ?(?:\|(?P<origin>[^\s\]]{{1,240}}))?\] ?", ""),
    # torchtitan's [titan], CANN's process, kubectl, the kernel
    ("[", rf"\[[A-Za-z_][\w./-]{{0,60}}\] ?(?=\[?(?:{_STAMP}))", ""),
    ("[", rf"\[PID: ?\d+\] ?(?={ISO})", ""),
    ("[", r"\[pod/[^\]\s]{1,240}\] ?", ""),
    ("[", r"\[ {0,6}\d{1,9}\.\d{6}\] (?=[A-Za-z])", ""),
    # Dynamo's compile id and artifact; older torch names its logger behind the id
    ("[", r"(?P<frame>\[(?:!\d+(?:/\d+)*|\d+/\d+(?:/\d+)?|-/-)(?:_\d+)?\])(?: |$)", "torch"),
    ("[", rf"(?P<frame>\[\d+/\d+(?:_\d+)?\]) (?=[\w.]{{1,120}}: \[(?:{_WORD})\])", "record"),
    ("[", r"\[__[a-z_]{1,40}\](?: |$)", "torch"),
    # vLLM, DeepSpeed, CANN with the thread behind it; MindIE's processes or a thread before the level
    (
        "[",
        rf"\[(?P<origin>{_PLACE}(?::[\w<>.]{{1,80}})?)\]"
        rf"(?:\[\d{{1,12}}\]{_BLANK}| \[\d{{1,12}}\](?=\[)|(?:\d{{1,12}}|\[tid:\d{{1,12}}\])?(?: |(?=\[)|$))",
        "record",
    ),
    ("[", rf"(?:\[[\w.-]{{1,40}}\] ){{1,3}}(?=\[(?:{_WORD})\] |(?:{_WORD})(?:[ :]|$))", "record"),
    # Ray and vLLM; CANN behind its time
    (
        "(",
        r"\((?:(?![^\s()]{0,80}_[DP]P\d)[^\s()]{1,80}?_TP(?P<local>\d{1,6})(?:_EP\d+)? "
        r"|[^\s()]{1,80}(?:\([^()]{0,40}\))? )?(?:rank=(?P<rank>\d{1,6}),? )?pid=(?P<process>\d+)"
        r"(?:, [^()]{1,160})?\) ?",
        "",
    ),
    ("(", rf"\((?P<level>{_WORD})\)(?: |$)", "record"),
    ("(", r"\((?:raylet|autoscaler|gcs_server)(?:,? [^()]{1,80})?\) ?", ""),
    ("(", r"\(PID: ?\d+, ?Device: ?-?\d+, ?RankID: ?(?:-\d+|(?P<rank>\d{1,6}))\) ?", ""),
    # containers, journald and syslog; then times alone; then srun --label
    (
        _DIGITS,
        rf"(?P<stamp>{NUMBERED}|{CLOCK})(?: std(?:out|err) [FP](?: |$)| [\w.-]{{1,80}} {_DAEMON}: ?"
        r"|(?::(?=[ \tA-Z]|$)|,(?= ))?[ \t]?)",
        "",
    ),
    (_DIGITS, r"(?P<rank>\d{1,5}):(?: |$)", ""),
    (_DIGITS, rf"\d{{1,3}}(?:\.\d{{1,3}}){{3}}: (?={_TELLING}| {{4,}}\S)", ""),
    ("ADFJMNOSTW", rf"(?P<stamp>{NAMED})(?: [\w.-]{{1,80}} {_DAEMON}:)? ?", ""),
    (
        "<",
        rf"<\d{{1,3}}>(?:(?=[A-Z][a-z][a-z] |\d{{4}}-)"
        rf"|1 (?P<stamp>{ISO}) (?:\S{{1,100}} ){{4}}(?:- |\[[^\]]{{0,200}}\] )?)",
        "",
    ),
    # glog: torch in Python, klog, absl; TensorFlow
    (
        "CDEFITVW",
        rf"(?P<level>[A-Z])(?P<stamp>{GLOG}) +(?:\d+ +){{0,2}}(?P<origin>[^\s\]]{{1,240}}:\d+)\](?: |$)",
        "",
    ),
    ("EFIW", rf"(?P<level>[A-Z])0000 00:00:(?P<stamp>{SINCE_1970}) +\d+ (?P<origin>[^\s\]]{{1,240}}:\d+)\](?: |$)", ""),
    ("EFIW", r"(?P<level>[A-Z]) (?P<origin>[\w./-]{1,240}:\d+)\] ?", "record"),
    # logging's own style, uvicorn's, a bare word; CANN's module, the time behind it
    ("CDEFINSTVW", rf"(?P<level>{_WORD}):(?=[A-Za-z_])[\w.-]{{1,160}}:{_BLANK}", ""),
    ("CDEFINSTVW", rf"(?P<level>{_WORD}) *\| ", ""),
    ("CDEFINSTVW", _level(_COLON), ""),
    ("CDEFINSTVW", _level(_BARE), "no level"),
    ("CDEFINSTVW", rf"(?P<level>{_WORD})$", "record"),
    (string.ascii_uppercase, rf"[A-Z][A-Z0-9_]{{1,40}}\([^()\s]{{1,80}}\):(?={ISO})", ""),
    # between a time and the message
    ("-", rf"- (?:\S{{1,120}} - )?(?P<level>{_ANY_CASE}) -(?: (?:__main__|\w+(?:\.\w+)+) -)?(?: |$)", "record"),
    ("-", r"-(?: |$)", "record"),
    (">", r">>(?: |$)", "record"),
    (":", r":(?: |$)", "record"),
    ("|", rf"\| (?P<level>{_WORD}) *\| ?(?:(?P<origin>[\w.<>-]{{1,120}}:[\w.<>]{{1,80}}:\d+) -(?: |$))?", "record"),
    (_LETTERS + "_", rf"(?P<origin>{_PLACE})(?:\]| --?)(?: |$)", "record"),
    ("_" + _LOWER, rf"(?:root|__main__|[a-z_]\w{{0,80}}(?:\.\w{{1,80}})+) (?=(?:{_WORD})(?:[ :]|$))", "record"),
    # a logger and its level, as torch 2.1 and torch_npu have it
    (_LETTERS + "_", rf"[A-Za-z_][\w.]{{0,160}}: \[(?P<level>{_WORD})\](?: \[\d+\])?(?: |$)", ""),
    ("rR", rf"(?:rank|Rank|RANK)(?:[=:](?P<rank>\d{{1,6}})(?::|(?= ))){_BLANK}", ""),
    ("rR", rf"(?:rank|Rank|RANK) ?(?P<rank>\d{{1,6}})(?::| \|){_BLANK}", ""),
    (_LETTERS, r"[\w.-]{1,80}:\d+:\d+ \[\d+\] (?=NCCL (?P<level>INFO|WARN|ERROR|TRACE))", ""),
    # pdsh and clush, docker compose, kubectl, torchx
    (_LOWER, rf"{_HOST}[-_]?(?:[a-z0-9]{{1,20}}[-_]){{0,4}}\d{{1,6}}(?:\.[a-z0-9.-]{{1,100}})?:(?: |$)", ""),
    (
        _LOWER,
        rf"(?:(?=[a-z.-]{{1,40}}\d)[a-z][a-z0-9.-]{{1,100}}|master|head|localhost): (?={_TELLING}| {{4,}}\S)",
        "",
    ),
    (_LOWER, r"(?:[a-z][\w.-]{0,100}[-_]\d+ {2,}|pod/\S{1,200} )\|(?: |$)", ""),
    (_LOWER, rf"[a-z][\w.-]{{0,100}} {{1,40}}\| (?={_TELLING})", ""),
    (_LOWER, rf"[a-z]\w{{0,60}}/\d{{1,5}} (?:\[(?P<rank>\d{{1,6}})\]:{_BLANK}|(?={_PREFIX}))", ""),
    # indented or quoted in an issue; a group of exceptions; pytest; an image's build
    (
        " \t",
        rf"[ \t]{{1,16}}(?={_PREFIX}|(?:{_WORD}) {{2,}}\S)| {{1,4}}(?P<rank>\d{{1,5}}): (?={_TELLING}| {{4,}}\S)",
        "",
    ),
    (" |", rf" {{0,12}}\| (?={_TELLING})(?![^\n]*\|$)", ""),
    (" |", r" {0,4}\| (?= {2,}[^ |+])(?![^\n]*\|$)", ""),
    (" +", r" {0,12}\+ (?=Exception Group Traceback)", ""),
    (">", rf"(?:> ?){{1,4}}(?={_TELLING})|> (?= {{2,}}\S)", ""),
    ("E", rf"E {{3,12}}(?={_TELLING})", ""),
    ("#", r"#\d{1,4} \d{1,6}\.\d{1,3} ", ""),
    ("\ufeff", "\ufeff+", ""),
)
"""First characters, pattern, need. Of two that fit, the upper one is taken."""


def _by_first() -> dict[str, tuple[Prefix, ...]]:
    table: dict[str, tuple[Prefix, ...]] = {}
    for firsts, pattern, needs in _ROWS:
        prefix = Prefix(pattern, needs)
        table.update({first: (*table.get(first, ()), prefix) for first in firsts})
    return table


PREFIXES: Mapping[str, tuple[Prefix, ...]] = MappingProxyType(_by_first())
"""What may stand before a line that begins with this character."""
