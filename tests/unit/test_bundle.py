"""Bundles: what is exported comes back as it was, and what was changed on the way is refused."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.limits import file_size_limit
from toolkit.bundle import INDEX, export_bundle, import_bundle
from toolkit.errors import ArchiveError, HashMismatchError, StoreError, ToolkitError
from toolkit.files import sha256_bytes
from toolkit.model import Key, Wheel, make_key
from toolkit.store import Store
from toolkit.wheels.stored import RECORD_FILE, StoredWheel, write_wheel_record

KEY = make_key([("base", "wheel:aa"), ("platform", "manylinux_2_28_x86_64")])
BASE = b"the base's bytes" * 100
BASE_KEY = sha256_bytes(BASE)
BASE_FILE = "sample-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
WHEEL = b"the patched wheel's bytes" * 100
WHEEL_FILE = "sample-1.0+p1.kaabbccdd-cp311-cp311-manylinux_2_28_x86_64.whl"
BASE_MEMBER = f"entries/base/{BASE_KEY}/{BASE_FILE}"
WHEEL_MEMBER = f"entries/wheel/{KEY.digest}/{WHEEL_FILE}"
RECORD_MEMBER = f"entries/wheel/{KEY.digest}/{RECORD_FILE}"
MEMBERS = [INDEX, BASE_MEMBER, WHEEL_MEMBER, RECORD_MEMBER, "manifest.json", "recipe.lock"]
ENTRIES = [("base", BASE_KEY), ("wheel", KEY.digest)]
AGAIN = "export it again"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Make a store with a base and a wheel."""
    store = Store(tmp_path / "store")
    store.obtain("base", BASE_KEY, lambda folder: _write(folder / BASE_FILE, BASE))
    store.obtain("wheel", KEY.digest, lambda folder: make_wheel_entry(folder, KEY))
    return store


@pytest.fixture
def file(store: Store, tmp_path: Path) -> Path:
    """Export that store."""
    return export(store, tmp_path / "bundle.tar")


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """Return the store of another machine."""
    return Store(tmp_path / "other")


def make_wheel_entry(folder: Path, key: Key) -> None:
    _write(folder / WHEEL_FILE, WHEEL)
    wheel = Wheel(
        component="sample",
        distribution="sample",
        import_name="sample",
        version="1.0+p1.kaabbccdd",
        path=folder / WHEEL_FILE,
        sha256=sha256_bytes(WHEEL),
        key=key.digest,
        patches=("0001-a",),
    )
    write_wheel_record(StoredWheel(wheel=wheel, key=key, applied=()), folder)


def export(store: Store, file: Path, **changes: Any) -> Path:
    extra = {"recipe.lock": _write(store.root / "l", b"the lock"), "manifest.json": _write(store.root / "m", b"{}")}
    export_bundle(store, file, **{"recipe": "r", "key": "k", "entries": ENTRIES, "extra": extra, **changes})
    return file


def contents(store: Store) -> dict[str, bytes]:
    """Read every file of every kind."""
    paths = [path for kind in ("base", "wheel") for path in (store.root / kind).rglob("*") if path.is_file()]
    return {path.relative_to(store.root).as_posix(): path.read_bytes() for path in paths}


