"""Strict reading of TOML into msgspec structs: every fault at once, each with its key and line.

The structs say it all: a field's type and pattern decide what is right, and its `msgspec.Meta` (title: what is
expected, description: what it means, examples) gives the words for faults and for the reference page.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

Place = tuple[str | int, ...]
"""Where a value stands in a document: `("component", 0, "base", "version")`."""

PythonTag = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^cp3(1[0-9]|[2-9][0-9])\Z", title="a CPython tag from cp310 on, not free-threaded", examples=["cp312"]
    ),
]
Platform = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^manylinux_2_[1-9][0-9]*_(x86_64|aarch64)\Z",
        title="a manylinux platform tag for x86_64 or aarch64",
        examples=["manylinux_2_28_x86_64"],
    ),
]
Version = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^\d+(\.\d+)+((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?\Z",
        title="a version in PEP 440 normal form",
        examples=["2.13.0"],
    ),
]
Distribution = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z", title="a distribution's name", examples=["torch_npu"]
    ),
]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z", title="a sha256 in 64 lower-case hex digits")]
FileStem = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\Z", title="a plain file name without its ending"
    ),
]

WORDS = {"str": "string", "int": "integer", "bool": "boolean", "float": "float", "array": "array", "object": "table"}
"""msgspec's names of types, in TOML's words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is wrong; `missing` marks a key that is required and absent."""

    where: Place
    what: str
    missing: bool = False


class TomlError(ValueError):
    """A document is not TOML; `line` and `column` are None where the parser did not say."""

    def __init__(self, what: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.line = line
        self.column = column


def parse_toml(raw: bytes) -> tuple[str, dict[str, Any]]:
    """Return a document's text and its tables; raise TomlError for what is not UTF-8 or not TOML."""
    import tomli  # Compiled, as tomllib is not: reading all rules of diagnose takes a third of the time.

    try:
        text = raw.decode("utf-8")
        return text, tomli.loads(text)
    except UnicodeDecodeError as fault:
        raise TomlError("not UTF-8", line=raw.count(b"\n", 0, fault.start) + 1) from fault
    except tomli.TOMLDecodeError as fault:
        place = re.search(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)", str(fault))
        what = str(fault)[: place.start()] if place else str(fault)
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (None, None)
        raise TomlError(f"invalid TOML: {what}", line, column) from fault


