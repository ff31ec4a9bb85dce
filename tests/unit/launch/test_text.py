"""Shell text is followed as far as it says what it does; the rest is unknown, never guessed."""

from __future__ import annotations

import pytest

from toolkit.errors import UsageError
from toolkit.launch import Launch, launch_facts, read_command_text


def facts(text: str, **environ: str) -> dict[str, str]:
    return dict(launch_facts(read_command_text(text, environ=environ)))


def words(text: str, **environ: str) -> tuple[str, ...]:
    return read_command_text(text, environ=environ).argv


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("python a.py \\\n  --x.y 1 \\\n --z 'a b' # not this", ("python", "a.py", "--x.y", "1", "--z", "a b")),
        ("# first\npython a.py --name=\"it's $WHO\"", ("python", "a.py", "--name=it's me")),
        ("python a.py '$WHO' \\$WHO", ("python", "a.py", "$WHO", "$WHO")),
        ("python a.py ${N:-8} ${M:-\"a b\"} ${WHO:+there}", ("python", "a.py", "8", "a b", "there")),
        ("python a.py ${N:-${WHO}x}", ("python", "a.py", "mex")),
        ("A='1 2'; python a.py $A \"$A\"", ("python", "a.py", "1", "2", "1 2")),
        ("A=(--x.y 1 '2 3')\nA+=(--z)\npython a.py \"${A[@]}\" end",
         ("python", "a.py", "--x.y", "1", "2 3", "--z", "end")),
        ("E='--a.b'; E+=' --c.d'; python a.py $E", ("python", "a.py", "--a.b", "--c.d")),
        ("python a.py --log $(date +%F)", ("python", "a.py", "--log", "$(…)")),
        ("python a.py ${WHO%e}/x `pwd` $((1 + 2))", ("python", "a.py", "${WHO}/x", "$(…)", "$(…)")),
        ("python a.py --x 1 > out.log 2>&1 < /dev/null &", ("python", "a.py", "--x", "1")),
        ("python a.py --x 1 2>&1 | tee -a log.txt", ("python", "a.py", "--x", "1")),
        ("cat <<EOF\npython b.py --no.no\nEOF\npython a.py --x.y", ("python", "a.py", "--x.y")),
        ("cd /src && python a.py --x.y || exit 1", ("python", "a.py", "--x.y")),
        ("false && python b.py --x.y; python a.py --x.y", ("python", "a.py", "--x.y")),
        ("if [ \"$WHO\" = you ]; then S=1; elif [[ $WHO == me && 1 ]]; then S=2; else S=3; fi\npython a.py $S",
         ("python", "a.py", "${S}")),
        ("if [ \"$WHO\" = you ]; then S=1; elif [ $WHO = me ]; then S=2; else S=3; fi\npython a.py $S",
         ("python", "a.py", "2")),
        ("if ! [ \"$WHO\" = you ]; then S=1; else S=2; fi\npython a.py $S", ("python", "a.py", "1")),
        ("if grep -q me file; then S=1; else S=2; fi\npython a.py $S", ("python", "a.py", "${S}")),
        ("if ! command -v x; then S=1; fi\npython a.py $S", ("python", "a.py", "${S}")),
        ("S=1; look-for x || S=2\npython a.py $S", ("python", "a.py", "${S}")),
        ("conda activate x && S=2\npython a.py $S", ("python", "a.py", "2")),
        ("! true || S=3\npython a.py $S", ("python", "a.py", "3")),
        ("S=1; if look; then unset S; fi\npython a.py $S", ("python", "a.py", "${S}")),
        ("S=1; unset S\npython a.py ${S:-2}", ("python", "a.py", "2")),
        ("for i in 1 2; do S=$i; done\npython a.py $S", ("python", "a.py", "${S}")),
        ("case $WHO in\n me) S=1 ;;\n *) S=2 ;;\nesac\npython a.py $S", ("python", "a.py", "${S}")),
        ("main() { python a.py \"$1\" --x.y; }\nmain", ("python", "a.py", "${1}", "--x.y")),
        ("\n\npip install x.sh\npython a.py --x.y\necho done", ("python", "a.py", "--x.y")),
        ("python a.py ~/x \"~/x\"", ("python", "a.py", "/home/me/x", "~/x")),
        ("python a.py $PWD/x $RANDOM", ("python", "a.py", "${PWD}/x", "${RANDOM}")),
        ("python a.py `cd \\`dirname $0\\`; pwd`/x", ("python", "a.py", "$(…)/x")),
        ("HERE=$(pwd); python a.py --d=$HERE/out", ("python", "a.py", "--d=$(…)/out")),
    ],
)  # fmt: skip
def test_the_command_is_what_the_shell_would_start(text: str, argv: tuple[str, ...]) -> None:
    assert words(text, WHO="me", HOME="/home/me") == argv


