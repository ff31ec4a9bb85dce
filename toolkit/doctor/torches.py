"""torch and torch_npu as training would import them: their versions, whether they belong together, whether whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from toolkit.doctor.asked import Asked
from toolkit.doctor.installed import Installed, damage_of, normalized, read_installed, value_in, version_in
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import current_overlay, how_to_activate
from toolkit.doctor.survey import Found, Survey
from toolkit.model import Interpreter, Observation

BACKEND = "TORCHINDUCTOR_NPU_BACKEND"
DVM_FOLDER = Path("_inductor", "dvm")
DVM = "dvm"
ANY_INTERPRETER = (".abi3.so",)
"""How extension modules end that many interpreters can load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A package that would be imported. `beside` are the distributions of its name that lie beside it, `own` the one of
    them that has its version; `told` is the one that `importlib.metadata` gives, None where there is none."""

    found: Found
    version: str
    own: Installed | None
    told: Installed | None
    beside: tuple[Installed, ...] = ()

    @property
    def place(self) -> Path:
        """Its folder."""
        return self.found.place


def examine_torch(asked: Asked, survey: Survey) -> list[Observation]:
    """Look at torch and torch_npu, each by itself and both together."""
    assert asked.interpreter is not None
    torch, npu = (package_of(name, asked, survey) for name in ("torch", "torch_npu"))
    observations = [_torch_version(torch, asked, asked.interpreter)]
    if torch is not None:
        observations += [*_metadata("torch", torch), *_compiled("torch", torch, survey)]
    observations += [_npu_version(npu, asked)]
    if npu is not None:
        observations += [
            *_metadata("torch_npu", npu),
            *_compiled("torch_npu", npu, survey),
            _dvm(npu, asked),
            *_whole(npu),
        ]
    if torch is not None and npu is not None:
        # A source tree that is not built says no version, which a line of its own tells.
        observations += [_match(torch, npu, asked.interpreter)] if npu.version else []
        observations += _build(torch, asked)
    return observations


def package_of(name: str, asked: Asked, survey: Survey) -> Package | None:
    """Return a package as it would be imported; None for what is not found, or only as a namespace."""
    found = survey.winners.get(name)
    if found is None or found.is_namespace:
        return None
    installed = read_installed(survey.path, asked.cwd, lambda one: one == normalized(name))
    beside = tuple(one for one in installed if one.site.resolve() == found.place.parent.resolve())
    says = version_in(found.place)
    own = next((one for one in beside if _is_same(one.version, says)), beside[0] if beside else None)
    told = installed[0] if installed else None
    named = own or (told if told is not None and _is_editable(told, found.place) else None)
    version = says or (named.version if named else "")
    return Package(found=found, version=version, own=own, told=told, beside=beside)


def _is_editable(told: Installed, place: Path) -> bool:
    """Whether a distribution is an editable install of the tree that a package is in; no other tells its version."""
    return bool(told.source) and place.resolve().is_relative_to(Path(told.source).resolve())


def match_fault(torch: str, npu: str, requires: Sequence[str]) -> str:
    """Say why a torch_npu does not belong to a torch; empty where it does.

    What its metadata requires decides where it names versions; else both must be of the same release, in which
    `.postN` and a local version (`+cpu`, `+gitf380339`) do not count.
    """
    try:
        has, is_for = Version(torch), Version(npu)
    except InvalidVersion as fault:
        return f"the versions cannot be compared: {fault}"
    wanted = _required_torch(requires)
    if wanted is not None and str(wanted.specifier):
        ok = wanted.specifier.contains(has, prereleases=True)
        return "" if ok else f"torch_npu {npu} requires {wanted}, found torch {torch}"
    if _release(has) != _release(is_for):
        return f"torch_npu {npu} is for torch {'.'.join(map(str, _release(is_for)))}, found torch {torch}"
    return ""


def _required_torch(requires: Sequence[str]) -> Requirement | None:
    for text in requires:
        try:
            one = Requirement(text)
        except InvalidRequirement:
            continue
        if normalized(one.name) == "torch" and (one.marker is None or one.marker.evaluate({"extra": ""})):
            return one
    return None


def _release(version: Version) -> tuple[int, ...]:
    return (*version.release, 0, 0)[:3]


# --- torch -------------------------------------------------------------------------------------------------------


def _torch_version(torch: Package | None, asked: Asked, interpreter: Interpreter) -> Observation:
    wanted = asked.wanted.contract.torch if asked.wanted else ""
    install = f"{interpreter.executable} -m pip install torch{f'=={wanted}' if wanted else ''}"
    if torch is None:
        return bad("torch.version", "no torch is found", install)
    seen = f"torch {torch.version or 'of no version'} in {torch.place}"
    found = torch.version if "+" in wanted else torch.version.partition("+")[0]
    if asked.wanted and found != wanted:
        return bad(
            "torch.version", f"{seen}; the recipe {asked.wanted.name} is for torch {wanted}",
            f"name another interpreter with --python, or {install}",
        )  # fmt: skip
    return good("torch.version", seen)


def _build(torch: Package, asked: Asked) -> Iterator[Observation]:
    """A torch for CUDA and torch_npu register the same allocator settings: torch_npu then aborts at import."""
    cuda = value_in(torch.place / "version.py", "cuda")
    if not cuda:
        yield good("torch.build", "torch is not a CUDA build")
        return
    say = bad if asked.environ.get("ASCEND_HOME_PATH") else doubtful
    yield say(
        "torch.build", f"torch is a build for CUDA {cuda}: torch_npu 2.12.0.post3 and later abort beside it "
        "(Duplicated key 'pinned_reserve_segment_size_mb')",
        f"install the CPU build, torch {torch.version.partition('+')[0]}+cpu; `toolkit run --host` works around it",
    )  # fmt: skip


# --- torch_npu ---------------------------------------------------------------------------------------------------


def _npu_version(npu: Package | None, asked: Asked) -> Observation:
    if npu is None:
        say = bad if asked.environ.get("ASCEND_HOME_PATH") else doubtful
        return say(
            "torch_npu.version", "no torch_npu is found: no overlay is active, and none is installed", _get_npu(asked)
        )
    commit = value_in(npu.place / "version.py", "git_version")
    of_commit = f" (commit {commit[:12]})" if commit else ""
    seen = f"torch_npu {npu.version or 'of no version'}{of_commit} in {npu.place}"
    wanted = _wanted_npu(asked)
    if asked.wanted and wanted and npu.version and npu.version.partition("+")[0] != wanted:
        return doubtful(
            "torch_npu.version", f"{seen}; the recipe {asked.wanted.name} is for {wanted}",
            "name the recipe that is for it with --recipe, or activate the overlay",
        )  # fmt: skip
    return good("torch_npu.version", seen)


def _get_npu(asked: Asked) -> str:
    """Say how a torch_npu would be found: by the overlay, which is built or is not."""
    if current_overlay(asked) is not None:
        return how_to_activate(asked)
    recipe = f" --recipe {asked.recipe}" if asked.project else ""
    return f"build one with `toolkit build{recipe}`, source its env.sh; or `toolkit run -- CMD`"


def _wanted_npu(asked: Asked) -> str:
    """Return the release of torch_npu that the recipe starts from; empty where it starts from a commit."""
    parts = asked.wanted.components if asked.wanted else ()
    return next((str(getattr(one.base, "version", "")) for one in parts if one.import_name == "torch_npu"), "")


def _metadata(name: str, package: Package) -> Iterator[Observation]:
    """torch loads its backend by the entry point in the metadata that is found first, whoever wins the import."""
    observed = f"{name}.metadata"
    if len(package.beside) > 1:
        names = ", ".join(one.metadata.name for one in package.beside)
        yield doubtful(
            observed, f"{package.place.parent} has {names}: an install that was cut short, and any of them is taken",
            f"pip uninstall -y {name} until none is left, and install it again",
        )  # fmt: skip
    elif package.told is None:
        yield doubtful(
            observed, f"{package.place} has no dist-info: its version and entry points are not found",
            f"install {name}; where it is a source tree: pip install -e",
        )  # fmt: skip
    elif not _is_same(package.told.version, package.version):
        yield doubtful(
            observed, f"the import takes {package.version or package.place}, importlib.metadata gives "
            f"{package.told.version} ({package.told.metadata})",
            "let one place have both: uninstall the other, or put an overlay first, which has its own metadata",
        )  # fmt: skip
    else:
        yield good(observed, f"importlib.metadata gives {package.told.version} too")


def _is_same(left: str, right: str) -> bool:
    try:
        return Version(left) == Version(right)
    except InvalidVersion:
        return left == right


def _dvm(npu: Package, asked: Asked) -> Observation:
    if (npu.place / DVM_FOLDER).is_dir():
        return good("torch_npu.dvm", "has the DVM backend")
    asks = _asks_for_dvm(asked.environ, asked)
    say = bad if asks else doubtful
    return say(
        "torch_npu.dvm",
        f"torch_npu {npu.version or f'in {npu.place}'} has no {DVM_FOLDER}: dvm silently becomes Triton (KeyError: 'r')"
        + (f"; {asks}" if asks else ""),
        "take one with DVM: 2.12.0.post3, 2.13.0 or later",
    )  # fmt: skip


def _asks_for_dvm(environ: Mapping[str, str], asked: Asked) -> str:
    """Say who asks for the DVM backend; empty where nobody does."""
    if environ.get(BACKEND) == DVM:
        return f"{BACKEND} is {DVM}"
    if BACKEND not in environ and asked.wanted and asked.wanted.env.get(BACKEND) == DVM:
        return f"the recipe {asked.wanted.name} sets {BACKEND}={DVM}"
    return ""


def _whole(npu: Package) -> Iterator[Observation]:
    """Compare the files with RECORD: an install that was cut short, or one that somebody patched in place."""
    if npu.own is None:
        return
    damage = damage_of(npu.own, "torch_npu", lambda path: path.endswith(".py"))
    again = f"pip install --force-reinstall --no-deps torch_npu=={npu.own.version}"
    if damage.checked == 0:
        return
    if damage.is_none:
        yield good("torch_npu.whole", str(damage))
    elif not damage.missing and all(path.endswith(".py") for path in damage.changed):
        yield doubtful(
            "torch_npu.whole", f"edited in place: {damage}", f"carry the change as a patch in an overlay, and {again}"
        )
    else:
        yield bad("torch_npu.whole", f"not as it was installed: {damage}", again)


def _match(torch: Package, npu: Package, interpreter: Interpreter) -> Observation:
    installed = npu.own or npu.told
    requires = installed.requires if installed is not None else ()
    if fault := match_fault(torch.version, npu.version, requires):
        wanted = _required_torch(requires)
        need = str(wanted) if wanted is not None and str(wanted.specifier) else f"torch=={npu.version}"
        return bad(
            "torch.match", fault,
            f"{interpreter.executable} -m pip install '{need}', or take the torch_npu of {torch.version}",
        )  # fmt: skip
    return good("torch.match", f"torch_npu {npu.version} is for torch {torch.version}")


def _compiled(name: str, package: Package, survey: Survey) -> Iterator[Observation]:
    """Look for the package's extension module: a source tree has none, another interpreter's cannot be loaded."""
    modules = sorted(one.name for one in package.place.glob("_C*.so"))
    if any(one.endswith((survey.suffix, *ANY_INTERPRETER)) or one == "_C.so" for one in modules):
        yield good(f"{name}.compiled", f"is compiled for this interpreter ({survey.suffix})")
    elif modules:
        yield bad(
            f"{name}.compiled", f"{package.place} has {modules[0]}, this interpreter loads _C{survey.suffix}",
            f"take {name} out of {package.found.why}, or name the interpreter that it is for with --python",
        )  # fmt: skip
    else:
        yield bad(
            f"{name}.compiled", f"{package.place} has no _C{survey.suffix}: a source tree that is not built, or an "
            f"install cut short; it is found through {package.found.why}",
            "install it again" if package.found.kind == "site" else "start elsewhere, or take it off sys.path",
        )  # fmt: skip
