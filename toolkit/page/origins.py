"""What was built from what: bases with their digests, and each patch with its reason and its diff."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.page.html import block, code, details, facts, section, tag, text
from toolkit.page.values import Account, ComponentAccount, PatchAccount
from toolkit.page.words import count, result_words, tone_of, without_it

DIFF_LIMIT = 60_000
INDENT = "    "
TONES = {"+": "ins", "-": "del", "@": "hunk"}


def render_origins(account: Account) -> str:
    """Write each component: base, result, patches."""
    return section("built-from", "Built from", _body(account))


def _body(account: Account) -> Iterator[str]:
    for part in account.components:
        yield f"<h3>{text(part.name)}</h3>"
        yield _component(part)
        if not part.patches:
            yield '<p class="soft">Taken as it is: no patches.</p>'
        yield from (_patch(patch, account) for patch in part.patches)
    for name in account.overlay.absent:
        yield f"<p>Without {text(name)}: it was not installed where this was built.</p>"
    contract = account.overlay.contract
    wanted = [("target", code(account.overlay.target)), ("torch", code(contract.torch))]
    wanted += [("CANN", code(contract.cann or "")), ("SoC", code(", ".join(contract.soc)))]
    wanted = [(name, value if value != "<code></code>" else "") for name, value in wanted]
    variables = "<br>".join(code(f"{name}={value}") for name, value in account.overlay.env.items())
    packages = ", ".join(f"{name} {version}" for name, version in _packages(account))
    yield "<h3>Made for</h3>"
    yield facts([*wanted, ("sets", variables), ("proven with", text(packages)), ("key", code(account.overlay.key))])


def _component(part: ComponentAccount) -> str:
    return facts(
        [
            ("base", f"{text(part.kind)} {text(part.base_version)}<br>{code(part.digest)}"),
            ("from", "<br>".join(code(place) for place in part.places)),
            ("becomes", f"<strong>{text(part.version)}</strong>"),
            ("wheel", f"{code(part.wheel)}<br>{code(f'sha256 {part.wheel_sha256}')}"),
            *((name, text(value)) for name, value in part.built_with),
        ]
    )


def _patch(patch: PatchAccount, account: Account) -> str:
    check = account.check(patch.witness)
    said = "".join(
        f' <span class="{tone_of(result)}">{text(side)}: {text(result_words(result))}</span>'
        for side, result in (check.results.items() if check else ())
    )
    left = "" if patch.is_in else " <em>(left out: the base has it)</em>"
    told = without_it(patch, account)
    why = tag("span", text(told), class_="why") if told else ""
    summary = f"<b>{text(patch.name)}</b>{left}{why}" + (f'<span class="verdicts">{said}</span>' if said else "")
    return details(summary, "\n".join(_inside(patch, has_check=check is not None)), class_="patch")


def _inside(patch: PatchAccount, *, has_check: bool) -> Iterator[str]:
    witness = text(patch.witness)
    if patch.remark:
        yield tag("p", text(patch.remark), class_="notice")
    if patch.reason:
        yield tag("div", "\n".join(_paragraphs(patch.reason)), class_="reason")
    yield facts(
        [
            ("upstream", text(patch.upstream_status)),
            ("witness", f'<a href="#check-{witness}">{witness}</a>' if has_check else witness),
            ("file", code(patch.file) if patch.file else ""),
            ("sha256", code(patch.sha256)),
        ]
    )
    if patch.diff:
        yield render_diff(patch.diff)


def _paragraphs(message: str) -> Iterator[str]:
    """Write a message as paragraphs that fit any width; what is indented is laid out as it is."""
    for paragraph in re.split(r"\n[ \t]*\n", message.strip("\n")):
        lines = paragraph.splitlines()
        if all(line.startswith(INDENT) for line in lines):
            yield block("\n".join(line.removeprefix(INDENT) for line in lines))
        elif any(line.startswith((INDENT, "* ", "- ")) for line in lines):
            yield tag("p", text(paragraph), class_="laid-out")
        else:
            yield tag("p", text(" ".join(paragraph.split())))


def render_diff(diff: str) -> str:
    """Write a diff with its added and removed lines set off; they keep their signs."""
    shown = "\n".join(_diff_line(line) for line in diff[:DIFF_LIMIT].splitlines())
    rest = len(diff) - DIFF_LIMIT
    note = f'<p class="soft">{count(rest, "character")} more are in the file.</p>' if rest > 0 else ""
    return f'<pre class="diff" tabindex="0"><span class="lines">{shown}</span></pre>{note}'


def _diff_line(line: str) -> str:
    if line.startswith(("diff --git ", "+++ ", "--- ", "index ")):
        return f'<span class="file">{text(line)}</span>'
    tone = TONES.get(line[:1])
    return f'<span class="{tone}">{text(line)}</span>' if tone else text(line)


def _packages(account: Account) -> Iterator[tuple[str, str]]:
    child = account.proof.environment.get("child")
    told = child if isinstance(child, dict) else {}
    return ((name, str(told[name])) for name in ("python", "torch", "torch_npu", "libc") if name in told)