def _write(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


# --- there and back --------------------------------------------------------------------------------------------


def test_entries_come_back_as_they_were(store: Store, file: Path, other: Store) -> None:
    index, new = import_bundle(other, file)

    assert (index.recipe, index.key, new) == ("r", "k", 2)
    assert [(entry.kind, entry.key) for entry in index.entries] == ENTRIES
    assert contents(other) == contents(store)
    assert len(contents(other)) == 3


def test_a_bundle_begins_with_its_index_and_holds_what_people_want_to_read(file: Path) -> None:
    with tarfile.open(file) as archive:
        assert archive.getnames() == MEMBERS
        lock = archive.extractfile("recipe.lock")
        assert lock is not None
        assert lock.read() == b"the lock"


def test_the_index_names_every_other_member_with_its_hash_and_size(file: Path) -> None:
    with tarfile.open(file) as archive:
        raw = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    index = json.loads(raw.pop(INDEX))
    named = {f"entries/{e['kind']}/{e['key']}/{f['path']}": f for e in index["entries"] for f in e["files"]}
    named |= {item["path"]: item for item in index["extra"]}

    assert {name: (item["sha256"], item["size"]) for name, item in named.items()} == {
        name: (sha256_bytes(content), len(content)) for name, content in raw.items()
    }


def test_equal_stores_give_equal_bundles(store: Store, file: Path, other: Store, tmp_path: Path) -> None:
    import_bundle(other, file)

    assert export(other, tmp_path / "again.tar").read_bytes() == file.read_bytes()


def test_importing_twice_brings_nothing_new(file: Path, other: Store) -> None:
    import_bundle(other, file)
    before = contents(other)

    _, new = import_bundle(other, file)

    assert new == 0
    assert contents(other) == before


def test_an_entry_that_is_there_already_is_left_alone(file: Path, other: Store) -> None:
    other.obtain("base", BASE_KEY, lambda folder: _write(folder / "mine", b"mine"))

    _, new = import_bundle(other, file)

    assert new == 1
    assert contents(other)[f"base/{BASE_KEY}/mine"] == b"mine"


def test_an_entry_that_is_named_twice_is_exported_once(store: Store, tmp_path: Path, other: Store) -> None:
    file = export(store, tmp_path / "twice.tar", entries=[*ENTRIES, ENTRIES[0]])

    assert import_bundle(other, file)[1] == 2


def test_exporting_replaces_a_file_and_makes_its_folder(store: Store, tmp_path: Path) -> None:
    _write(tmp_path / "bundle.tar", b"old")

    assert tarfile.is_tarfile(export(store, tmp_path / "bundle.tar"))
    assert tarfile.is_tarfile(export(store, tmp_path / "new" / "folder" / "bundle.tar"))
    assert not list(tmp_path.rglob(".part-*"))


def test_an_entry_that_the_store_lacks_is_named(store: Store, tmp_path: Path) -> None:
    _write(tmp_path / "bundle.tar", b"old")

    with pytest.raises(StoreError) as caught:
        export(store, tmp_path / "bundle.tar", entries=[("wheel", "gone")])

    assert caught.value.message == "the store has no wheel gone"
    assert caught.value.hint == "build the recipe first: toolkit build --recipe NAME"
    assert (tmp_path / "bundle.tar").read_bytes() == b"old"


def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    _write(folder / "bundle.tar", b"old")

    with file_size_limit(4000), pytest.raises(OSError, match="File too large"):
        export(store, folder / "bundle.tar")

    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("bundle.tar", b"old")]


# --- what was changed on the way -------------------------------------------------------------------------------

Members = dict[str, tuple[tarfile.TarInfo, bytes]]


def rewrite(file: Path, change: Callable[[Members], object]) -> None:
    """Change a bundle's members; the archive itself is well-formed again afterwards."""
    members: Members = {}
    with tarfile.open(file) as archive:
        for member in archive:
            members[member.name] = (member, archive.extractfile(member).read())  # type: ignore[union-attr]
    change(members)
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for member, raw in members.values():
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))


def rewrite_index(file: Path, change: Callable[[dict], object]) -> None:
    def rewrite_it(members: Members) -> None:
        member, raw = members[INDEX]
        index = json.loads(raw)
        change(index)
        members[INDEX] = (member, json.dumps(index).encode())

    rewrite(file, rewrite_it)


def set_content(name: str, raw: bytes) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members[name] = (members[name][0], raw)

    return change


