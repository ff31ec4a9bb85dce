"""Write the bindings of every operator in operators.yaml: the C++ module and the table for Python.

python codegen/generate.py PACKAGE_FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent


def main(package: Path) -> None:
    operators = read_operators(HERE / "operators.yaml")
    write(
        package / "csrc" / "generated" / "bindings.cpp",
        template="bindings.cpp.in",
        definitions="\n".join(f'  module.def("{name}", &sample::{name}, "{doc}");' for name, doc in operators),
    )
    write(
        package / "_generated_operators.py",
        template="operators.py.in",
        entries="\n".join(f'    "{name}": "{doc}",' for name, doc in operators),
    )


def read_operators(path: Path) -> list[tuple[str, str]]:
    """Read pairs of name and doc from the little YAML that the list is written in."""
    fields = [line.lstrip("- ").partition(": ") for line in path.read_text(encoding="utf-8").splitlines()]
    names = [value for key, _, value in fields if key == "name"]
    docs = [value for key, _, value in fields if key == "doc"]
    if len(names) != len(docs):
        sys.exit(f"{path}: {len(names)} names and {len(docs)} docs, expected one doc for each name")
    return list(zip(names, docs, strict=True))


def write(path: Path, *, template: str, **values: str) -> None:
    """Fill a template; a file that would not change is left alone, so that it is not compiled again."""
    text = Template((HERE / "templates" / template).read_text(encoding="utf-8")).substitute(values)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
