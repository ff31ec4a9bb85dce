"""The mail that `git format-patch` writes: header, body, trailers, diff."""

from __future__ import annotations

import re
from dataclasses import dataclass

REQUIRED_HEADERS = ("From", "Date", "Subject")
ENCODINGS = ("7bit", "8bit")
CHARSETS = ("utf-8", "us-ascii")

HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)$")
TRAILER = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*(.*)$")
SUBJECT_PREFIX = re.compile(r"^(\[(?:RFC|RESEND|[^\]]*PATCH[^\]]*)\]\s*)+", re.IGNORECASE)
"""What mailing lists put before a subject; `[dvm]` and the like are part of it, as for `git am --keep-non-patch`."""

SENDER = re.compile(r"(.*?)\s*<([^<>]*)>\s*$")
CHARSET = re.compile(r"charset=\"?([^\s;\"]+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mail:
    """One patch file, taken apart; `diff` begins at the first `diff --git` line.

    `author` is `Name <address>`, empty where there is none, `date` as the mail has it, which git can read.
    """

    subject: str
    body: str
    trailers: tuple[tuple[str, str], ...]
    diff: bytes
    author: str = ""
    date: str = ""

    def values(self, token: str) -> list[str]:
        """Return every value of a trailer; git does not tell upper from lower case in its name."""
        return [value for name, value in self.trailers if name.lower() == token.lower()]


def parse_mail(raw: bytes, faults: list[str]) -> Mail:
    """Take a patch file apart; what is wrong with it goes to `faults`."""
    message, diff = _split_diff(raw)
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError as fault:
        faults.append(f"its message is not UTF-8 (byte {fault.start})")
        text = message.decode("utf-8", "replace")
    head, _, rest = text.partition("\n\n")
    headers = _parse_headers(head)
    _check_headers(headers, faults)
    body = _message_body(rest)
    return Mail(
        subject=_subject(headers.get("subject", ""), faults), body=body, trailers=parse_trailers(body), diff=diff,
        author=_author(headers.get("from", "")), date=headers.get("date", ""),
    )  # fmt: skip


def is_mangled(raw: bytes) -> bool:
    """Whether lines that git itself writes end in CRLF: something converted the file after it was made.

    A patch for a file with CRLF lines is not: it has them inside its hunks only.
    """
    message, _ = _split_diff(raw)
    own = re.findall(rb"^diff --git .*$", raw, re.MULTILINE)
    return any(line.endswith(b"\r") for line in (*own, *message.partition(b"\n\n")[0].split(b"\n")))


def parse_trailers(body: str) -> tuple[tuple[str, str], ...]:
    """Return the trailers in the last paragraph of a message; a folded value becomes one line."""
    paragraphs = re.split(r"\n[ \t]*\n", body.strip())
    if not paragraphs:
        return ()
    found: list[tuple[str, str]] = []
    for line in paragraphs[-1].splitlines():
        if line[:1] in " \t" and found:
            name, value = found[-1]
            found[-1] = (name, f"{value} {line.strip()}".strip())
        elif match := TRAILER.match(line):
            found.append((match[1], match[2].strip()))
        else:
            return ()
    return tuple(found)


def _split_diff(raw: bytes) -> tuple[bytes, bytes]:
    start = re.search(rb"^diff --git ", raw, re.MULTILINE)
    return (raw, b"") if start is None else (raw[: start.start()], raw[start.start() :])


def _message_body(text: str) -> str:
    """Cut what follows the `---` line: notes and the diffstat, which are no part of the message."""
    return re.split(r"^---$", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _parse_headers(head: str) -> dict[str, str]:
    """Return the header fields by lower-case name, folded lines joined; the mbox line `From <id> …` is none."""
    fields: dict[str, str] = {}
    name = ""
    for line in head.splitlines():
        if line[:1] in (" ", "\t") and name:
            fields[name] += " " + line.strip()
        elif match := HEADER.match(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
    return fields


def _check_headers(headers: dict[str, str], faults: list[str]) -> None:
    faults.extend(
        f"has no `{name}:` header; write patches with `git format-patch`"
        for name in REQUIRED_HEADERS
        if not headers.get(name.lower())
    )
    encoding = headers.get("content-transfer-encoding", "8bit").lower()
    if encoding not in ENCODINGS:
        faults.append(
            f"is encoded as {encoding!r}, as a mail program does; take the file that `git format-patch` wrote"
        )
    charset = CHARSET.search(headers.get("content-type", ""))
    if charset and charset[1].lower() not in CHARSETS:
        faults.append(f"its message is in {charset[1]!r}, expected UTF-8")


def _subject(value: str, faults: list[str]) -> str:
    """Decode a subject and cut `[PATCH 1/4]`."""
    return SUBJECT_PREFIX.sub("", _decoded(value, "subject", faults))


def _author(value: str) -> str:
    """Read `Name <address>`: a name with a comma or the like stands in quotes, one that is not ASCII is encoded."""
    match = SENDER.match(value)
    if match is None:
        return ""
    name = match[1].strip()
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    return f"{_decoded(name, 'sender', [])} <{match[2]}>"


def _decoded(value: str, what: str, faults: list[str]) -> str:
    """Decode the words of RFC 2047; the library for them is loaded only where it is needed."""
    if "=?" in value:
        from email.errors import HeaderParseError
        from email.header import decode_header, make_header

        try:
            return str(make_header(decode_header(value)))
        except (HeaderParseError, UnicodeError, LookupError) as fault:
            faults.append(f"its {what} {value!r} cannot be decoded: {fault}")
    return value