def refused(other: Store, file: Path) -> ToolkitError:
    """Import and return the error; nothing with a final name may be left but whole entries."""
    with pytest.raises(ToolkitError) as caught:
        import_bundle(other, file)
    assert not list(other.root.rglob(".part-*"))
    return caught.value


@pytest.mark.parametrize("name", MEMBERS[1:])
def test_a_flipped_byte_in_any_member_is_a_hash_mismatch(file: Path, other: Store, name: str) -> None:
    def flip(members: Members) -> None:
        member, raw = members[name]
        found.append(raw[:-1] + bytes([raw[-1] ^ 1]))
        expected.append(raw)
        members[name] = (member, found[0])

    found: list[bytes] = []
    expected: list[bytes] = []
    rewrite(file, flip)

    fault = refused(other, file)

    assert isinstance(fault, HashMismatchError)
    assert fault.message == (
        f"{name} from {file} has sha256 {sha256_bytes(found[0])}, expected {sha256_bytes(expected[0])}"
    )
    assert fault.hint == AGAIN
    assert not {path.split("/")[1] for path in contents(other)}.intersection(name.split("/"))


def test_a_byte_changed_anywhere_is_refused_or_does_no_harm(store: Store, file: Path, tmp_path: Path) -> None:
    raw, good, rng = file.read_bytes(), contents(store), random.Random(20260504)
    for round_ in range(150):
        spoiled = bytearray(raw)
        place = rng.randrange(len(raw))
        spoiled[place] ^= 1 << rng.randrange(8)
        file.write_bytes(spoiled)
        other = Store(tmp_path / f"other-{round_}")
        try:
            import_bundle(other, file)
        except (ArchiveError, HashMismatchError):
            assert contents(other).items() <= good.items(), place
        else:
            assert contents(other) == good, place


def test_a_bundle_cut_short_anywhere_is_refused_unless_only_padding_is_lost(
    store: Store, file: Path, tmp_path: Path
) -> None:
    raw, good = file.read_bytes(), contents(store)
    with tarfile.open(file) as archive:
        last = archive.getmembers()[-1]
    end = last.offset_data + 512  # The last member is small: one block with its padding.
    for length in range(0, len(raw), 301):
        file.write_bytes(raw[:length])
        other = Store(tmp_path / f"other-{length}")
        if length < end:
            assert isinstance(refused(other, file), ArchiveError), length
        else:
            import_bundle(other, file)
            assert contents(other) == good, length


@pytest.mark.parametrize(
    ("length", "message"),
    [
        pytest.param(0, "{file} is no whole bundle: empty file", id="nothing"),
        pytest.param(700, "{file} is no whole bundle: unexpected end of data", id="inside the index"),
        pytest.param(4000, "{file} is no whole bundle: unexpected end of data", id="inside a member"),
    ],
)
def test_a_cut_bundle_says_so(file: Path, other: Store, length: int, message: str) -> None:
    file.write_bytes(file.read_bytes()[:length])

    fault = refused(other, file)

    assert (fault.message, fault.hint) == (message.format(file=file), AGAIN)
    assert contents(other) == {}


@pytest.mark.parametrize("raw", [b"not a tar archive" * 100, b"\x1f\x8b\x08" + b"x" * 600], ids=["text", "gzip"])
def test_what_is_no_archive_is_refused(tmp_path: Path, other: Store, raw: bytes) -> None:
    fault = refused(other, _write(tmp_path / "x.tar", raw))

    assert isinstance(fault, ArchiveError)
    assert fault.message.startswith(f"{tmp_path}/x.tar is no whole bundle: ")


@pytest.mark.parametrize("name", MEMBERS[1:])
def test_a_missing_member_is_named(file: Path, other: Store, name: str) -> None:
    rewrite(file, lambda members: members.pop(name))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert (fault.message, fault.hint) == (f"{file} lacks {name}, which its index names", AGAIN)
    assert contents(other) == {}


