from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from toolkit.errors import RecipeError, UsageError
from toolkit.model import Component, Contract, Recipe
from toolkit.recipe import load_recipe, recipe_names, schema_reference
from toolkit.sources.wheel import Base

WHOLE = """\
schema = 1
description = "an example"

[target]
python = ["cp310", "cp311"]
platforms = ["manylinux_2_28_x86_64"]
torch = "2.13.0"

[[component]]
name = "torch_npu"
series = "torch_npu/2.13"

[component.base]
kind = "wheel"
distribution = "torch_npu"
version = "2.13.0"

[env]
TORCHINDUCTOR_NPU_BACKEND = "dvm"

[verify]
checks = ["origins", "manifest"]
"""


class OtherBase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second kind of base, known to these tests only."""

    kind: Literal["other"]
    commit: str

    @property
    def identity(self) -> str:
        return self.commit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    return Path("recipes")


def load(name: str = "x", *folders: str) -> Recipe:
    return load_recipe(
        name,
        folders=[Path(folder) for folder in folders or ("recipes",)],
        base_types={"wheel": Base, "other": OtherBase},
        known_series=["torch_npu/2.12", "torch_npu/2.13", "torch_npu/2.13-triton"],
        known_checks=["origins", "manifest", "dvm-backend"],
        diagnostic_series=["torch_npu/2.13-triton"],
    )


def write(text: str, name: str = "x", folder: str = "recipes") -> Path:
    path = Path(folder) / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(text: str) -> list[str]:
    write(text)
    with pytest.raises(RecipeError) as caught:
        load()
    return list(caught.value.details)


def changed(old: str, new: str) -> str:
    assert WHOLE.count(old) == 1
    return WHOLE.replace(old, new)


def test_a_whole_recipe_becomes_its_value() -> None:
    path = write(WHOLE)
    assert load() == Recipe(
        name="x",
        description="an example",
        contract=Contract(
            python_tags=("cp310", "cp311"), platforms=("manylinux_2_28_x86_64",), torch="2.13.0", cann=None, soc=()
        ),
        components=(
            Component(
                name="torch_npu",
                import_name="torch_npu",
                base=Base(kind="wheel", distribution="torch_npu", version="2.13.0"),
                series="torch_npu/2.13",
                accept_upstream=(),
            ),
        ),
        env={"TORCHINDUCTOR_NPU_BACKEND": "dvm"},
        checks=("origins", "manifest"),
        files=(path,),
    )


def test_the_optional_keys_are_taken() -> None:
    text = changed('torch = "2.13.0"', 'torch = "2.13.0+cpu"\ncann = "9.1"\nsoc = ["Ascend910B3"]')
    text = text.replace('name = "torch_npu"', 'name = "npu"\nimport_name = "torch_npu"\naccept_upstream = ["0001-a"]')
    write(text)
    recipe = load()
    assert (recipe.contract.torch, recipe.contract.cann, recipe.contract.soc) == ("2.13.0+cpu", "9.1", ("Ascend910B3",))
    component = recipe.components[0]
    assert (component.name, component.import_name, component.accept_upstream) == ("npu", "torch_npu", ("0001-a",))


def test_the_first_folder_that_has_a_name_wins() -> None:
    write(WHOLE)
    write(changed("an example", "mine"), folder="own")
    assert load("x", "own", "recipes").description == "mine"


def test_a_path_is_taken_as_it_is() -> None:
    write(WHOLE, folder="elsewhere")
    assert load("elsewhere/x.toml").files == (Path("elsewhere/x.toml"),)


def test_recipes_are_listed_once_and_in_order() -> None:
    for name, folder in (("b", "recipes"), ("a", "recipes"), ("a", "own")):
        write("", name, folder)
    assert recipe_names([Path("own"), Path("recipes"), Path("absent")]) == ["a", "b"]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    write(WHOLE, "dsv4-dvm")
    with pytest.raises(UsageError) as caught:
        load("dsv4-dwm")
    assert caught.value.message == "there is no recipe 'dsv4-dwm'; did you mean 'dsv4-dvm'?"
    assert caught.value.hint == "known recipes: dsv4-dvm"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match=re.escape("there is no recipe file 'recipes/none.toml'")):
        load("recipes/none.toml")


def test_all_faults_are_reported_at_once_with_their_lines() -> None:
    text = WHOLE
    for old, new in (
        ('description = "an example"', 'descripton = "an example"'),
        ('"cp311"]', '"cp39"]'),
        ('series = "torch_npu/2.13"', 'series = "torch_npu/2.31"\nimport_name = 3'),
        ('version = "2.13.0"\n\n[env]', 'verison = "2.13.0"\n\n[env]\nLD_PRELOAD = "x.so"'),
        ('"origins", "manifest"', '"orgins", "manifest"'),
    ):
        text = text.replace(old, new)
    write(text)
    with pytest.raises(RecipeError) as caught:
        load()
    assert caught.value.message == "recipe 'x' has 9 faults"
    assert list(caught.value.details) == [
        "recipes/x.toml:2: descripton: unknown key; did you mean 'description'?",
        "recipes/x.toml:5: target.python[1]: 'cp39' is not a CPython tag from cp310 on, not free-threaded, "
        "such as 'cp312'",
        "recipes/x.toml:11: component[0].series: unknown series 'torch_npu/2.31'; did you mean 'torch_npu/2.13'?",
        "recipes/x.toml:12: component[0].import_name: expected string, got integer",
        "recipes/x.toml:17: component[0].base.verison: unknown key; did you mean 'version'?",
        "recipes/x.toml:20: env.LD_PRELOAD: the toolkit itself sets or clears this variable",
        "recipes/x.toml:24: verify.checks[0]: unknown check 'orgins'; did you mean 'origins'?",
        "recipes/x.toml: description: missing key",
        "recipes/x.toml:14: component[0].base.version: missing key",
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param("schema = 1", "schema = 2", "x.toml:1: schema: 2 is not one of 1", id="schema of another time"),
        pytest.param("schema = 1", "", "x.toml: schema: missing key", id="no schema"),
        pytest.param('"2.13.0"\n\n[[', "2.13\n\n[[", "x.toml:7: target.torch: expected string, got float", id="float"),
        pytest.param(
            'torch = "2.13.0"\n\n[[', 'torch = "2.13.0.0-1"\n\n[[',
            "x.toml:7: target.torch: '2.13.0.0-1' is not a version in PEP 440 normal form, such as '2.13.0'",
            id="version not normal",
        ),
        pytest.param(
            'python = ["cp310", "cp311"]', "python = []",
            "x.toml:5: target.python: expected array of length >= 1", id="no interpreter",
        ),
        pytest.param(
            '"cp311"', '"cp313t"',
            "x.toml:5: target.python[1]: 'cp313t' is not a CPython tag from cp310 on, not free-threaded, "
            "such as 'cp312'",
            id="free-threaded",
        ),
        pytest.param('"cp311"', '"cp310"', "x.toml:5: target.python: 'cp310' stands 2 times", id="tag twice"),
        pytest.param(
            '"manylinux_2_28_x86_64"', '"linux_x86_64"',
            "x.toml:6: target.platforms[0]: 'linux_x86_64' is not a manylinux platform tag for x86_64 or aarch64, "
            "such as 'manylinux_2_28_x86_64'",
            id="platform",
        ),
        pytest.param(
            'name = "torch_npu"', 'name = "../torch_npu"',
            "x.toml:10: component[0].name: '../torch_npu' is not a name of letters, digits and `_`, "
            "such as 'torch_npu'",
            id="name that leaves its folder",
        ),
        pytest.param('name = "torch_npu"\n', "", "x.toml:9: component[0].name: missing key", id="nameless"),
        pytest.param(
            'kind = "wheel"', 'kind = "weel"',
            "x.toml:14: component[0].base.kind: unknown kind 'weel'; expected one of 'other', 'wheel'", id="kind",
        ),
        pytest.param(
            'kind = "wheel"', "kind = [1]",
            "x.toml:14: component[0].base.kind: unknown kind [1]; expected one of 'other', 'wheel'", id="kind's type",
        ),
        pytest.param('kind = "wheel"\n', "", "x.toml:13: component[0].base.kind: missing key", id="no kind"),
        pytest.param(
            'distribution = "torch_npu"', 'distribution = "-r evil"',
            "x.toml:15: component[0].base.distribution: '-r evil' is not a distribution's name, such as 'torch_npu'",
            id="option for a name",
        ),
        pytest.param(
            '= "dvm"', '= "a\\nb"',
            "x.toml:19: env.TORCHINDUCTOR_NPU_BACKEND: the value has a line break or another control character",
            id="line break in a value",
        ),
        pytest.param(
            "TORCHINDUCTOR_NPU_BACKEND", '"A B"', "x.toml:18: env.A B: 'A B' is not a variable's name", id="variable"
        ),
        pytest.param('"dvm"', "1", "x.toml:19: env.TORCHINDUCTOR_NPU_BACKEND: expected string, got integer", id="env"),
        pytest.param('"manifest"', '"origins"', "x.toml:22: verify.checks: 'origins' stands 2 times", id="check twice"),
    ],
)  # fmt: skip
def test_each_fault_is_described(old: str, new: str, fault: str) -> None:
    assert faults_of(changed(old, new)) == [f"recipes/{fault}"]


@pytest.mark.parametrize(
    "name",
    ["PYTHONPATH", "PYTHONHASHSEED", "LD_PRELOAD", "LD_LIBRARY_PATH", "GIT_DIR", "PIP_INDEX_URL", "TOOLKIT_STORE",
     "PATH", "HOME", "BASH_ENV", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"],
)  # fmt: skip
def test_the_toolkits_own_variables_are_refused(name: str) -> None:
    text = changed("TORCHINDUCTOR_NPU_BACKEND", name)
    assert faults_of(text) == [f"recipes/x.toml:19: env.{name}: the toolkit itself sets or clears this variable"]


def test_a_component_stands_once() -> None:
    second = '[[component]]\nname = "torch_npu"\nbase = { kind = "other", commit = "c0ffee" }\n\n[env]'
    assert faults_of(changed("[env]", second)) == [
        "recipes/x.toml:19: component[1].name: component 'torch_npu' stands twice"
    ]


def test_a_component_that_is_no_table_does_not_hide_other_faults() -> None:
    text = 'schema = 1\ndescription = "d"\ncomponent = 3\ntarget = "t"\nverify = []\nenv = 1\nnone = 0\n'
    assert faults_of(text) == [
        "recipes/x.toml:3: component: expected array, got integer",
        "recipes/x.toml:4: target: expected table, got string",
        "recipes/x.toml:5: verify: expected table, got array",
        "recipes/x.toml:6: env: expected table, got integer",
        "recipes/x.toml:7: none: unknown key",
    ]


def test_an_empty_file_lacks_every_required_key() -> None:
    assert faults_of("") == [
        f"recipes/x.toml: {key}: missing key" for key in ("schema", "description", "target", "component", "verify")
    ]


def test_invalid_toml_is_placed_by_line_and_column() -> None:
    assert faults_of("schema = 1\ndescription = \n") == ["recipes/x.toml:2:15: invalid TOML: Invalid value"]


def test_a_file_that_is_not_utf8_is_placed_by_line() -> None:
    Path("recipes/x.toml").write_bytes(b'schema = 1\ndescription = "\xff"\n')
    with pytest.raises(RecipeError) as caught:
        load()
    assert list(caught.value.details) == ["recipes/x.toml:2: not UTF-8"]


def test_a_files_name_must_do_for_a_folder() -> None:
    write(WHOLE, "my recipe")
    with pytest.raises(RecipeError) as caught:
        load("recipes/my recipe.toml")
    assert list(caught.value.details) == [
        "recipes/my recipe.toml: name of the file: 'my recipe' is not a plain file name without its ending"
    ]


def test_a_child_merges_tables_and_components_and_replaces_arrays() -> None:
    parent = write(WHOLE, "parent")
    child = write(
        """\
