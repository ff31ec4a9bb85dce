"""The page's looks: one column, restrained, for a phone, a wide screen, the dark and paper."""

from __future__ import annotations

STYLE = """\
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --soft: #57606a; --line: #d5dae0; --panel: #f5f7f9;
  --good: #116329; --bad: #b3261e; --warn: #fff6dd; --link: #0a58b0; --base: #a8480c; --overlay: #0a58b0;
  --ins: #e2f5e5; --del: #fdeae8; --mark: #fff3c4; --mark-edge: #b58100; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0f1318; --ink: #e4e8ec; --soft: #9ba6b1; --line: #2f3740; --panel: #171c22;
    --good: #63c97a; --bad: #ff958c; --warn: #2d2610; --link: #82bbf7; --base: #f0a06a; --overlay: #82bbf7;
    --ins: #12301b; --del: #3a1917; --mark: #3a3212; --mark-edge: #d9ae3c; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--page); color: var(--ink);
  overflow-wrap: anywhere;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .8125rem; }
a { color: var(--link); text-underline-offset: .15em; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
h4 { font-size: .8125rem; margin: .9rem 0 .3rem; color: var(--soft); }
p { margin: .5rem 0; max-width: 46rem; }
small { display: block; font-size: .8125rem; color: var(--soft); }
.soft { color: var(--soft); font-size: .875rem; }
.kind { margin: 0; color: var(--soft); font-size: .8125rem; letter-spacing: .06em; text-transform: uppercase; }
.lead { font-size: 1.0625rem; margin: .5rem 0 0; }
.good { color: var(--good); } .bad { color: var(--bad); } .none { color: var(--soft); }
.verdict { display: inline-block; font-size: .9375rem; font-weight: 600; letter-spacing: 0; padding: .2rem .6rem;
  border: 1.5px solid currentColor; border-radius: 2rem; vertical-align: .25em; white-space: nowrap; }
nav { margin: 1.25rem 0 0; font-size: .875rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: 0; padding: 0; }
#summary > h2 { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
.tiles { display: flex; flex-wrap: wrap; list-style: none; margin: 1.5rem 0; padding: 1px 0 0 1px; }
.tiles li { flex: 1 1 9.5rem; margin: -1px 0 0 -1px; border: 1px solid var(--line); padding: .7rem .9rem;
  font-size: .8125rem; color: var(--soft); line-height: 1.35; }
.tiles b { display: block; white-space: nowrap; font-size: 1.375rem; line-height: 1.3; color: var(--ink);
  font-variant-numeric: tabular-nums; }
.claim { font-size: 1.0625rem; }
.notice { background: var(--warn); border-left: 3px solid var(--mark-edge); padding: .5rem .75rem; }
.wrong { border-left: 3px solid var(--bad); padding: .1rem .9rem; }
.wrong ul { margin: .25rem 0 .5rem; padding-left: 1.1rem; }
dl { margin: .5rem 0; font-size: .9375rem; }
dl > div { display: grid; grid-template-columns: 8rem 1fr; gap: .75rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); }
dl > div:last-child { border-bottom: 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; overflow-wrap: normal; }
caption { text-align: left; color: var(--soft); font-size: .8125rem; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 8rem; }
td { font-variant-numeric: tabular-nums; }
td > span { white-space: nowrap; }
.checks td:last-child, .checks th:last-child { text-align: right; padding-right: 0; }
.figures td { white-space: nowrap; } .figures td small { white-space: normal; min-width: 12rem; }
.histogram td, .histogram tbody th { padding-top: .15rem; padding-bottom: .15rem; min-width: 4.5rem;
  white-space: nowrap; }
.histogram td:last-child, .histogram thead th:last-child { width: 60%; min-width: 6rem; vertical-align: middle;
  white-space: normal; }
.commands pre { margin: 0; min-width: 20rem; }
details { border-bottom: 1px solid var(--line); margin: 0; min-width: 0; }
details[open] { padding-bottom: 1rem; }
details details { border-bottom: 0; }
summary { cursor: pointer; padding: .5rem 0; }
summary:focus-visible, a:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--link);
  outline-offset: 2px; }
summary small { padding-left: 1.1rem; } summary small span { margin-right: .75rem; }
.verdicts { font-size: .875rem; } .verdicts span { margin-right: .75rem; white-space: nowrap; }
.patch .verdicts, .patch .why { display: block; padding-left: 1.1rem; }
.why { font-size: .875rem; max-width: 60rem; } .checks small.red { margin-top: .2rem; }
.checks tbody th { overflow-wrap: anywhere; }
.reason { max-width: 46rem; margin: .25rem 0 .75rem; } .reason p:first-child { font-weight: 600; }
.laid-out { white-space: pre-wrap; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0;
  padding: .6rem .75rem;  overflow-x: auto; line-height: 1.45; overflow-wrap: normal; tab-size: 4; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; }
pre.command::before { content: "$ "; color: var(--soft); }
pre .lines { display: inline-block; min-width: 100%; }
pre .ins, pre .del, pre mark { display: inline-block; min-width: 100%; color: inherit; }
.ins { background: var(--ins); } .del { background: var(--del); }
.hunk { color: var(--link); } .file { font-weight: 600; }
pre i { color: var(--soft); }
mark { background: var(--mark); color: inherit; }
pre mark { box-shadow: -.4rem 0 0 var(--mark), -.6rem 0 0 var(--mark-edge); }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 1rem; }
.pair ol, .pair ul { margin: .25rem 0; padding-left: 1.5rem; font-size: .875rem; }
@media (min-width: 60rem) { .pair { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
figure { margin: 1rem 0; }
figcaption { font-size: .875rem; color: var(--soft); }
.defs { position: absolute; }
.legend { font-size: .8125rem; display: flex; flex-wrap: wrap; gap: .1rem .9rem; }
.legend span { display: inline-flex; align-items: center; gap: .3rem; }
.row { display: grid; grid-template-columns: minmax(0, 1fr); border-bottom: 1px solid var(--line); padding: .2rem 0; }
.row:last-child { border-bottom: 0; }
.row .name { font-size: .875rem; min-width: 0; } .row .name small span { margin-right: .75rem; }
@media (min-width: 45rem) { .row { grid-template-columns: 19rem minmax(0, 1fr); gap: 1rem; align-items: center; }
  .row .name small span { display: block; } }
svg { display: block; } svg.strip { overflow: visible; }
svg line { stroke: var(--line); }
svg text { font-size: 11px; fill: var(--soft); text-anchor: middle; }
use.base { fill: var(--page); stroke: var(--base); stroke-width: 1.25; }
use.overlay { fill: var(--overlay); stroke: var(--overlay); stroke-width: 1; }
.bars rect.base { fill: var(--page); stroke: var(--base); stroke-width: 1.25; }
.bars rect.overlay { fill: var(--overlay); stroke: var(--overlay); stroke-width: 1.25; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem; }
@media (max-width: 30rem) { dl > div { grid-template-columns: minmax(0, 1fr); gap: 0; } h1 { font-size: 1.5rem; }
  .checks td > span { white-space: normal; } .checks td, .checks th { padding-right: .5rem; }
  .checks tbody th { min-width: 7rem; }
  .histogram tbody td, .histogram tbody th { min-width: 0; padding-right: .5rem; } }
@media print {
  :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --line: #bbb; --panel: #fff; --good: #116329;
    --bad: #b3261e; --link: #000; --base: #a8480c; --overlay: #0a58b0; --ins: #eee; --del: #eee; --mark: #e6e6e6;
    --mark-edge: #000; --warn: #eee; }
  @page { margin: 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  details { border: 0; padding: 0; }
  section:not(#code) details::details-content { content-visibility: visible; display: block; }
  details[open] { padding: 0; }
  pre, code { font-size: 7.5pt; }
  pre, pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; overflow: visible; max-height: none; }
  pre .lines, pre .ins, pre .del, pre mark { display: inline; }
  .wide { overflow: visible; } table { overflow-wrap: anywhere; }
  .figures td, .histogram td, td > span, thead th { white-space: normal; }
  h2, h3, h4, summary, figcaption { break-after: avoid; } tr, .row, .tiles { break-inside: avoid; }
  a { text-decoration: none; }
}"""
