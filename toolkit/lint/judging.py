"""The story of a lint: read, outline, find what is traced, run the checks, take out what comments allow."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.lint.arithmetic import check_arithmetic
from toolkit.lint.checks import CHECKS
from toolkit.lint.findings import Allowed, Finding, Hit, Report, Skipped
from toolkit.lint.forward import check_forward
from toolkit.lint.gradients import check_gradients
from toolkit.lint.order import check_order
from toolkit.lint.outline import outline
from toolkit.lint.reaching import find_roots, reach
from toolkit.lint.shapes import check_shapes
from toolkit.lint.sources import Source, read_sources, split_by_depth


def lint_model(places: Sequence[Path], *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Report:
    """Judge the Python files in the places; UsageError for a check or a place that does not exist."""
    wanted = _wanted(select, ignore)
    with _collector_at_rest():
        sources, skipped = read_sources(places)
        try:
            hits = _hits(sources)
        except RecursionError:
            sources, deep = split_by_depth(sources)
            skipped += deep
            hits = _hits(sources)
    by_file = {source.file: source for source in sources}
    findings = [_worded(hit, by_file[hit.file]) for hit in _ordered(hits, by_file) if hit.check in wanted]
    return _divided(findings, by_file, skipped)


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Stop the garbage collector: it would walk the trees again and again, which is half of the time, and find none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _hits(sources: Sequence[Source]) -> list[Hit]:
    base = outline(sources)
    roots = find_roots(base)
    reached = reach(base, roots)
    return [
        *check_forward(base, reached),
        *check_gradients(base, roots),
        *check_arithmetic(base),
        *check_shapes(base, reached),
        *check_order(base),
        *(hit for source in sources for hit in _bad_allows(source)),
    ]


def _wanted(select: Sequence[str], ignore: Sequence[str]) -> set[str]:
    for option, names in (("--select", select), ("--ignore", ignore)):
        for name in names:
            if name not in CHECKS:
                near = get_close_matches(name, CHECKS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"the checks are {', '.join(CHECKS)}"
                raise UsageError(f"{option} {name!r}: there is no such check", hint=hint)
    wanted = set(select or CHECKS) - set(ignore)
    if not wanted:
        raise UsageError("--select and --ignore leave no check", hint=f"the checks are {', '.join(CHECKS)}")
    return wanted


def _ordered(hits: Iterable[Hit], by_file: Mapping[str, Source]) -> list[Hit]:
    """Sort by file as read, line and check; a check speaks once on a line."""
    once = {(hit.file, hit.line, hit.check): hit for hit in reversed(list(hits))}
    places = {file: place for place, file in enumerate(by_file)}
    return sorted(once.values(), key=lambda hit: (places[hit.file], hit.line, hit.check))


def _worded(hit: Hit, source: Source) -> Finding:
    check = CHECKS[hit.check]
    return Finding(
        check=hit.check,
        file=hit.file,
        line=hit.line,
        text=source.lines[hit.line - 1].strip() if hit.line <= len(source.lines) else "",
        what=hit.what,
        why=hit.why or check.why,
        right=hit.right or check.right,
    )


def _divided(findings: Sequence[Finding], by_file: Mapping[str, Source], skipped: Sequence[Skipped]) -> Report:
    """Take out the findings that a comment with a reason allows."""
    kept, allowed = [], []
    for finding in findings:
        reason = next(
            (
                allow.reason
                for allow in by_file[finding.file].allows
                if finding.line in allow.covers and finding.check in allow.checks and allow.reason
            ),
            "",
        )
        if reason and finding.check != "bad-allow":
            allowed.append(Allowed(finding=finding, reason=reason))
        else:
            kept.append(finding)
    return Report(files=len(by_file), findings=tuple(kept), allowed=tuple(allowed), skipped=tuple(skipped))


def _bad_allows(source: Source) -> Iterator[Hit]:
    for allow in source.allows:
        unknown = [name for name in allow.checks if name not in CHECKS]
        if unknown:
            what = f"there is no check {unknown[0]!r}"
        elif not allow.reason:
            what = f"the comment for {', '.join(allow.checks)} gives no reason"
        else:
            continue
        yield Hit(check="bad-allow", file=source.file, line=allow.line, what=what)
