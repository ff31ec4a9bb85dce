"""What the Meta witnesses make of the answers: pure judgements, without torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.witnesses.meta_head_ratio import Answer, Call, Tensor, bsnd_calls, judge, paged_calls, tnd_calls

SITE = Path("/overlay/site")
FILE = str(SITE / "cann_ops_transformer/ops/sparse_flash_mla.py")
FAULT = (
    "TypeError: empty(): argument 'size' failed to unpack the object at pos 4 with error "
    '"type must be tuple of ints,but got float"'
)
CALL = Call("BSND", "BSND", (2, 128, 64, 512), (2, 128, 1, 512), (2, 1, 128, 64))
OUTPUT = Tensor((2, 128, 64, 512), "torch.bfloat16", "npu:0", (4194304, 32768, 512, 1))
LSE = Tensor((2, 1, 128, 64), "torch.float32", "npu:0", (8192, 8192, 64, 1))


def answer(*results: Tensor, error: str = "", files: tuple[str, ...] = (FILE,)) -> Answer:
    return Answer(CALL, error, results, files)


def test_right_results_pass_and_name_the_file_that_won() -> None:
    outcome = judge([answer(OUTPUT, LSE)], SITE)
    assert (outcome.status, outcome.detail) == ("pass", f"1 calls give the operator's own shapes, by {FILE}")
    assert outcome.evidence["won"] == FILE


def test_the_fault_fails_in_its_own_words() -> None:
    outcome = judge([answer(OUTPUT, LSE), answer(error=FAULT)], SITE)
    assert (outcome.status, outcome.detail) == ("fail", f"1 of 2 calls, the first {CALL}: {FAULT}")


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: empty(): argument 'size' (position 1) must be tuple of ints, but got float",
        "TypeError: empty(): argument 'size' (position 1) must be tuple of ints,but got float",
    ],
    ids=["blank", "no-blank"],
)
def test_other_wordings_of_torch_are_the_same_fault(text: str) -> None:
    assert judge([answer(error=text)], SITE).status == "fail"


@pytest.mark.parametrize(
    "error",
    ["TypeError: empty(): argument 'size' must be tuple of ints, not str", "RuntimeError: no npu"],
    ids=["size", "other"],
)
def test_another_error_is_no_verdict(error: str) -> None:
    outcome = judge([answer(OUTPUT, LSE), answer(error=error)], SITE)
    assert (outcome.status, outcome.detail) == ("error", f"{CALL}: {error}")


@pytest.mark.parametrize(
    "lse",
    [
        pytest.param(Tensor((2, 128, 1, 64), LSE.dtype, LSE.device, (8192, 64, 64, 1)), id="shape"),
        pytest.param(Tensor(LSE.shape, "torch.bfloat16", LSE.device, LSE.stride), id="dtype"),
        pytest.param(Tensor(LSE.shape, LSE.dtype, "meta", LSE.stride), id="device"),
        pytest.param(Tensor(LSE.shape, LSE.dtype, LSE.device, (8192, 64, 64, 1)), id="stride"),
    ],
)
def test_a_result_that_differs_fails_and_shows_both(lse: Tensor) -> None:
    outcome = judge([answer(OUTPUT, lse)], SITE)
    expected = f"gives {OUTPUT} and {lse}, expected {OUTPUT} and {LSE}"
    assert (outcome.status, outcome.detail) == ("fail", f"{CALL}: {expected}")


def test_a_missing_result_fails() -> None:
    assert judge([answer(OUTPUT)], SITE).status == "fail"


def test_a_copy_from_elsewhere_says_nothing_of_the_site() -> None:
    elsewhere = "/usr/local/Ascend/python/site-packages/cann_ops_transformer/ops/sparse_flash_mla.py"
    outcome = judge([answer(error=FAULT, files=(elsewhere,))], SITE)
    assert (outcome.status, outcome.detail) == (
        "error",
        f"the function that answered is in {elsewhere}, expected one below {SITE}",
    )


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ((), "functions of 0 files answered: none"),
        ((FILE, "/a.py"), f"functions of 2 files answered: /a.py, {FILE}"),
    ],
    ids=["none", "two"],
)
def test_what_no_one_function_answered_is_no_verdict(files: tuple[str, ...], detail: str) -> None:
    outcome = judge([answer(OUTPUT, LSE, files=files)], SITE)
    assert (outcome.status, outcome.detail) == ("error", detail)


def test_no_calls_are_no_verdict() -> None:
    assert judge([], SITE).status == "error"


def test_every_layout_is_called_at_every_ratio() -> None:
    calls = [*bsnd_calls(), *tnd_calls(), *paged_calls()]
    assert [call.lse[-1] for call in calls] == [1, 4, 64, 128] * 3
    assert {(call.layout_q, call.layout_kv, len(call.q), len(call.kv)) for call in calls} == {
        ("BSND", "BSND", 4, 4),
        ("TND", "TND", 3, 3),
        ("TND", "PA_BBND", 3, 4),
    }
