"""Sessions on disk: what is written comes back, and damage costs only what is damaged."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.content import Audio, Image, Resource, ResourceLink, Text, as_text
from kage.core.errors import SessionError, SessionLocked
from kage.core.messages import (
    AssistantMessage,
    Message,
    Outcome,
    Stop,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from kage.core.usage import Usage
from kage.sessions.format import BadLine, decode, encode, to_line
from kage.sessions.history import History
from kage.sessions.store import SessionStore

texts = st.text(st.characters(codec="utf-8"), max_size=40)
contents = st.one_of(
    st.builds(Text, texts),
    st.builds(Image, data=texts, mime=texts),
    st.builds(Audio, data=texts, mime=texts),
    st.builds(Resource, uri=texts, mime=texts, text=texts),
    st.builds(Resource, uri=texts, mime=texts, blob=texts),
    st.builds(ResourceLink, uri=texts, name=texts, mime=texts, description=texts),
)
arguments = st.dictionaries(texts, st.one_of(st.integers(), texts, st.booleans(), st.none()))
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, text=texts, signature=texts, redacted=texts),
    st.builds(ToolCall, id=texts, name=texts, arguments=arguments, broken=st.none() | texts),
)
tuples = st.lists(contents, max_size=4).map(tuple)
counts = st.integers(0, 10**9)
messages = st.one_of(
    st.builds(UserMessage, content=tuples, id=texts),
    st.builds(
        AssistantMessage,
        parts=st.lists(parts, max_size=4).map(tuple),
        model=texts,
        stop=st.sampled_from(Stop),
        usage=st.builds(Usage, input=counts, output=counts, cache_read=counts, cache_write=counts),
        id=texts,
    ),
    st.builds(
        ToolMessage,
        call_id=texts,
        name=texts,
        outcome=st.sampled_from(Outcome),
        content=tuples,
        seconds=st.integers(0, 1000).map(float),
        summary=texts,
        diff=texts,
        id=texts,
    ),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def user(text: str) -> UserMessage:
    return UserMessage(content=(Text(text),))


def said(message: Message) -> str:
    assert isinstance(message, UserMessage)
    return as_text(message.content)


@given(messages)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    assert decode(json.loads(to_line(encode(message)))) == message


@given(st.dictionaries(st.sampled_from(["type", "id", "content", "parts", "call"]), json_values))
def test_a_line_of_any_shape_is_a_message_or_a_bad_line(line: dict[str, object]) -> None:
    with contextlib.suppress(BadLine):
        decode(line)


def written(tmp_path: Path, *items: Message) -> tuple[SessionStore, str]:
    store = SessionStore(tmp_path / "sessions")
    session = store.create(tmp_path)
    for item in items:
        session.append(item)
    session.close()
    return store, session.id


def test_a_session_without_a_message_leaves_nothing_on_disk(tmp_path: Path) -> None:
    written(tmp_path)
    assert not (tmp_path / "sessions").exists()


def test_a_cut_last_line_is_dropped_and_said_and_the_next_line_is_whole(tmp_path: Path) -> None:
    store, session_id = written(tmp_path, user("one"), user("two"))
    path = store.find(session_id) / "session.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    session, held = store.open(session_id)
    assert [said(item) for item in held.messages] == ["one"]
    assert "cut off" in held.dropped[0]
    session.append(user("three"))
    session.close()
    assert [said(item) for item in store.load(session_id).messages] == ["one", "three"]


@given(st.binary(max_size=60), st.integers(0, 400))
def test_a_file_damaged_anywhere_still_loads(junk: bytes, place: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store, session_id = written(Path(folder), user("one"), user("two"), user("three"))
        path = store.find(session_id) / "session.jsonl"
        data = path.read_bytes()
        place = min(place, len(data))
        path.write_bytes(data[:place] + junk + data[place + len(junk) :])
        held = store.load(session_id)
        assert all(said(item) for item in held.messages if isinstance(item, UserMessage))


def test_a_call_without_a_result_gets_one_that_says_so(tmp_path: Path) -> None:
    asked = AssistantMessage(
        parts=(ToolCall(id="c1", name="write", arguments={}),), model="m", stop=Stop.TOOLS
    )
    store, session_id = written(tmp_path, user("go"), asked)
    held = store.load(session_id)
    result = held.messages[-1]
    assert isinstance(result, ToolMessage)
    assert (result.call_id, result.outcome) == ("c1", Outcome.UNKNOWN)
    assert held.dropped


def test_a_session_of_a_newer_kage_says_so(tmp_path: Path) -> None:
    store, session_id = written(tmp_path, user("one"))
    path = store.find(session_id) / "session.jsonl"
    text = path.read_text().replace('"version":1', '"version":99')
    path.write_text(text + '{"type":"hologram","id":"x"}\n')
    held = store.load(session_id)
    assert [said(item) for item in held.messages] == ["one"]
    assert any("newer kage" in note for note in held.dropped)


def test_a_session_in_use_is_refused_and_names_the_process(tmp_path: Path) -> None:
    store, session_id = written(tmp_path, user("one"))
    session, _ = store.open(session_id)
    with pytest.raises(SessionLocked) as refused:
        store.open(session_id)
    assert refused.value.pid == os.getpid()
    assert store.list(tmp_path)[0].locked_by == os.getpid()
    session.close()
    store.open(session_id)[0].close()


def test_a_killed_kage_lets_go_of_its_session(tmp_path: Path) -> None:
    store, session_id = written(tmp_path, user("one"))
    code = (
        "import sys,pathlib,time;from kage.sessions.store import SessionStore;"
        f"s=SessionStore(pathlib.Path({str(store.root)!r})).open({session_id!r});"
        "print('open',flush=True);time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"open\n"
    with pytest.raises(SessionLocked):
        store.open(session_id)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    store.open(session_id)[0].close()


def test_two_kages_at_once_write_two_sessions(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    one, two = store.create(tmp_path), store.create(tmp_path)
    for number in range(20):
        one.append(user(f"a{number}"))
        two.append(user(f"b{number}"))
    one.close()
    two.close()
    assert [said(item) for item in store.load(one.id).messages] == [f"a{n}" for n in range(20)]


def test_the_list_shows_the_newest_first_with_its_first_prompt(tmp_path: Path) -> None:
    store, first = written(tmp_path, user("fix the\nflaky test"), user("more"))
    _, second = written(tmp_path, user("another"))
    os.utime(store.find(first) / "session.jsonl", (1, 1))
    infos = store.list(tmp_path)
    assert [info.id for info in infos] == [second, first]
    assert (infos[1].title, infos[1].messages) == ("fix the flaky test", 2)
    assert store.list(tmp_path / "elsewhere") == ()


def test_an_id_may_be_cut_as_long_as_it_is_unique(tmp_path: Path) -> None:
    store, first = written(tmp_path, user("one"))
    assert store.load(first[:-2]).id == first
    with pytest.raises(SessionError, match="There is no session"):
        store.load("zzz")
    written(tmp_path, user("two"))
    with pytest.raises(SessionError, match="2 sessions begin"):
        store.load("s")


def test_secrets_never_reach_the_file(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, redact=lambda text: text.replace("hunter2", "[redacted]"))
    session = store.create(tmp_path)
    session.append(user("it is hunter2"))
    session.close()
    assert "hunter2" not in (store.find(session.id) / "session.jsonl").read_text()


def test_a_disk_that_takes_nothing_costs_no_message(tmp_path: Path) -> None:
    troubles: list[str] = []
    store = SessionStore(tmp_path / "sessions", on_trouble=troubles.append)
    session = store.create(tmp_path)
    session.append(user("before"))
    size = (session.folder / "session.jsonl").stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, old[1]))
        session.append(user("during " + "x" * 100))
        session.append(user("still " + "y" * 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(troubles) == 1
    assert (session.folder / "session.jsonl").stat().st_size == size
    session.append(user("after"))
    session.close()
    assert [said(item)[:6] for item in store.load(session.id).messages] == [
        "before",
        "during",
        "still ",
        "after",
    ]


def test_history_gives_the_prompts_of_its_workspace(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    for text in ["one", "two", "two"]:
        history.add(tmp_path, text)
    history.add(tmp_path / "other", "elsewhere")
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(b"{damaged\n\xff\n[]\n")
    history.add(tmp_path, "three\nlines")
    assert history.recent(tmp_path) == ("one", "two", "three\nlines")
    assert History(tmp_path / "none").recent(tmp_path) == ()


def test_calls_of_one_id_keep_their_own_results_in_order(tmp_path: Path) -> None:
    def reply(*names: str) -> AssistantMessage:
        calls = tuple(ToolCall(id="call_0", name=name, arguments={}) for name in names)
        return AssistantMessage(parts=calls, model="m", stop=Stop.TOOLS)

    def result(text: str) -> ToolMessage:
        content = (Text(text),)
        return ToolMessage(call_id="call_0", name=text, outcome=Outcome.OK, content=content)

    store = SessionStore(tmp_path)
    session = store.create(tmp_path)
    for message in (reply("a", "b"), result("a"), result("b"), reply("c"), result("c"), reply("d")):
        session.append(message)
    session.close()
    held = store.load(session.id)
    calls = [c for m in held.messages if isinstance(m, AssistantMessage) for c in m.calls]
    results = {m.call_id: m for m in held.messages if isinstance(m, ToolMessage)}
    assert [results[call.id].name for call in calls] == ["a", "b", "c", "d"]
    assert len(results) == 4
    assert results[calls[3].id].outcome is Outcome.UNKNOWN
    assert held.dropped == ("the result of d was never recorded",)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"session","version":1,"created":%s}' % ("9" * 400),
        '{"type":"session","version":1e999,"created":1e999}',
        '{"type":"tool","id":"x","call":"c","name":"n","outcome":"ok","seconds":%s,"content":[]}'
        % ("9" * 400),
        '{"type":"assistant","id":"x","model":"m","stop":"end","parts":[],"usage":{"input":1e999}}',
        '{"type":"assistant","id":"x","model":"m","stop":[],"parts":[],"usage":{}}',
        '{"type":"session","version":1,"workspace":"a\\u0000b","created":NaN}',
        '{"type":"session","version":1,"workspace":"\\ud800"}',
    ],
)
def test_numbers_beyond_all_measure_cost_their_line_only(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "s1"
    folder.mkdir()
    words = '{"type":"user","id":"u","content":[{"kind":"text","text":"hello"}]}'
    (folder / "session.jsonl").write_text(f"{line}\n{words}\n")
    store = SessionStore(tmp_path)
    held = store.load("s1")
    assert [m.content for m in held.messages if isinstance(m, UserMessage)] == [(Text("hello"),)]
    assert [info.title for info in store.list()] == ["hello"]
    assert store.list(tmp_path) == ()
