"""When a line was written: the ways in which time is spelt in logs, as seconds since 1970."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = date(1970, 1, 1).toordinal()

_YEAR = r"(?:19[7-9]|20\d)\d"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:[.,]\d{1,9}(?:\.\d{3})?)?"
_ZONE = r"(?:Z| ?(?:UTC|GMT)| ?[+-](?:0\d|1[0-4]):?[0-5]\d)"
_END = r"(?![\w.])"

ISO = rf"{_YEAR}(?:-{_MONTH}-{_DAY}|/{_MONTH}/{_DAY})[T _-]{_TIME}{_ZONE}?{_END}"
"""`2026-05-01T10:00:00.123456789Z`, `2026/05/01 10:00:00,123 +0800`, CANN's `2026-05-11-09:12:44.123.456`."""

NAMED = (
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:{'|'.join(_MONTHS)}) (?: [1-9]|{_DAY}|[1-9]) {_TIME}"
    rf"(?: (?:UTC|GMT))?(?: {_YEAR})?{_END}"
)
"""`May  1 10:00:00` of syslog, `Mon Nov 30 10:39:23 UTC 2026` of date and dmesg."""

NUMBERED = rf"{ISO}|{_MONTH}/{_DAY}/(?:{_YEAR}|\d\d) {_TIME}{_END}|{_MONTH}[-/]{_DAY} {_TIME}{_END}"
"""ISO; `08/20/2026 11:02:11`, the month first; `05-07 02:57:50` of vLLM."""

GLOG = rf"(?:{_YEAR})?(?:{_MONTH}|[1-9]){_DAY} {_TIME}"
"""`0519 01:09:49.832000`, `20260519 01:09:49`; newer C++ code of torch writes `416` for the 16th of April."""

SINCE_1970 = r"\d{10}\.\d{1,9}"
"""Seconds, as newer absl writes them behind a date of zeros."""

CLOCK = rf"{_TIME}(?=[ \t\]|]|:[ \t]|$)"
"""Nothing but the time of day."""

_CLOCK_PARTS = re.compile(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d+)(?:\.(\d+))?)?")
_YEAR_FIRST = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)")
_MONTH_FIRST = re.compile(r"(\d\d)[-/](\d\d)(?:/(\d{2,4}))?")
_NAMED_PARTS = re.compile(r"(?:\w+ )??([A-Z][a-z][a-z]) +(\d+)")
_GLOG_PARTS = re.compile(r"(\d{4})??(\d{1,2})(\d\d)")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def read_stamp(text: str) -> tuple[float, bool]:
    """Return a stamp's seconds since 1970 and whether it says its year; 1970 stands where it does not.

    `text` is what one of the patterns of this module has matched, anything else raises a ValueError. UTC is taken
    where no zone is written.
    """
    clock = _CLOCK_PARTS.search(text)
    if clock is None:
        return float(text), True
    hour, minute, second, fraction, micros = clock.groups()
    start, year = _read_date(text[: clock.start()], text[clock.end() :])
    when = start + int(hour) * 3600.0 + int(minute) * 60 + int(second)
    if fraction:
        digits = fraction + (micros or "")
        when += int(digits) / 10.0 ** len(digits)
    return when, year


@lru_cache(maxsize=1024)
def _read_date(before: str, behind: str) -> tuple[int, bool]:
    """Return the second at which the day begins, from what stands before and behind the time of day."""
    year, month, day = _read_day(before.rstrip("T _-"))
    last = behind.split(" ")[-1]
    if year is None and len(last) == 4 and last.isdigit():
        year = int(last)
    # Day by day from the first of the month: the 30th of February is no error, it is the 2nd of March.
    days = date(year or 1970, month, 1).toordinal() + day - 1 - _EPOCH
    return days * 86400 - _read_offset(behind), year is not None


def _read_day(text: str) -> tuple[int | None, int, int]:
    if found := _YEAR_FIRST.fullmatch(text):
        return int(found[1]), int(found[2]), int(found[3])
    if found := _MONTH_FIRST.fullmatch(text):
        year = int(found[3]) if found[3] else None
        return (year + 2000 if year is not None and year < 100 else year), int(found[1]), int(found[2])
    if found := _NAMED_PARTS.fullmatch(text):
        return None, _MONTHS.index(found[1]) + 1, int(found[2])
    if found := _GLOG_PARTS.fullmatch(text):
        return (int(found[1]) if found[1] else None), int(found[2]), int(found[3])
    return None, 1, 1


def _read_offset(text: str) -> int:
    found = _OFFSET.search(text)
    if found is None:
        return 0
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return -seconds if found[1] == "-" else seconds
