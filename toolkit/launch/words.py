"""Cut shell text into words and operators: quotes, comments, continuations, here-documents; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.errors import UsageError

HINT = "give the command as it would be typed into a POSIX shell"
OPERATORS = ("&&", "||", ";;", ";&", "&>>", "&>", ";", "|&", "|", "&", "(", ")", "\n")
REDIRECTION = re.compile(r"\d*(<<<|<<-?|<>|<&|<|>>|>&|>\||>)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
BACKQUOTED = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL)
BLANKS = re.compile(r"[ \t]+|\\\n|#[^\n]*|\n(?=\s*--[A-Za-z])")
"""No command begins with `--`: a line that does goes on with the one before, whose backslash was lost in copying."""

PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A part of a word that stands for itself; a tilde or a blank of a quoted one means nothing."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Expansion:
    """`$NAME`, `${NAME}` or `${NAME:-word}`; `operator` is what stands behind the name, "?" for any that is not read.

    With no name it is what a command would print (`$(…)`).
    """

    name: str
    operator: str = ""
    word: tuple[Part, ...] = ()
    quoted: bool = False


Part = Text | Expansion


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word by its parts, or an operator by its text; `array` is the list behind `NAME=`, None where there is none."""

    parts: tuple[Part, ...] = ()
    operator: str = ""
    array: tuple[Token, ...] | None = None

    @property
    def keyword(self) -> str:
        """The word, where it is one plain part; else ""."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only.text if isinstance(only, Text) and not only.quoted else ""


def cut_text(text: str) -> list[Token]:
    """Return the words and operators of shell text; redirections are left out.

    Raises UsageError with the line where a quote or brace is not closed, and for what nests without end.
    """
    try:
        return list(_Reader(text.replace("\r\n", "\n").replace("\0", "")).tokens())
    except RecursionError:
        raise UsageError("the command nests too deep to be read", hint=HINT) from None


class _Reader:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._awaited: list[tuple[str, bool]] = []

    def tokens(self) -> Iterator[Token]:
        while self._at < len(self._text):
            self._skip_blanks()
            if self._at >= len(self._text):
                return
            if self._redirected():
                continue
            operator = next((one for one in OPERATORS if self._text.startswith(one, self._at)), "")
            if operator.startswith("&>"):
                self._at += len(operator)
                self._word()
            elif operator:
                self._at += len(operator)
                yield Token(operator=operator)
                if operator == "\n":
                    self._skip_documents()
            elif parts := self._word():
                yield self._array(parts) if self._text.startswith("(", self._at) else Token(parts=parts)

    def _array(self, parts: tuple[Part, ...]) -> Token:
        """Read the list behind `NAME=`; a parenthesis behind any other word is an operator."""
        if not ARRAY.fullmatch(Token(parts=parts).keyword):
            return Token(parts=parts)
        start = self._at
        self._at += 1
        items: list[Token] = []
        for token in self.tokens():
            if token.operator == ")":
                return Token(parts=parts, array=tuple(items))
            items += [token] * (not token.operator)
        raise self._unclosed("(", start)

    def _skip_blanks(self) -> None:
        while found := BLANKS.match(self._text, self._at):
            self._at = found.end()

    def _redirected(self) -> bool:
        """Leave a redirection out, and keep in mind the end of a here-document."""
        found = REDIRECTION.match(self._text, self._at)
        if found is None:
            return False
        self._at = found.end()
        self._skip_blanks()
        target = self._word()
        if found[1] in ("<<", "<<-"):
            end = "".join(part.text for part in target if isinstance(part, Text))
            self._awaited.append((end, found[1] == "<<-"))
        return True

    def _skip_documents(self) -> None:
        for end, strips in self._awaited:
            while self._at < len(self._text):
                stop = self._text.find("\n", self._at)
                line = self._text[self._at :] if stop < 0 else self._text[self._at : stop]
                self._at = min(self._at + len(line) + 1, len(self._text))
                if (line.lstrip("\t") if strips else line) == end:
                    break
        self._awaited = []

    def _word(self, end: str = "", *, quoted: bool = False) -> tuple[Part, ...]:
        """Read one word; inside `${…}`, up to its closing brace, blanks and all."""
        parts: list[Part] = []
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == end:
                break
            if here == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                parts += [Text(text=escaped, quoted=True)] * (escaped != "\n")
                self._at += 2
            elif here == "'" and not quoted:
                parts.append(Text(text=self._until("'", self._at + 1), quoted=True))
            elif here == '"':
                parts += self._double_quoted()
            elif here in "$`":
                parts.append(self._expansion(quoted=False))
            elif not end and here in " \t\n;&|()<>":
                break
            else:
                found = PLAIN.match(self._text, self._at)
                text = found[0].partition(end)[0] if found and end else found[0] if found else here
                parts.append(Text(text=text))
                self._at += len(text)
        return tuple(parts)

    def _double_quoted(self) -> Iterator[Part]:
        start = self._at
        self._at += 1
        text = ""
        while True:
            if self._at >= len(self._text):
                raise self._unclosed('"', start)
            here = self._text[self._at]
            if here == '"':
                self._at += 1
                yield Text(text=text, quoted=True)
                return
            if here == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`", "\n"):
                text += self._text[self._at + 1].replace("\n", "")
                self._at += 2
            elif here in "$`":
                yield Text(text=text, quoted=True)
                text = ""
                yield self._expansion(quoted=True)
            else:
                text += here
                self._at += 1

    def _expansion(self, *, quoted: bool) -> Part:
        start = self._at
        if self._text[start] == "`":
            found = BACKQUOTED.match(self._text, start + 1)
            if found is None:
                raise self._unclosed("`", start)
            self._at = found.end()
            return Expansion(name="", quoted=quoted)
        if self._text.startswith("$(", start):
            self._skip_command()
            return Expansion(name="", quoted=quoted)
        if self._text.startswith("${", start):
            return self._braced(quoted=quoted)
        if self._text.startswith("$'", start) and not quoted:
            return Text(text=self._until("'", start + 2), quoted=True)
        found = NAME.match(self._text, start + 1)
        if found is None:
            self._at += 1
            return Text(text="$", quoted=quoted)
        self._at = found.end()
        return Expansion(name=found[0], quoted=quoted)

    def _braced(self, *, quoted: bool) -> Expansion:
        start = self._at
        found = re.compile(r"\$\{(#?)([A-Za-z_]\w*|[0-9@*])(\[[@*]\])?(:?[-=+?])?").match(self._text, start)
        self._at = found.end() if found else start + 2
        word = self._word(end="}", quoted=quoted)
        if not self._text.startswith("}", self._at):
            raise self._unclosed("${", start)
        self._at += 1
        if found is None or found[1] or (word and not found[4]):
            return Expansion(name=found[2] if found else "", operator="?", quoted=quoted)
        return Expansion(name=found[2], operator=(found[3] or "") + (found[4] or ""), word=word, quoted=quoted)

    def _skip_command(self) -> None:
        """Go to the end of `$(…)` or `$((…))`, over quotes and inner parentheses."""
        start, depth = self._at, 0
        self._at += 1
        while self._at < len(self._text):
            here = self._text[self._at]
            depth += (here == "(") - (here == ")")
            self._at += 1
            if here in "'":
                self._until(here, self._at)
            elif here == '"':
                self._at -= 1
                list(self._double_quoted())
            elif depth == 0:
                return
        raise self._unclosed("$(", start)

    def _until(self, end: str, start: int) -> str:
        """Return what stands up to a closing mark, and go behind it."""
        stop = self._text.find(end, start)
        if stop < 0:
            raise self._unclosed(end, start - 1)
        self._at = stop + 1
        return self._text[start:stop]

    def _unclosed(self, mark: str, start: int) -> UsageError:
        line = self._text.count("\n", 0, start) + 1
        return UsageError(
            f"line {line} of the command has a {mark} that is not closed",
            hint=HINT,
        )
