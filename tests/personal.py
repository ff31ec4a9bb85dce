"""A user's own git configuration at its worst: all that changes what diff, format-patch, log or commit give."""

from __future__ import annotations

from pathlib import Path

CONFIG = """\
[core]
    autocrlf = true
    eol = crlf
    safecrlf = warn
    abbrev = 5
    quotePath = false
    whitespace = -blank-at-eol,tab-in-indent
    splitIndex = true
    attributesFile = {home}/attributes
    excludesFile = {home}/ignored
    hooksPath = {home}/hooks
    pager = false
    commentChar = ";"
[color]
    ui = always
    diff = always
[diff]
    algorithm = histogram
    context = 1
    interHunkContext = 9
    noprefix = true
    mnemonicPrefix = true
    external = false
    renames = copies
    relative = true
    indentHeuristic = false
    suppressBlankEmpty = true
    submodule = log
    statGraphWidth = 5
    statNameWidth = 9
    dirstat = lines,0
    orderFile = {home}/order
    wsErrorHighlight = all
    colorMoved = zebra
    ignoreSubmodules = all
[diff "shouting"]
    textconv = tr a-z A-Z
    xfuncname = "^never$"
[format]
    attach = attached
    numbered = true
    signature = a signature of mine
    signOff = true
    from = Somebody Else <else@example.org>
    subjectPrefix = MINE
    suffix = .mail
    thread = deep
    notes = true
    to = list@example.org
    cc = other@example.org
    headers = "X-Mine: yes\\n"
    encodeEmailHeaders = false
    coverLetter = true
    useAutoBase = whenAble
    pretty = fuller
    outputDirectory = {home}/out
[log]
    date = relative
    showSignature = true
    decorate = full
    mailmap = true
    follow = true
[mailmap]
    file = {home}/mailmap
[apply]
    whitespace = fix
    ignoreWhitespace = change
[commit]
    gpgSign = true
    template = {home}/template
    cleanup = strip
    verbose = true
[gpg]
    program = false
[tag]
    gpgSign = true
[i18n]
    commitEncoding = ISO-8859-1
    logOutputEncoding = ISO-8859-1
[init]
    templateDir = {home}/templates
    defaultBranch = mine
[merge]
    conflictStyle = merge
    renames = false
[rerere]
    enabled = true
    autoUpdate = true
[rebase]
    autoSquash = true
[status]
    showUntrackedFiles = no
    short = true
    branch = true
    relativePaths = true
[advice]
    detachedHead = true
[user]
    name = Jörg Ünï
    email = joerg@example.org
"""


def make_personal_git(home: Path) -> dict[str, str]:
    """Fill a home folder, and return the variables of a user whose git has it all, and some variables besides."""
    (home / "hooks").mkdir(parents=True)
    for name in (
        "pre-commit",
        "commit-msg",
        "post-checkout",
        "post-commit",
        "reference-transaction",
        "prepare-commit-msg",
    ):
        hook = home / "hooks" / name
        hook.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        hook.chmod(0o755)
    (home / "templates/info").mkdir(parents=True)
    (home / "templates/info/attributes").write_text("* text eol=crlf diff=shouting ident\n", encoding="ascii")
    (home / ".gitconfig").write_text(CONFIG.format(home=home), encoding="utf-8")
    (home / "attributes").write_text("* text=auto diff=shouting whitespace=trailing-space\n", encoding="ascii")
    (home / "ignored").write_text("*.txt\nnew*\n", encoding="ascii")
    (home / "order").write_text("z*\n*.txt\n", encoding="ascii")
    (home / "mailmap").write_text("Nobody <nobody@example.org> <author@example.org>\n", encoding="ascii")
    (home / "template").write_text("A template.\n", encoding="ascii")
    return {
        "HOME": str(home),
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_DIFF_OPTS": "--unified=0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.noprefix",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_INDEX_VERSION": "4",
        "LC_ALL": "C",
    }
