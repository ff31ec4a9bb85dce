"""Each section by itself: what it shows, and what it says where there is nothing to show."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.report_sample import BASE_DIGEST, result
from toolkit.page import Account, CheckAccount, GraphEvidence, KeptFile, Kernel, NumberRow, Program, graphs
from toolkit.page.checks import EVIDENCE_LIMIT, render_checks
from toolkit.page.graphs import render_graphs
from toolkit.page.kernels import by_graph, render_kernels
from toolkit.page.numbers import render_numbers, shown_buckets
from toolkit.page.origins import DIFF_LIMIT, render_diff, render_origins
from toolkit.page.repeating import render_repeating
from toolkit.page.summary import render_summary
from toolkit.page.timings import render_timings
from toolkit.page.values import SIDES


def words(html: str) -> str:
    """Return what a reader sees, on one line."""
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def row(**changed: object) -> NumberRow:
    usual: dict[str, object] = {
        "check": "accumulator", "side": "overlay", "graph": "g", "mode": "recorded", "value": "result",
        "dtype": "torch.bfloat16", "shape": (2, 3), "reference": "eager", "maximum_absolute_error": 0.5,
        "relative_l2": 0.25, "cosine": 1.0, "ulps": {"0": 6}, "within": True,
    }  # fmt: skip
    return NumberRow(**{**usual, **changed})  # type: ignore[arg-type]


# --- origins -----------------------------------------------------------------------------------------------------


def test_a_component_is_said_with_base_digest_and_result(account: Account) -> None:
    seen = words(render_origins(account))

    assert (
        f"base wheel sample_npu 1.0 {BASE_DIGEST} from sample_npu-1.0.whl becomes sample_npu 1.0+p1.k01234567" in seen
    )
    assert f"sha256 {'c' * 64}" in seen


def test_a_patch_has_reason_status_witness_and_diff(account: Account) -> None:
    html = render_origins(account)

    assert "<p>sample: keep the accumulator</p>\n<p>Without it `a &lt; b &amp;&amp; c` is lost: &lt;/pre&gt;" in html
    assert (
        "0001-keep-accumulator Without it: running_mean loses old base: ✓ red, as it must be overlay: ✓ pass"
        in words(html)
    )
    assert "upstream Pending [a sample] witness aliased" in words(html)
    assert '<span class="del">-    return &quot;&lt;b&gt;41&lt;/b&gt;&quot;</span>' in html
    assert '<span class="ins">+    return &quot;&lt;b&gt;42&lt;/b&gt;&quot;</span>' in html
    assert '<span class="file">+++ b/sample_npu/core.py</span>' in html


def test_what_a_message_indents_keeps_its_layout(account: Account) -> None:
    (part,) = account.components
    reason = "subject\n\none\ntwo\n\n    a  b <\n      c\n\n* first\n* second"
    told = replace(part, patches=(replace(part.patches[0], reason=reason),))
    html = render_origins(replace(account, components=(told,)))

    assert '<p>one two</p>\n<pre tabindex="0">a  b &lt;\n  c</pre>\n<p class="laid-out">* first\n* second</p>' in html


def test_a_patch_that_the_base_has_is_said_to_be_left_out(account: Account) -> None:
    (part,) = account.components
    out = replace(part, patches=tuple(replace(patch, is_in=False) for patch in part.patches))

    assert "left out: the base has it" in render_origins(replace(account, components=(out,)))


def test_a_component_without_patches_and_one_that_is_absent(account: Account) -> None:
    (part,) = account.components
    bare = replace(part, patches=(), built_with=(("compiler", "gcc 12"),))
    seen = words(render_origins(replace(account, components=(bare,), overlay=replace(account.overlay, absent=("x",)))))

    assert "Taken as it is: no patches." in seen
    assert "compiler gcc 12" in seen
    assert "Without x: it was not installed where this was built." in seen


def test_a_long_diff_is_cut_and_says_so() -> None:
    html = render_diff("+" * (DIFF_LIMIT + 7))

    assert len(html) < DIFF_LIMIT + 200
    assert "7 characters more are in the file." in html


# --- checks ------------------------------------------------------------------------------------------------------


def test_the_table_has_both_sides_and_what_each_check_is_for(account: Account) -> None:
    seen = words(render_checks(account))

    assert "aliased old is kept base: running_mean loses old ✓ red, as it must be ✓ pass 2.5" in seen
    assert "origins \N{EN DASH} ✓ pass 1.2" in seen


def test_behind_a_check_are_its_detail_its_evidence_and_its_command(account: Account) -> None:
    html = render_checks(account)

    assert "base: fail, wanted fail (1.25 s)" in words(html)
    assert "running_mean loses old" in html
    assert "toolkit verify --recipe sample --check aliased" in html
    assert "<code>logs/base-aliased.log</code>, <code>logs/base-aliased/</code>" in html
    assert "&quot;launches&quot;" in html
    assert '<b>numbers</b>: <a href="#numbers">below</a>' in html


def test_long_evidence_is_cut_and_says_where_the_whole_is(account: Account) -> None:
    long = result("long", evidence={f"part {number}": "x" * 50_000 for number in range(9)})
    check = CheckAccount(name="long", summary="", results={"overlay": long}, files=(), command="c")
    html = render_checks(replace(account, checks=(check,)))

    assert len(html) < EVIDENCE_LIMIT + 4_000
    assert "… 46000 characters more in proof.json" in html
    assert "More is in proof.json." in html


# --- numbers -----------------------------------------------------------------------------------------------------


def test_without_numbers_the_section_says_so(account: Account) -> None:
    assert "No check of this proof has recorded numbers." in render_numbers(replace(account, numbers=()))


def test_a_plot_says_its_points_and_its_verdict_in_words(account: Account) -> None:
    html = render_numbers(account)

    assert 'aria-label="base, recorded: not finite; overlay, recorded: 1e-06; base, separate: 0;' in html
    assert "running_mean base: ✗ 0 of 3 overlay: ✓ 2 of 2 " in words(html)
    assert "running_mean base: ✗ 0 of 3 agree with eager overlay: ✓ 2 of 2 agree with eager" in words(html)
    assert "softmax &lt;b&gt;" in html


def test_what_tells_nothing_new_is_folded_away(account: Account) -> None:
    html = render_numbers(account)
    shown, _, folded = html.partition('<details class="rest">')

    assert re.findall(r"<summary><b>(.*?)</b> <small>", shown) == ["running_mean", "sinkhorn", "softmax &lt;b&gt;"]
    assert "1 graph with nothing beyond its gate, and base and overlay have the same errors" in words(folded)


def test_checks_that_tell_something_come_first(account: Account) -> None:
    quiet, loud = row(check="quiet"), row(check="loud", within=False)
    html = render_numbers(replace(account, numbers=(quiet, loud)))

    assert re.findall("<h3>(.*?)</h3>", html) == ["loud", "quiet"]
    assert "quiet 1 graph with nothing beyond its gate overlay: ✓ 1 of 1 agrees with eager" in words(html)


def test_the_words_are_explained(account: Account) -> None:
    seen = words(render_numbers(replace(account, numbers=(row(), row(mode="eager", reference="float64")))))

    assert (
        "Modes: recorded : with values parked where the real runtime&#x27;s launches put them; eager : eager itself "
        "against FP64, for comparison: nothing of the overlay&#x27;s. A gate is the error that is allowed for the "
        "value's type." in seen
    )


@pytest.mark.parametrize(("graphs", "axes"), [(5, 1), (6, 2)])
def test_a_tall_plot_has_its_axis_above_it_too(account: Account, graphs: int, axes: int) -> None:
    rows = tuple(row(graph=f"g{number}") for number in range(graphs))

    assert render_numbers(replace(account, numbers=rows)).count('<svg class="axis"') == axes


def test_the_legend_has_the_shapes_of_the_plot(account: Account) -> None:
    own = (row(), row(side="base"), row(mode="separate"))
    legend = re.findall('<p class="legend">(.*?)</p>', render_numbers(replace(account, numbers=own)))[0]

    assert words(legend) == "colour is the side: base overlay shape is the mode: recorded separate"
    assert re.findall('href="#(.*?)" class="(.*?)"', legend) == [
        ("shape-recorded-base", "base"), ("shape-recorded", "overlay"),
        ("shape-recorded-base", "base"), ("shape-recorded", "overlay"), ("shape-separate", "overlay"),
    ]  # fmt: skip


def test_every_value_has_a_row(account: Account) -> None:
    own = (row(), row(side="base", maximum_absolute_error=None, relative_l2=None, cosine=None, within=False))
    seen = words(render_numbers(replace(account, numbers=own)))

    assert "result bfloat16[2, 3] overlay recorded eager 0.5 0.25 1 ✓ within" in seen
    assert "result bfloat16[2, 3] base recorded eager not finite not finite not finite ✗ beyond" in seen


def test_the_distribution_has_each_side_s_counts(account: Account) -> None:
    own = (row(ulps={"0": 1000, "3-4": 20}), row(side="base", ulps={"0": 19, "nonfinite": 1}))
    seen = words(render_numbers(replace(account, numbers=own)))

    assert "distance in ULP, mode recorded, against eager (base: 20 elements, overlay: 1020 elements)" in seen
    assert "0 19 1,000 3-4 0 20 nonfinite 1 0" in seen


def test_a_distribution_of_equal_values_is_one_line(account: Account) -> None:
    html = render_numbers(replace(account, numbers=(row(ulps={"0": 1000, "1": 0}), row(side="base", ulps={"0": 1}))))

    assert "mode recorded, against eager: 0 everywhere (base: 1 element, overlay: 1000 elements)" in html
    assert "counts, logarithmic" not in html


def test_a_value_without_elements_has_no_distribution(account: Account) -> None:
    html = render_numbers(replace(account, numbers=(row(ulps={}, shape=(0,)),)))

    assert "distance in ULP" not in html
    assert "bfloat16[0]" in html


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        pytest.param({"0": 5}, ["0"], id="one"),
        pytest.param({"0": 5, "1": 0, "2": 0, "3-4": 1, "5-8": 0}, ["0", "…", "3-4"], id="empty ones between"),
        pytest.param({"nonfinite": 1, "9-16": 1, "10000-20000": 2}, ["9-16", "10000-20000", "nonfinite"], id="order"),
        pytest.param({"0": 0}, [], id="nothing"),
    ],
)
def test_the_buckets_that_are_shown(counts: dict[str, int], shown: list[str]) -> None:
    assert shown_buckets({"overlay": counts}) == shown


# --- kernels and code --------------------------------------------------------------------------------------------


def test_kernels_and_launches_are_counted_on_both_sides(account: Account) -> None:
    seen = words(render_kernels(account))

    assert "running_mean aliased 1 kernel (spec) ✗ loses old: launch 1 writes it 2 kernels (2 × vector) 1 1 0" in seen  # noqa: RUF001
    assert "running_mean accumulator 1 kernel (spec) 2 kernels (2 × vector) 1 2 +1" in seen  # noqa: RUF001


def test_a_graph_of_one_side_has_a_dash_on_the_other(account: Account) -> None:
    kernels = (Kernel(name="k", type="mix"),)
    both = [Program(check="c", side=side, graph="f", kernels=kernels, launches=("1",)) for side in SIDES]
    one = Program(check="c", side="base", graph="g", kernels=kernels, launches=())
    dash = "\N{EN DASH}"

    seen = words(render_kernels(replace(account, programs=(*both, one))))
    assert seen.endswith(f"f c 1 kernel (mix) 1 kernel (mix) 1 1 0 g c 1 kernel (mix) {dash} {dash} {dash} {dash}")


def test_what_runs_without_a_kernel_is_counted_apart(account: Account) -> None:
    types = ("spec", "vector", "fallback")
    kernels = tuple(Kernel(name="", type=kind) for kind in types)
    mixed = Program(check="c", side="overlay", graph="g", kernels=kernels, launches=())
    alone = replace(mixed, graph="h", kernels=(kernels[2], kernels[2]))
    seen = words(render_kernels(replace(account, programs=(mixed, alone))))

    assert seen.endswith("g c 2 kernels (spec, vector) and 1 fallback to FX h c 2 fallbacks to FX")
    assert "fallback (no kernel, run operator by operator by FX)" in seen


def test_of_several_runs_the_one_with_launches_is_shown(account: Account) -> None:
    kernels = (Kernel(name="k", type="spec"),)
    recorded = Program(check="c", side="overlay", graph="g", kernels=kernels, launches=("1", "2"))
    seen = words(render_kernels(replace(account, programs=(replace(recorded, launches=()), recorded))))

    assert seen.endswith("g c 1 kernel (spec) 2")


def test_checks_whose_graphs_lose_an_input_come_first(account: Account) -> None:
    quiet = Program(check="a", side="overlay", graph="g", kernels=(), launches=())
    compared = [replace(quiet, check="b", side=side) for side in SIDES]
    losing = replace(quiet, check="z", side="base", lost={"old": "launch 1 writes it"})

    assert [one[0] for one in by_graph((quiet, *compared, losing))] == ["z", "b", "a"]


def test_columns_that_would_say_nothing_are_left_out(account: Account) -> None:
    one = Program(check="c", side="overlay", graph="g", kernels=(Kernel(name="k", type="mix"),), launches=())
    seen = words(render_kernels(replace(account, programs=(one,))))

    assert seen.endswith("graph kernels, overlay g c 1 kernel (mix)")


def test_without_programs_the_section_says_so(account: Account) -> None:
    assert "has recorded kernels and launches" in render_kernels(replace(account, programs=()))


def test_code_is_side_by_side_with_kernel_lines_marked(account: Account) -> None:
    html = render_graphs(account)
    listings = re.findall(
        r"<h4>(?:base|overlay)</h4><pre class=\"code\" tabindex=\"0\"><span class=\"lines\">(.*?)</span></pre>",
        html,
        re.S,
    )
    base, overlay = listings[:2]

    assert "<mark>- @dvm.kernel(ktype=&#x27;spec&#x27;, dyn_shape=False)</mark>" in base
    assert "<mark>-     k.spec_next()</mark>" in base
    assert "<mark>          dvm_fused_sum_0.run(args[0], stream=stream0)</mark>" in base
    assert '<span class="ins">+     total = total</span>' in overlay
    assert "&lt;i&gt;not markup&lt;/i&gt;" in overlay
    assert "<i>… 6 lines left out: imports and names</i>" in base
    assert "<code>logs/base-aliased/aliased-running_mean.py</code>" in html


def test_listings_that_differ_in_addresses_only_are_shown_once(account: Account) -> None:
    html = render_graphs(account)

    assert html.count("base and overlay: the same") == 1
    assert "block_dim=40" in html


def test_what_is_lost_stands_beside_the_launches(account: Account) -> None:
    seen = words(render_graphs(account))

    assert "launches, base 1 blocks: store old ✗ old is lost: launch 1 writes it launches, overlay" in seen


def test_what_has_a_before_and_an_after_comes_first_and_is_unfolded(account: Account) -> None:
    lone = GraphEvidence(check="origins", graph="lone", code={"overlay": KeptFile(path="a", text="1")}, stages={})
    html = render_graphs(replace(account, graphs=(lone, *reversed(account.graphs))))

    assert re.findall(r"<h3>(.*?)</h3>", html) == ["aliased", "accumulator", "origins"]
    assert re.findall(r'<details class="graph"( open)?>', html) == [" open", "", ""]


def test_without_code_the_section_says_so(account: Account) -> None:
    assert "No generated code is kept" in render_graphs(replace(account, graphs=()))


def test_code_of_one_side_stands_alone_and_a_cut_file_says_so(account: Account) -> None:
    graph = GraphEvidence(
        check="c", graph="g", code={"overlay": KeptFile(path="logs/g.py", text="a", cut=9)}, stages={}
    )
    seen = words(render_graphs(replace(account, graphs=(graph,))))

    assert "overlay a logs/g.py (9 characters more are there)" in seen


def test_what_there_is_no_room_for_is_named(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "BUDGET", 1000)
    html = render_graphs(account)

    assert len(html) < 2000
    assert (
        "left out, as this page would become too long; see <code>logs/base-aliased/aliased-running_mean.py</code>"
        in html
    )


# --- the rest ----------------------------------------------------------------------------------------------------


def test_times_are_in_the_tables_and_as_bars(account: Account) -> None:
    html = render_timings(account)

    assert "aliased 1.25 1.25" in words(html)
    assert 'width="98.00%"' in html
    assert "running_mean accumulator 0.750 s 0.750 s 0.031 s 0.031 s" in words(html)


def test_without_any_time_nothing_is_divided_by_zero(account: Account) -> None:
    instant = CheckAccount(name="a", summary="", results={"overlay": result("a", seconds=0.0)}, files=(), command="c")

    assert "a \N{EN DASH} 0.00" in words(render_timings(replace(account, checks=(instant,), programs=())))


def test_every_line_has_its_command(account: Account) -> None:
    html = render_repeating(account)

    for command in ("toolkit build --recipe sample", "toolkit run --recipe sample --host -- python program.py"):
        assert f'<pre tabindex="0" class="command">{command}</pre>' in html
    assert html.count("toolkit verify --recipe sample --check ") == len(account.checks) == 3


def test_the_figures_at_the_top(account: Account) -> None:
    seen = words(render_summary(account))

    assert "5 of 5 required results are as they must be" in seen
    assert "1 patch is in it" in seen
    assert "2 checks fail on the base and pass with the patches" in seen
    assert "✓ 8 of 8 values computed on the CPU from the overlay&#x27;s code agree with eager" in seen


def test_notices_stand_first(account: Account) -> None:
    html = render_summary(replace(account, notices=("of another overlay <b>",)))

    assert html.index("of another overlay &lt;b&gt;") < html.index('class="tiles"')