def test_an_archive_without_an_index_is_no_bundle(file: Path, other: Store) -> None:
    rewrite(file, lambda members: members.pop(INDEX))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert (fault.message, fault.hint) == (
        f"{file} does not begin with {INDEX}", "expected a file of `toolkit cache export`",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["../escape", "entries/../../escape", "/absolute", "more"])
def test_a_member_that_the_index_does_not_name_is_refused(file: Path, other: Store, name: str) -> None:
    rewrite(file, lambda members: members.update({name: (tarfile.TarInfo(name), b"x")}))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{file} has a member {name!r} that its index does not name"
    assert contents(other) == {}


def test_a_member_that_is_there_twice_is_refused(file: Path, other: Store) -> None:
    rewrite(file, lambda members: members.update(again=members[BASE_MEMBER]))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{file} has {BASE_MEMBER} more than once"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE],
                         ids=["symlink", "hard link", "folder", "fifo"])  # fmt: skip
def test_a_member_that_is_no_regular_file_is_refused(file: Path, other: Store, kind: bytes) -> None:
    def change(members: Members) -> None:
        member, _ = members[BASE_MEMBER]
        member.type = kind
        member.linkname = "recipe.lock"
        members[BASE_MEMBER] = (member, b"")

    rewrite(file, change)

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{BASE_MEMBER} in {file} is not a regular file"


def test_a_member_of_another_size_is_refused_before_it_is_read(file: Path, other: Store) -> None:
    rewrite(file, set_content(BASE_MEMBER, BASE * 2))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{BASE_MEMBER} in {file} has {2 * len(BASE)} bytes, its index says {len(BASE)}"


# --- an index that is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [{}, {"later": True}], ids=["same members", "members of a later schema"])
def test_an_unknown_schema_is_refused(file: Path, other: Store, extra: dict[str, object]) -> None:
    rewrite_index(file, lambda index: index.update(schema=2, **extra))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert (fault.message, fault.hint) == (f"{file} has schema 2, this toolkit reads 1", AGAIN)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(lambda index: index.pop("schema"), "Object missing required field `schema`", id="no schema"),
        pytest.param(lambda index: index.pop("entries"), "Object missing required field `entries`", id="no entries"),
        pytest.param(lambda index: index.update(more=1), "Object contains unknown field `more`", id="a member more"),
        pytest.param(lambda index: index.update(key=1), "Expected `str`, got `int` - at `$.key`", id="another type"),
    ],
)
def test_an_index_of_another_form_is_refused(
    file: Path, other: Store, change: Callable[[dict], object], why: str
) -> None:
    rewrite_index(file, change)

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{INDEX} in {file} cannot be read: {why}"


@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"x":' + b"[" * 100_000], ids=["cut short", "not text", "too deep"])
def test_an_index_that_is_no_json_is_refused(file: Path, other: Store, raw: bytes) -> None:
    rewrite(file, set_content(INDEX, raw))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message.startswith(f"{INDEX} in {file} cannot be read: ")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("../x", "'../x' leaves its folder through '..'", id="above"),
        pytest.param("..", "'..' leaves its folder through '..'", id="the folder above"),
        pytest.param("/x", "'/x' is not a relative POSIX path", id="absolute"),
        pytest.param("a/b", "'a/b' is not a plain file name", id="in a folder"),
        pytest.param("a/", "'a/' is not a plain file name", id="a folder"),
        pytest.param("", "'' is not a path", id="empty"),
    ],
)
def test_an_index_with_an_unsafe_file_is_refused(file: Path, other: Store, path: str, why: str) -> None:
    rewrite_index(file, lambda index: index["entries"][0]["files"][0].update(path=path))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{file} has an unsafe member: {why}"


