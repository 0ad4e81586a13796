"""MCP servers that behave or misbehave, for tests; standard library only, quick to start.

Run one with ``stub("echo", "--record", path)``, ``python -m tests.stubs.echo`` or by path.
What a stub does beyond serving is said in its first line; all share the options of ``base``.

    echo            does everything right: echo add env where sleep fail progress long exit
    slow            starts late                         (--delay S)
    silent          answers nothing                     (--listed: only until it was listed)
    probe_deaf      ignores unknown requests, old revisions only
    probe_dies      dies on unknown requests, old revisions only
    exits           stderr lines, then gone             (--lines N --code C --after S --signal N)
    crash           dies around a call                  (--when before|after|half|idle --signal N)
    lossy           loses a call                        (--how, --count F: how often it was called)
    deaf            ignores EOF and signals
    grandchild      has a child holding stdout          (--setsid --deaf --leader-exits S --pids F)
    noisy           chatters on stderr                  (--lines N --long --bytes --on F)
    banner          prints text on stdout               (--lines N)
    bad_utf8        invalid bytes in answers
    huge_line       one line of 100 MB                  (tool huge: size, how)
    badschema       invalid tools among good ones
    names           odd tool names
    pages           tools over pages                    (--tools N --page P --loop --endless)
    changer         changes its tools                   (tools mutate, storm)
    rugpull         changes what it says of itself      (--state FILE: mutations, see MUTATIONS)
    offers          resources, prompts, completion  (--resources N --page P --bad --loop --stuck M)
    legacy24        2024-11-05 only
    modern          2026-07-28 only
    wrong_version   answers with a revision nobody speaks
    media           every kind of content
    odd_results     answers that break the protocol     (tool odd: how)
    stops_reading   stops reading stdin                 (--at-call)
    flood           floods with notifications           (tool flood: count, kind; --count N --on F)
    readonly_liar   claims to be read-only, is not
    scribbler       the same, on files of its folder: writes, deletes, links
    leaks           gives away its TOKEN wherever it can (tool leak: how)
    asks            asks the client during a call       (tool ask: what)
    elicit          asks whatever it is told to         (tools ask many rounds visit leave ...)
    poison          hostile words, names and results    (--link URL)
    restart_breaks  works once                          (--counter FILE --works N --again M)
    http_server     over HTTP, in every way right or wrong; in a test: ``with serving(...)``

Servers behind an address, as context managers: ``http.py``, ``oauth.py`` (with a sign-in).
"""

from __future__ import annotations

import sys

_FOLDER = __file__.rpartition("/")[0]


def stub(name: str, *options: object) -> list[str]:
    """Give the argv that starts a stub, from any folder and with any environment."""
    return [sys.executable, "-I", "-S", f"{_FOLDER}/{name}.py", *map(str, options)]
