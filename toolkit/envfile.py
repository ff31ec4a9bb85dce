"""What activates an overlay, in the words of a shell or of a tool that reads variables from a file.

The site folder goes first on PYTHONPATH, which never has an empty entry afterwards (to Python that is the current
folder); an overlay that was active before gives its place up. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from toolkit.errors import OverlayError, RecipeError
from toolkit.model import Overlay

Shell = Literal["sh", "fish", "json", "dotenv", "github"]
SHELLS: tuple[str, ...] = get_args(Shell)

FILES: Mapping[str, Shell] = MappingProxyType({"env.sh": "sh", "env.fish": "fish", "env.json": "json"})
"""The env files that lie beside an overlay; the other kinds hold the caller's PYTHONPATH and are made on demand."""

OVERLAY = "TOOLKIT_OVERLAY"
PYTHONPATH = "PYTHONPATH"
CACHES = ("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
NO_ENVIRON: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """An overlay as an environment sees it. `variables` are set as they are, `site` goes first on PYTHONPATH.

    `versions` says in one line what is in it; `notice` is shown when it is activated, for an overlay that is meant
    for diagnosis only.
    """

    recipe: str
    key: str
    versions: str
    root: Path
    variables: Mapping[str, str]
    notice: str = ""

    @property
    def site(self) -> str:
        """The folder that goes first on PYTHONPATH."""
        return str(self.root / "site")


def activation_of(overlay: Overlay) -> Activation:
    """Return an overlay's activation.

    Raises RecipeError where the recipe's `[env]` has a name that no shell takes, or one that is set here anyway, and
    OverlayError where the overlay's path cannot stand in PYTHONPATH.
    """
    root = overlay.root.absolute()
    if ":" in str(root):
        raise OverlayError(
            f"the overlay's path {str(root)!r} has a colon, which PYTHONPATH cannot hold",
            hint="choose another place with --overlays DIR",
        )
    own = {
        OVERLAY: str(root),
        "TORCH_EXTENSIONS_DIR": str(root / "torch_extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(root / "cache" / "inductor"),
        "TRITON_CACHE_DIR": str(root / "cache" / "triton"),
    }
    if faults := _env_faults(overlay.env, {*own, PYTHONPATH}):
        raise RecipeError(f"[env] of recipe {overlay.recipe!r} cannot be used: {faults[0]}", details=faults)
    return Activation(
        recipe=overlay.recipe,
        key=overlay.key,
        versions=", ".join(f"{package.distribution} {package.version}" for package in overlay.packages),
        root=root,
        variables={**own, **overlay.env},
        notice=f"for diagnosis only: {overlay.diagnostic}" if overlay.diagnostic else "",
    )


def activate(environ: Mapping[str, str], activation: Activation) -> dict[str, str]:
    """Return an environment with the overlay active; the given one stays as it is."""
    return {**environ, **activation.variables, PYTHONPATH: python_path(environ, activation)}


def activate_base(environ: Mapping[str, str], activation: Activation, site: Path) -> dict[str, str]:
    """Return an environment with the unpatched base at `site` in an overlay's place, and with caches of its own.

    Raises OverlayError where `site` cannot stand in PYTHONPATH.
    """
    if ":" in str(site):
        raise OverlayError(
            f"the base's path {str(site)!r} has a colon, which PYTHONPATH cannot hold",
            hint="choose another place with --store DIR",
        )
    caches = {name: str(activation.root / "cache" / "base" / name.lower()) for name in CACHES}
    path = [str(site), *python_path(environ, activation).split(":")[1:]]
    active = {**environ, **activation.variables, **caches, PYTHONPATH: ":".join(path)}
    return {name: value for name, value in active.items() if name != OVERLAY}


def python_path(environ: Mapping[str, str], activation: Activation) -> str:
    """Return PYTHONPATH with the overlay's site first: no empty entry, and no other overlay that was active."""
    active = environ.get(OVERLAY)
    unwanted = {"", activation.site, f"{active}/site" if active else ""}
    entries = environ.get(PYTHONPATH, "").split(":")
    return ":".join([activation.site, *(entry for entry in entries if entry not in unwanted)])


def render_all(overlay: Overlay) -> dict[str, str]:
    """Return the contents of the env files that lie beside an overlay, by file name."""
    activation = activation_of(overlay)
    return {name: render(shell, activation) for name, shell in FILES.items()}


def render_for(shell: Shell, overlay: Overlay, environ: Mapping[str, str]) -> str:
    """Return what `toolkit env --shell` prints for the caller's environment."""
    return render(shell, activation_of(overlay), environ)


def render(shell: Shell, activation: Activation, environ: Mapping[str, str] = NO_ENVIRON) -> str:
    """Return the text that activates an overlay.

    sh, fish and json hold for any caller. dotenv and github have no way to prepend: there PYTHONPATH is the one that
    follows from `environ`.
    """
    if shell == "sh":
        return _render_sh(activation)
    if shell == "fish":
        return _render_fish(activation)
    if shell == "json":
        return _render_json(activation)
    variables = {**activation.variables, PYTHONPATH: python_path(environ, activation)}
    if shell == "dotenv":
        return _header(activation) + "".join(f"{name}={_quote_dotenv(value)}\n" for name, value in variables.items())
    return "".join(_github_entry(name, value) for name, value in variables.items())


# --- POSIX shells ----------------------------------------------------------------------------------------------

SH = """\
[ -d {site} ] || {{ printf '%s\\n' {gone} >&2; return 1; }}

if command -v toolkit_deactivate >/dev/null 2>&1; then toolkit_deactivate; fi

for _toolkit_name in {names}; do
    eval "_toolkit_had_$_toolkit_name=\\${{$_toolkit_name+yes}}; _toolkit_old_$_toolkit_name=\\${{$_toolkit_name-}}"
done

_toolkit_path={site}
_toolkit_rest="${{PYTHONPATH-}}:"
while [ -n "$_toolkit_rest" ]; do
    _toolkit_entry="${{_toolkit_rest%%:*}}"
    _toolkit_rest="${{_toolkit_rest#*:}}"
    case "$_toolkit_entry" in
    '' | {site} | "${{TOOLKIT_OVERLAY:+$TOOLKIT_OVERLAY/site}}") ;;
    *) _toolkit_path="$_toolkit_path:$_toolkit_entry" ;;
    esac
done

export PYTHONPATH="$_toolkit_path"
{exports}
unset _toolkit_name _toolkit_path _toolkit_rest _toolkit_entry

toolkit_deactivate() {{
    for _toolkit_name in {names}; do
        if eval "[ -n \\"\\${{_toolkit_had_$_toolkit_name-}}\\" ]"; then
            eval "export $_toolkit_name=\\"\\$_toolkit_old_$_toolkit_name\\""
        else
            unset "$_toolkit_name"
        fi
        unset "_toolkit_had_$_toolkit_name" "_toolkit_old_$_toolkit_name"
    done
    unset _toolkit_name
    unset -f toolkit_deactivate
}}
"""


def _render_sh(activation: Activation) -> str:
    body = SH.format(
        names=" ".join([PYTHONPATH, *activation.variables]),
        site=shlex.quote(activation.site),
        gone=shlex.quote(_gone(activation)),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in activation.variables.items()),
    )
    notice = f"printf '%s\\n' {shlex.quote(activation.notice)} >&2\n" if activation.notice else ""
    return _header(activation, "Source it in any POSIX shell; `toolkit_deactivate` is the way back.") + body + notice


# --- fish ------------------------------------------------------------------------------------------------------

FISH = """\
if not test -d {site}
    echo {gone} >&2
    return 1
end

if functions -q toolkit_deactivate
    toolkit_deactivate
end

for _toolkit_name in {names}
    if set -qgx $_toolkit_name
        set -g _toolkit_had_$_toolkit_name -gx
    else if set -qg $_toolkit_name
        set -g _toolkit_had_$_toolkit_name -gu
    end
    set -g _toolkit_old_$_toolkit_name $$_toolkit_name
end

set -l _toolkit_path {site}
set -l --path _toolkit_rest $PYTHONPATH
for _toolkit_entry in $_toolkit_rest
    if test -z "$_toolkit_entry"; or test "$_toolkit_entry" = {site}
        continue
    end
    if set -q TOOLKIT_OVERLAY; and test "$_toolkit_entry" = "$TOOLKIT_OVERLAY/site"
        continue
    end
    set -a _toolkit_path $_toolkit_entry
end

set -gx --path PYTHONPATH $_toolkit_path
{exports}

function toolkit_deactivate --description 'Restore the environment from before the overlay'
    for _toolkit_name in {names}
        set -l had _toolkit_had_$_toolkit_name
        set -l old _toolkit_old_$_toolkit_name
        set -e -g $_toolkit_name
        if set -q $had
            set $$had $_toolkit_name $$old
        end
        set -e -g $had
        set -e -g $old
    end
    functions -e toolkit_deactivate
end
"""


def _render_fish(activation: Activation) -> str:
    body = FISH.format(
        names=" ".join([PYTHONPATH, *activation.variables]),
        site=_quote_fish(activation.site),
        gone=_quote_fish(_gone(activation)),
        exports="\n".join(f"set -gx {name} {_quote_fish(value)}" for name, value in activation.variables.items()),
    )
    notice = f"echo {_quote_fish(activation.notice)} >&2\n" if activation.notice else ""
    return _header(activation, "Source it in fish; `toolkit_deactivate` is the way back.") + body + notice


def _quote_fish(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# --- files of variables ----------------------------------------------------------------------------------------


def _render_json(activation: Activation) -> str:
    body = {
        "recipe": activation.recipe,
        "key": activation.key,
        "versions": activation.versions,
        "notice": activation.notice,
        "set": dict(activation.variables),
        "prepend": {PYTHONPATH: activation.site},
    }
    return json.dumps(body, indent=1) + "\n"


def _quote_dotenv(value: str) -> str:
    """Quote for a `.env` file; readers differ in what a dollar means, but most leave it alone in single quotes."""
    if "$" in value and "'" not in value and "\\" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n")
    return f'"{escaped}"'


def _github_entry(name: str, value: str) -> str:
    """Return an entry of GITHUB_ENV; its end mark cannot stand in the value, as it is made from the value's digest."""
    mark = f"toolkit_{hashlib.sha256(value.encode('utf-8')).hexdigest()[:16]}"
    return f"{name}<<{mark}\n{value}\n{mark}\n"


# --- shared ----------------------------------------------------------------------------------------------------


def _header(activation: Activation, usage: str = "") -> str:
    lines = [f"Overlay {activation.recipe}, key {activation.key[:8]}: {activation.versions}"]
    lines += [usage] if usage else []
    lines += activation.notice.splitlines()
    return "".join(f"# {' '.join(line.splitlines())}\n" for line in lines)


def _gone(activation: Activation) -> str:
    """Say what a file that outlived its overlay, or moved without being written again, has to say."""
    return f"there is no overlay at {activation.root}: build it again where it shall be, with `toolkit build`"


def _env_faults(env: Mapping[str, str], own: set[str]) -> list[str]:
    faults = []
    for name, value in env.items():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
            faults.append(f"{name!r} is no variable's name")
        elif name in own:
            faults.append(f"{name} is set by the overlay itself")
        elif "\0" in value:
            faults.append(f"{name} has a NUL byte")
    return faults