@pytest.mark.parametrize(
    ("kind", "key"),
    [("locks", KEY.digest), ("..", KEY.digest), ("base", "../../x"), ("base", ""), ("base", BASE_KEY.upper())],
    ids=["the locks", "the folder above", "a key that leaves", "no key", "a key in capitals"],
)
def test_an_index_with_another_entry_is_refused(file: Path, other: Store, kind: str, key: str) -> None:
    rewrite_index(file, lambda index: index["entries"][0].update(kind=kind, key=key))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{file} names an entry {kind}/{key}, expected base or native or wheel and a sha256"


def test_an_index_that_names_a_file_twice_is_refused(file: Path, other: Store) -> None:
    rewrite_index(file, lambda index: index["entries"][0]["files"].append(index["entries"][0]["files"][0]))

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"{file} has {BASE_MEMBER} more than once"


# --- entries that are not what their keys promise --------------------------------------------------------------


def test_a_base_whose_key_is_not_its_hash_is_refused(tmp_path: Path, other: Store) -> None:
    wrong = Store(tmp_path / "wrong")
    wrong.obtain("base", BASE_KEY, lambda folder: _write(folder / BASE_FILE, b"other bytes"))
    file = export(wrong, tmp_path / "wrong.tar", entries=[("base", BASE_KEY)])

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"base {BASE_KEY} in {file} is not the file with that hash"
    assert contents(other) == {}


def test_a_base_with_a_second_file_is_refused(tmp_path: Path, other: Store) -> None:
    wrong = Store(tmp_path / "wrong")
    entry = wrong.obtain("base", BASE_KEY, lambda folder: _write(folder / BASE_FILE, BASE))
    _write(entry / "more", b"more")

    fault = refused(other, export(wrong, tmp_path / "wrong.tar", entries=[("base", BASE_KEY)]))

    assert fault.message == f"base {BASE_KEY} in {tmp_path}/wrong.tar is not the file with that hash"


def test_a_wheel_under_the_key_of_another_is_refused(tmp_path: Path, other: Store) -> None:
    wrong, key = Store(tmp_path / "wrong"), make_key([("base", "wheel:bb")])
    wrong.obtain("wheel", KEY.digest, lambda folder: make_wheel_entry(folder, key))
    file = export(wrong, tmp_path / "wrong.tar", entries=[("wheel", KEY.digest)])

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message == f"wheel {KEY.digest} in {file} is not what its record says"


def test_a_wheel_with_a_second_file_is_refused(store: Store, tmp_path: Path, other: Store) -> None:
    _write(store.root / "wheel" / KEY.digest / "more", b"more")

    fault = refused(other, export(store, tmp_path / "more.tar"))

    assert fault.message == f"wheel {KEY.digest} in {tmp_path}/more.tar is not what its record says"
    assert set(contents(other)) == {f"base/{BASE_KEY}/{BASE_FILE}"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(lambda body: body.update(sha256="0" * 64),
                     f"{WHEEL_FILE} has sha256 {sha256_bytes(WHEEL)}, expected {'0' * 64}", id="another hash"),
        pytest.param(lambda body: body["key"]["inputs"].pop(), "its key is not the digest of its inputs",
                     id="an input less"),
        pytest.param(lambda body: body.update(file="../x"), "'../x' is missing", id="a file outside"),
        pytest.param(lambda body: body.update(schema=2), "its record has schema 2, expected 1", id="another schema"),
    ],
)  # fmt: skip
def test_a_wheel_with_a_wrong_record_is_refused(
    store: Store, tmp_path: Path, other: Store, change: Callable[[dict], object], why: str
) -> None:
    record = store.root / "wheel" / KEY.digest / RECORD_FILE
    body = json.loads(record.read_text())
    change(body)
    record.write_text(json.dumps(body))
    file = export(store, tmp_path / "wrong.tar", entries=[("wheel", KEY.digest)])

    fault = refused(other, file)

    assert isinstance(fault, ArchiveError)
    assert fault.message.startswith(f"wheel {KEY.digest} in {file} does not hold: ")
    assert fault.message.endswith(f" is damaged: {why}")
    assert contents(other) == {}