def find_faults(raw: object, wanted: Any, where: Place = ()) -> list[Fault]:
    """List everything that keeps `raw` from being a `wanted`, deepest first; an empty list means that it converts."""
    return list(_inner_faults(raw, wanted, where)) or list(_own_fault(raw, wanted, where))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known name, or nothing."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def locate_keys(text: str) -> dict[Place, int]:
    """Map the keys and table headers of a TOML document to their lines; what is unusual is left out."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place | None = ()
    depth = 0
    for number, line in enumerate(_without_strings(text).splitlines(), 1):
        if depth == 0 and (header := re.match(r"\s*(\[\[?)([^\[\]=]*)\]\]?\s*\Z", line)):
            table = _header_place(header[2], is_array=header[1] == "[[", counts=counts)
            if table is not None:
                found.setdefault(table, number)
            continue
        key = re.match(r"\s*([^=\[\]{}]+?)\s*=", line) if depth == 0 else None
        if key and table is not None and (names := _bare_names(key[1])):
            found.setdefault((*table, *names), number)
        depth += sum(line.count(mark) for mark in "[{") - sum(line.count(mark) for mark in "]}")
    return found


def describe_faults(faults: Iterable[Fault], path: Path, text: str) -> list[str]:
    """Write faults as `file:line: key: what`, in the order of their lines; the line is left out where unsure."""
    lines = locate_keys(text)
    placed = [(_line_of(fault.where, lines), fault) for fault in faults]
    placed.sort(key=lambda pair: (pair[0] or 0, str(pair[1].where)))
    return [
        f"{shown_path(path)}{f':{line}' if line else ''}: {format_place(fault.where)}: {fault.what}"
        for line, fault in placed
    ]


def describe_toml_error(fault: TomlError, path: Path) -> str:
    """Write a parse error as `file:line:column: what`."""
    return ":".join([shown_path(path), *(str(n) for n in (fault.line, fault.column) if n)]) + f": {fault.what}"


def shown_path(path: Path) -> str:
    """Return a path as people want to read it: from the current folder if it is below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def format_place(where: Place) -> str:
    """Write a place as `component[0].base.version`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")


def key_table(struct: type[msgspec.Struct], *, skip: Sequence[str] = ()) -> str:
    """Write a struct's fields as a Markdown table: key, type, default, meaning, example."""
    rows = ["| key | type | default | meaning | example |", "| --- | --- | --- | --- | --- |"]
    for field in _fields(struct).values():
        if field.encode_name in skip:
            continue
        metas = _metas(field.type)
        example = next((f"`{json.dumps(meta.examples[0])}`" for meta in metas if meta.examples), "")
        meaning = next((meta.description for meta in metas if meta.description), "")
        expected = next((meta.title for meta in metas if meta.title), "")
        cells = (f"`{field.encode_name}`", expected or _type_words(field.type), _default_words(field), meaning, example)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def inner_tables(struct: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """Return the structs that stand in a struct's fields, by key."""
    plain = {name: _plain(field.type) for name, field in _fields(struct).items()}
    return {name: kind for name, kind in plain.items() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}


# --- faults ----------------------------------------------------------------------------------------------------


def _inner_faults(raw: object, wanted: Any, where: Place) -> Iterator[Fault]:
    plain = _plain(wanted)
    if isinstance(raw, dict) and isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        yield from _table_faults(raw, plain, where)
    elif isinstance(raw, list) and get_origin(plain) in (tuple, list):
        for index, item in enumerate(raw):
            yield from find_faults(item, get_args(plain)[0], (*where, index))
    elif isinstance(raw, dict) and get_origin(plain) is dict:
        for name, value in raw.items():
            yield from find_faults(value, get_args(plain)[1], (*where, name))


def _table_faults(raw: Mapping[str, object], struct: type[msgspec.Struct], where: Place) -> Iterator[Fault]:
    fields = _fields(struct)
    for name, value in raw.items():
        if name in fields:
            yield from find_faults(value, fields[name].type, (*where, name))
        else:
            yield Fault(where=(*where, name), what=f"unknown key{did_you_mean(name, fields.keys() - raw.keys())}")
    for name, field in fields.items():
        if field.required and name not in raw:
            yield Fault(where=(*where, name), what="missing key", missing=True)


def _own_fault(raw: object, wanted: Any, where: Place) -> Iterator[Fault]:
    try:
        msgspec.convert(raw, wanted, strict=True)
    except msgspec.ValidationError as fault:
        yield Fault(where=where, what=_reword(str(fault), raw, wanted))


def _reword(message: str, raw: object, wanted: Any) -> str:
    plain = _plain(wanted)
    if get_origin(plain) is Literal and not message.startswith("Expected"):
        choices = ", ".join(repr(choice) for choice in get_args(plain))
        return f"{raw!r} is not one of {choices}"
    if "matching regex" in message:
        meta = next(meta for meta in _metas(wanted) if meta.title)
        example = f", such as {meta.examples[0]!r}" if meta.examples else ""
        return f"{raw!r} is not {meta.title}{example}"
    return re.sub(r"`(\w+)[^`]*`", lambda name: WORDS.get(name[1], name[1]), message).replace("Expected", "expected", 1)


# --- types -----------------------------------------------------------------------------------------------------


def _fields(struct: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    import msgspec.structs

    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def _plain(wanted: Any) -> Any:
    """Take a type out of Annotated and out of a union with None."""
    if get_origin(wanted) is Annotated:
        return _plain(get_args(wanted)[0])
    if get_origin(wanted) in (Union, types.UnionType):
        return _plain(next(part for part in get_args(wanted) if part is not type(None)))
    return wanted


def _metas(wanted: Any) -> list[msgspec.Meta]:
    """List a type's annotations, outermost first; those of an array's items are not its own."""
    if get_origin(wanted) is Annotated:
        inner, *notes = get_args(wanted)
        return [note for note in reversed(notes) if isinstance(note, msgspec.Meta)] + _metas(inner)
    if get_origin(wanted) in (Union, types.UnionType):
        return [meta for part in get_args(wanted) for meta in _metas(part)]
    return []


def _type_words(wanted: Any) -> str:
    plain = _plain(wanted)
    origin, parts = get_origin(plain), get_args(plain)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(part)}`" for part in parts)
    if origin in (tuple, list):
        return f"array of {_type_words(parts[0])}s"
    if origin is dict:
        return f"table of {_type_words(parts[1])}s" if parts[1] is not Any else "table"
    return WORDS.get(plain.__name__, "table")


def _default_words(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "none" if default is None else f"`{json.dumps(default)}`"


# --- lines -----------------------------------------------------------------------------------------------------

STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)


def _without_strings(text: str) -> str:
    """Blank strings and comments out, line breaks kept, so that no bracket or `=` in them is taken for syntax."""
    return STRINGS_AND_COMMENTS.sub(
        lambda match: "" if match[0].startswith("#") else '"' + "\n" * match[0].count("\n"), text
    )


def _bare_names(dotted: str) -> Place | None:
    names = tuple(name.strip() for name in dotted.split("."))
    return names if all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names) else None


def _header_place(dotted: str, *, is_array: bool, counts: dict[Place, int]) -> Place | None:
    """Resolve a header to its place: array tables on the way are those that were opened last."""
    names = _bare_names(dotted)
    if names is None:
        return None
    place: Place = ()
    for name in names[:-1]:
        place = (*place, name)
        if place in counts:
            place = (*place, counts[place] - 1)
    place = (*place, names[-1])
    if is_array:
        counts[place] = counts.get(place, 0) + 1
        place = (*place, counts[place] - 1)
    return place


def _line_of(where: Place, lines: Mapping[Place, int]) -> int | None:
    """Return the line of a place, or of the nearest table around it."""
    return next((lines[where[:end]] for end in range(len(where), 0, -1) if where[:end] in lines), None)