def test_exports_reach_the_program_and_plain_variables_do_not() -> None:
    launch = read_command_text(
        "export A=1 B\nB=2\nC=3\nD=4 python a.py --x.y\n", environ={"E": "5", "C": "0"}
    )  # fmt: skip

    assert launch.environ == {"A": "1", "B": "2", "C": "3", "D": "4", "E": "5"}
    assert launch.own == {"D": "4"}


def test_all_variables_are_exported_where_the_shell_is_told_so() -> None:
    assert read_command_text("set -a\nA=1\nset +a\npython a.py --x.y", environ={}).environ == {"A": "1"}


def test_what_a_sourced_file_sets_is_not_known() -> None:
    launch = read_command_text("source set_env.sh\nexport A=1\npython a.py --x.y", environ={"B": "2"})

    assert launch.variable("A") == "1"
    assert launch.variable("TORCHINDUCTOR_NPU_BACKEND") is None


def test_an_export_that_a_condition_decides_is_unknown() -> None:
    launch = read_command_text("[ -f x ] && export A=1\npython a.py --x.y", environ={"A": "0"})

    assert launch.variable("A") is None
    assert launch.unknown == {"A"}


def test_the_arguments_of_a_script_alone_are_unknown_and_so_is_what_they_may_say() -> None:
    text = 'export TORCHINDUCTOR_NPU_BACKEND=${BACKEND:-dvm}\ntorchrun -m trainer.main --training.dtype bfloat16 "$@"\n'
    launch = read_command_text(text)

    assert launch.is_open
    assert launch_facts(launch) == {
        "backend": "dvm", "dtype": "bfloat16", "program": "torchrun", "target": "trainer.main",
    }  # fmt: skip
    given = read_command_text(text, arguments=["--compile.enable"])
    assert launch_facts(given)["compile"] == "true"
    assert launch_facts(given)["steps"] == ""


def test_options_that_a_condition_may_add_are_not_taken_for_absent() -> None:
    text = (
        'ARGS=(--training.steps 10)\nif true; then [ -e x ] && ARGS+=(--compile.enable); fi\npython a.py "${ARGS[@]}"\n'
    )
    found = facts(text)

    assert found["steps"] == "10"
    assert "compile" not in found
    assert facts(text.replace("[ -e x ] &&", ""))["compile"] == "true"


def test_a_text_of_exports_alone_has_an_environment_and_no_command() -> None:
    launch = read_command_text("export TORCHINDUCTOR_NPU_BACKEND=dvm\nNGPU=8\n")

    assert launch.argv == ()
    assert launch_facts(launch) == {"backend": "dvm"}


def test_lines_of_options_go_on_with_the_command_even_without_a_backslash() -> None:
    assert words("./run.sh --a.b\n  --c.d 1\n\n--e.f\n") == ("./run.sh", "--a.b", "--c.d", "1", "--e.f")


def test_options_alone_are_options() -> None:
    assert facts("--training.dtype=bfloat16 --compile.enable")["dtype"] == "bfloat16"


def test_words_as_the_process_table_has_them_are_taken_as_they_are() -> None:
    assert words("python\0a.py\0--name\0two words\0$A\0") == ("python", "a.py", "--name", "two words", "$A")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("python a.py\n--x 'open", "line 2 of the command has a ' that is not closed"),
        ('python a.py "open', 'line 1 of the command has a " that is not closed'),
        ("python a.py ${N", "line 1 of the command has a ${ that is not closed"),
        ("\n\npython $(date", "line 3 of the command has a $( that is not closed"),
        ("A=(1 2", "line 1 of the command has a ( that is not closed"),
    ],
)
def test_text_that_no_shell_would_take_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_command_text(text)
    assert refused.value.message == message
    assert refused.value.hint == "give the command as it would be typed into a POSIX shell"


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "\\", "$", "&& ||", "; ; )", "((", "}", "fi\ndone", "<<EOF", "<"]
)
def test_odd_text_is_no_command(text: str) -> None:
    assert isinstance(read_command_text(text), Launch)
