from __future__ import annotations

from toolkit.sysroot.stubs import write_stubs


def test_each_name_gets_one_weak_entry_in_order() -> None:
    lines = write_stubs(["aclB", "aclA", "aclB"]).splitlines()
    assert lines[-2:] == ['ENTRY(0, "aclA")', 'ENTRY(1, "aclB")']


def test_cxx_tables_are_data() -> None:
    assert write_stubs(["_ZTVN2ge5GraphE"]).splitlines()[-1] == 'TABLE(0, "_ZTVN2ge5GraphE")'
