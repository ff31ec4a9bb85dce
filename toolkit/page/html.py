"""Small pieces of HTML. Whatever comes from outside goes through `text`, which leaves nothing that acts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Control characters, lone halves of characters, and what reorders or hides the text around it."""


def visible(value: object) -> str:
    """Return text in which every character that would not be seen is named in its place."""
    return UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", str(value).replace("\r\n", "\n"))


def text(value: object) -> str:
    """Return a value as text in HTML, fit for an attribute in quotes too."""
    return escape(visible(value))


def tag(name: str, content: str, **attributes: str) -> str:
    """Return an element around HTML; attribute values are text, `class_` stands for `class`."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{content}</{name}>"


def code(value: object) -> str:
    """Return a name, a path or a digest, which may be broken anywhere."""
    return f"<code>{text(value)}</code>"


def block(value: object, *, class_: str = "") -> str:
    """Return text as it is laid out, in a box of its own that scrolls."""
    return tag("pre", text(value), tabindex="0", **({"class_": class_} if class_ else {}))


def section(anchor: str, title: str, body: Iterable[str]) -> str:
    """Return a section of the page under its heading."""
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n<h2 id="{anchor}-title">{title}</h2>\n' + (
        "\n".join(body) + "\n</section>"
    )


def details(summary: str, body: str, *, is_open: bool = False, class_: str = "") -> str:
    """Return a part that folds; the summary is HTML."""
    opening = f"<details{f' class={class_!r}' if class_ else ''}{' open' if is_open else ''}>".replace("'", '"')
    return f"{opening}<summary>{summary}</summary>\n{body}\n</details>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str = "") -> str:
    """Return a table in a box that scrolls; a row's first cell is its header, and cells are HTML."""
    head = "".join(tag("th", name, scope="col") for name in heads)
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>" for row in rows
    )
    inner = (
        f"<table><caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    )
    return tag("div", inner, class_=f"wide {class_}".strip(), tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values, the values as HTML; a pair without a value is left out."""
    return f"<dl>{''.join(f'<div><dt>{text(name)}</dt><dd>{value}</dd></div>' for name, value in pairs if value)}</dl>"