schema = 1
extends = "parent"

[target]
python = ["cp312"]

[[component]]
name = "torch_npu"
[component.base]
version = "2.14.0"

[[component]]
name = "more"
base = { kind = "other", commit = "c0ffee" }

[env]
MORE = "1"
"""
    )
    recipe = load()
    assert recipe.description == "an example"
    assert recipe.contract.python_tags == ("cp312",)
    assert recipe.contract.torch == "2.13.0"
    assert [component.base.identity for component in recipe.components] == ["torch_npu==2.14.0", "c0ffee"]
    assert recipe.components[0].series == "torch_npu/2.13"
    assert recipe.env == {"TORCHINDUCTOR_NPU_BACKEND": "dvm", "MORE": "1"}
    assert recipe.files == (child, parent)


def test_a_base_of_another_kind_replaces_the_whole_table() -> None:
    write(WHOLE, "parent")
    write(
        'schema = 1\nextends = "parent"\n[[component]]\nname = "torch_npu"\n'
        'base = { kind = "other", commit = "c0ffee" }\n'
    )
    assert load().components[0].base == OtherBase(kind="other", commit="c0ffee")


def test_faults_of_a_parent_are_reported_at_the_parent() -> None:
    write(changed('version = "2.13.0"\n', "").replace('"origins"', '"orgins"'), "parent")
    write(
        'schema = 1\nextends = "parent"\n[[component]]\nname = "more"\n[[component]]\nname = "torch_npu"\nserie = "x"\n'
    )
    with pytest.raises(RecipeError) as caught:
        load()
    assert list(caught.value.details) == [
        "recipes/x.toml:7: component[1].serie: unknown key; did you mean 'series'?",
        "recipes/parent.toml:21: verify.checks[0]: unknown check 'orgins'; did you mean 'origins'?",
        "recipes/x.toml:3: component[0].base: missing key",
        "recipes/x.toml:5: component[1].base.version: missing key",
    ]


def test_a_missing_parent_is_reported_with_the_childs_own_faults() -> None:
    write(WHOLE, "parent")
    assert faults_of('schema = 1\nextends = "parnet"\nnone = 0\n') == [
        "recipes/x.toml:3: none: unknown key",
        "recipes/x.toml:2: extends: there is no recipe 'parnet'; did you mean 'parent'?",
    ]


def test_recipes_that_extend_each_other_are_refused() -> None:
    write('schema = 1\nextends = "x"\n', "a")
    assert faults_of('schema = 1\nextends = "a"\n') == [
        "recipes/a.toml:2: extends: recipes extend each other: x -> a -> x"
    ]


def test_a_parent_may_not_be_named_by_a_path() -> None:
    write("not read", folder=".")
    assert faults_of(f'extends = "../x"\n{WHOLE}') == [
        "recipes/x.toml:1: extends: '../x' is not a plain file name without its ending"
    ]


DIAGNOSTIC = WHOLE.replace("schema = 1\n", 'schema = 1\ndiagnostic = "to narrow a fault down"\n')
NARROWING = 'series = "torch_npu/2.13-triton"'


def test_a_recipe_for_diagnosis_says_what_for_and_may_extend_one_for_work() -> None:
    write(WHOLE, "parent")
    write(f"""schema = 1
