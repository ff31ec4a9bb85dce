"""What is read from shell text is what bash makes of it, wherever the text says it all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import UsageError
from toolkit.launch import Launch, read_command_text

BASH = shutil.which("bash")

TEXTS = [
    "python a.py \\\n  --x.y 1 --z 'a b' # not this",
    'python a.py "it\'s $WHO" \'$WHO\' \\$WHO "\\$WHO" "a\\b" a\\ b',
    'python a.py ${N:-8} ${M:-"a b"} ${WHO:+there} ${N-} ${WHO:-no} "${N:-its}" end',
    "N=; python a.py ${N:-empty} ${N-set} ${N:=given} $N",
    "A='1  2'; python a.py $A \"$A\" x$A",
    'A=(--x.y 1 \'2 3\')\nA+=(--z "$WHO")\npython a.py "${A[@]}" "x${A[@]}y" ${A[*]}',
    "E='--a.b'; E+=' --c.d'; python a.py $E\"$E\"",
    'if [ "$WHO" = you ]; then S=1; elif [ $WHO = me ]; then S=2; else S=3; fi\npython a.py $S',
    'if [ -z "$NONE" ]; then\n  S=1\nelse\n  S=2\nfi\n[ -n "$WHO" ] && T=3\n[ -n "$NONE" ] || T=${T}4\n'
    "python a.py $S $T",
    "cat <<'EOF' >/dev/null\npython b.py $(nothing\nEOF\npython a.py --x.y",
    'set -- one \'two three\'\nshift\npython a.py "$@" $# "$1"',
    'export A="$WHO" B=\'x y\'\npython a.py "$A$B"',
    "true && false || python a.py --x.y; : python b.py",
    "( python a.py --x.y )",
    "{ python a.py --x.y; } 2>&1 >/dev/null | cat; :",
    'python a.py ~ ~/x "~" a~',
    "python a.py $'a b' $ \"$\" '' \"\" --x=''",
    "WHO=you python a.py $WHO",
    "python a.py a#b '#' \\# # c",
    "python a.py a;python a.py b",
]


def run_in_bash(text: str, folder: Path) -> list[str]:
    """Run the text with a `python` that writes down its words; return those of the last call."""
    stub = folder / "python"
    stub.write_text(f"#!{BASH}\nprintf '%s\\0' \"$@\" > '{folder}/words'\n")
    stub.chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "WHO": "me", "HOME": "/home/me"}
    subprocess.run([BASH or "bash", "-c", text], env=env, cwd=folder, check=True, capture_output=True)
    return (folder / "words").read_text().split("\0")[:-1]


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize("text", TEXTS)
def test_the_words_are_those_that_bash_gives(text: str, tmp_path: Path) -> None:
    launch = read_command_text(text, environ={"WHO": "me", "HOME": "/home/me"})

    assert launch.is_exact
    assert list(launch.argv[1:]) == run_in_bash(text, tmp_path)


PIECES = st.sampled_from(
    ["python a.py", " ", "\n", "'", '"', "$", "${", "}", "A=", "A=(", ")", "(", "if ", "then ", "fi", "case x in",
     "&&", "||", ";;", "\\", "$(", "`", "<<E", "E", "$A", "${A[@]}", ":-", "[", "]", "[[", "]]", "#", "--x.y", "esac",
     "export ", "env ", "bash -c ", "torchrun ", "-m ", "\0", "\r\n", "é", "function ", "for ", "do ", "done"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        launch = read_command_text(text)
    except UsageError as refused:
        assert refused.hint  # noqa: PT017  Either way is fine, and any other error is not.
    else:
        assert isinstance(launch, Launch)
        assert "\0" not in "".join(launch.argv)


def test_text_that_nests_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^the command nests too deep to be read$"):
        read_command_text("python " + "${A:-" * 5000 + "}" * 5000)


def test_text_that_is_no_run_script_by_its_length_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^the command's text has 2000000 characters, more than 1048576$"):
        read_command_text("#" * 2_000_000)