extends = "parent"
description = "a narrower one"
diagnostic = "to narrow a fault down"
[[component]]
name = "torch_npu"
{NARROWING}
""")
    recipe = load()

    assert (recipe.diagnostic, recipe.components[0].series) == ("to narrow a fault down", "torch_npu/2.13-triton")
    assert load("parent").diagnostic == ""


def test_no_recipe_extends_one_for_diagnosis() -> None:
    write(DIAGNOSTIC, "parent")
    what = (
        "extends: recipe 'parent' is for diagnosis only (to narrow a fault down), which no other recipe may extend; "
        "extend what it extends, or start from a recipe that is for work"
    )

    assert faults_of('schema = 1\nextends = "parent"\n') == [f"recipes/x.toml:2: {what}"]
    assert faults_of('schema = 1\ndiagnostic = "too"\nextends = "parent"\n') == [f"recipes/x.toml:3: {what}"]


def test_a_grandparent_for_diagnosis_is_found_where_it_is_extended() -> None:
    write(DIAGNOSTIC, "grandparent")
    write('schema = 1\nextends = "grandparent"\n', "parent")

    (fault,) = faults_of('schema = 1\nextends = "parent"\n')
    assert fault.startswith("recipes/parent.toml:2: extends: recipe 'grandparent' is for diagnosis only")


def test_a_series_for_diagnosis_is_for_recipes_that_say_so() -> None:
    assert faults_of(WHOLE.replace('series = "torch_npu/2.13"', NARROWING)) == [
        "recipes/x.toml:11: component[0].series: series 'torch_npu/2.13-triton' only narrows faults down: expected "
        '`diagnostic = "<what an overlay of it is for>"` at the top of the recipe'
    ]
    write(DIAGNOSTIC.replace('series = "torch_npu/2.13"', NARROWING))
    assert load().components[0].series == "torch_npu/2.13-triton"


@pytest.mark.parametrize("purpose", ["", "  ", "one\\nline"], ids=["empty", "blank", "two lines"])
def test_what_a_recipe_for_diagnosis_is_for_is_one_line(purpose: str) -> None:
    assert faults_of(WHOLE.replace("schema = 1\n", f'schema = 1\ndiagnostic = "{purpose}"\n')) == [
        "recipes/x.toml:2: diagnostic: expected one line that says what an overlay of the recipe is for"
    ]


def test_each_file_says_its_schema_and_names_its_components() -> None:
    write(WHOLE, "parent")
    assert faults_of('extends = "parent"\n[[component]]\nseries = "torch_npu/2.13"\n') == [
        "recipes/x.toml: schema: missing key",
        "recipes/x.toml:2: component[0].name: missing key",
        "recipes/x.toml:2: component[0].base: missing key",
    ]


def test_a_base_without_a_kind_is_held_to_the_kind_that_it_inherits() -> None:
    write(WHOLE, "parent")
    text = 'schema = 1\nextends = "parent"\n[[component]]\nname = "torch_npu"\n[component.base]\nverison = "2.14.0"\n'
    assert faults_of(text) == ["recipes/x.toml:6: component[0].base.verison: unknown key; did you mean 'version'?"]


def test_a_parent_that_is_not_toml_is_reported_at_the_parent() -> None:
    write("=", "a")
    assert faults_of('schema = 1\nextends = "a"\n') == ["recipes/a.toml:1:1: invalid TOML: Invalid statement"]


def test_the_reference_has_every_key_of_every_kind() -> None:
    reference = schema_reference({"wheel": Base, "other": OtherBase})
    titles = [line for line in reference.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Top level", "## `[target]`", "## `[[component]]`", "## `[component.base]` of kind `other`",
        "## `[component.base]` of kind `wheel`", "## `[verify]`", "## `[evidence]`", "## `[[evidence.keep]]`",
    ]  # fmt: skip
    assert "| `commit` | string | required |  |  |" in reference
    assert (
        '| `python` | array of strings | required | the interpreters that the lock covers | `["cp311", "cp312"]` |'
        in reference
    )
    assert (
        '| `cann` | a CANN version or the start of one | none | the CANN that a device must have | `"9.1"` |'
        in reference
    )
