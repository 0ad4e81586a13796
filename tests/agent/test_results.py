"""What the model reads of a result stays under its limit, whatever kind of content it is."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.agent.results import MAX_PARTS, Desk, heavy, shown
from kage.core.content import (
    NOTE,
    Artifact,
    Audio,
    Content,
    Image,
    Resource,
    ResourceLink,
    Text,
    as_text,
)
from kage.core.gate import CallRequest
from kage.core.messages import Outcome, ToolMessage
from kage.core.redact import Redactor
from kage.core.tools import Handling, Risk, ToolResult, ToolSpec
from kage.providers.media import words
from kage.sessions.artifacts import Artifacts
from kage.sessions.format import decode, encode, to_line
from tests.stubs.media import PIXEL

LIMIT = 1_000
BYTES = base64.b64encode(bytes(range(256))).decode()


def _shown(tmp_path: Path, result: ToolResult, **handling: Any) -> ToolMessage:
    spec = ToolSpec(
        name="s__t", description="", schema={}, risk=Risk.EXEC, handling=Handling(**handling)
    )
    request = CallRequest(call_id="c1", tool=spec, arguments={}, workspace=tmp_path)
    redact = Redactor()
    redact.add("TOKEN", "hunter2hunter2")
    desk = Desk(artifacts=Artifacts(tmp_path / "scratch"), redact=redact, limit=LIMIT)
    return shown(request, result, 0.1, desk)


def _read(message: ToolMessage) -> str:
    """Give what a model without pictures reads."""
    return "\n".join(words(part) for part in message.content)


def _files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    "parts",
    [
        (Text("x" * 5_000),),
        (Resource(uri="file:///a", text="x" * 5_000),),
        (ResourceLink(uri="x" * 5_000),),
        (ResourceLink(uri="a", name="x" * 5_000, description="y" * 5_000),),
        (Text("a"), Resource(uri="file:///a", text="x" * 990), Text("b" * 100)),
        tuple(Text("x") for _ in range(100_000)),
    ],
)
def test_words_of_every_kind_are_cut_and_kept_whole_in_a_file(
    tmp_path: Path, parts: tuple[Content, ...]
) -> None:
    message = _shown(tmp_path, ToolResult(content=parts))
    assert len(_read(message)) <= LIMIT
    (file,) = _files(tmp_path)
    assert file.name == "00001-s__t.txt"
    assert str(file) in _read(message)
    assert file.read_text() == "\n".join(words(part) for part in parts)


def test_many_short_parts_become_one(tmp_path: Path) -> None:
    parts = tuple(Text("x") for _ in range(MAX_PARTS + 1))
    message = _shown(tmp_path, ToolResult(content=parts))
    assert message.content == (Text("\n".join(["x"] * (MAX_PARTS + 1))),)


def test_a_heap_of_pictures_is_cut_with_a_note(tmp_path: Path) -> None:
    image, sound = Image(data=PIXEL, mime="image/png"), Audio(data=BYTES, mime="audio/wav")
    message = _shown(tmp_path, ToolResult(content=(image, sound) * 300), max_output_tokens=20_000)
    assert len(message.content) == MAX_PARTS + 1
    assert "[400 more images, sounds or files were left out" in as_text(message.content[:1])
    assert len(_read(message)) <= 80_000


def test_names_of_pictures_alone_do_not_fill_the_message(tmp_path: Path) -> None:
    image = Image(data=PIXEL, mime="image/png")
    message = _shown(tmp_path, ToolResult(content=(image,) * 150))
    assert len(_read(message)) <= LIMIT


def test_every_kind_stays_and_bytes_get_a_copy_in_a_file(tmp_path: Path) -> None:
    parts: tuple[Content, ...] = (
        Text("a"),
        Image(data=PIXEL, mime="image/png"),
        Audio(data=BYTES, mime="audio/mpeg"),
        Resource(uri="file:///a", text="b"),
        Resource(uri="file:///b", blob=BYTES),
        ResourceLink(uri="file:///c", name="c"),
    )
    message = _shown(tmp_path, ToolResult(content=parts), max_output_tokens=25_000)
    image, audio, blob = _files(tmp_path)
    assert [p.name for p in (image, audio, blob)] == [
        "00001-s__t.png",
        "00002-s__t.mp3",
        "00003-s__t.bin",
    ]
    assert message.content == (
        Text("a"),
        Image(data=PIXEL, mime="image/png", path=str(image)),
        Audio(data=BYTES, mime="audio/mpeg", path=str(audio)),
        Resource(uri="file:///a", text="b"),
        Resource(uri="file:///b", blob=BYTES, path=str(blob)),
        ResourceLink(uri="file:///c", name="c"),
    )
    assert image.read_bytes() == base64.b64decode(PIXEL)
    assert blob.read_bytes() == bytes(range(256))
    assert message.summary == "3 files kept"
    assert str(audio) in _read(message)


def test_what_output_sends_to_files_is_named_and_not_shown(tmp_path: Path) -> None:
    parts = (
        Text("plain speech"),
        Resource(uri="file:///a.csv", mime="text/csv", text="x,hunter2hunter2\n"),
        Resource(uri="x", blob=base64.b64encode(b"say hunter2hunter2").decode()),
        Image(data=PIXEL, mime="image/png"),
        Text(f"{NOTE}a warning]", own=True),
    )
    output = {"text": "artifact", "resource": "artifact", "image": "artifact"}
    message = _shown(tmp_path, ToolResult(content=parts), output=output)
    text, table, blob, image = _files(tmp_path)
    assert (text.suffix, table.suffix, blob.suffix, image.suffix) == (
        ".txt",
        ".csv",
        ".txt",
        ".png",
    )
    assert table.read_text() == "x,[redacted:TOKEN]\n"
    assert blob.read_text() == "say [redacted:TOKEN]"
    kinds = [part.of for part in message.content if isinstance(part, Artifact)]
    assert kinds == ["text", "resource", "resource", "image"]
    assert message.content[-1] == Text(f"{NOTE}a warning]", own=True)
    read = _read(message)
    assert all(str(path) in read for path in (text, table, blob, image))
    assert "plain speech" not in read and "x,[" not in read


def test_a_failure_is_always_told_to_the_model(tmp_path: Path) -> None:
    result = ToolResult.error("disk is full")
    message = _shown(tmp_path, result, output=dict.fromkeys(("text", "resource"), "artifact"))
    assert message.content == (Text("disk is full"),)
    long = _shown(tmp_path, ToolResult.error("no! " * 5_000))
    assert long.outcome is Outcome.TOOL_ERROR
    assert len(_read(long)) <= LIMIT and "20,000 characters shown" in _read(long)


def test_broken_bytes_and_a_full_disk_cost_the_file_only(tmp_path: Path) -> None:
    (tmp_path / "scratch").write_text("a file where the folder should be")
    image = Image(data=PIXEL, mime="image/png")
    sick = Image(data="no base64 at all!", mime="image/png")
    table = Resource(uri="a", text="x,y")
    result = ToolResult(content=(image, sick, table, Resource(uri="b", blob=BYTES)))
    message = _shown(tmp_path, result, output={"resource": "artifact"})
    assert message.content[0] == image and message.content[2] == table
    assert "was left out: it is no valid base64" in as_text(message.content[1:2])
    assert "was left out: " in as_text(message.content[3:])


def test_structured_content_is_told_once(tmp_path: Path) -> None:
    same = ToolResult(content=(Text('{"b": [1, 2],\n "a": 1}'),), structured={"a": 1, "b": [1, 2]})
    assert len(_shown(tmp_path, same).content) == 1
    other = ToolResult(content=(Text("done"),), structured={"a": 1})
    message = _shown(tmp_path, other)
    assert message.content == (Text("done"), Text('{\n  "a": 1\n}'))
    assert message.structured == {"a": 1}
    assert decode(json.loads(to_line(encode(message)))) == message


def test_structured_content_is_kept_without_secrets_and_within_reason(tmp_path: Path) -> None:
    secret = ToolResult(content=(), structured={"hunter2hunter2": ["x hunter2hunter2"]})
    assert _shown(tmp_path, secret).structured == {"[redacted:TOKEN]": ["x [redacted:TOKEN]"]}
    large = _shown(tmp_path, ToolResult(content=(), structured=["x" * 2_000_000]))
    assert large.structured is None and len(_read(large)) <= LIMIT
    assert _files(tmp_path)[0].stat().st_size > 2_000_000
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    assert "too deep" in _read(_shown(tmp_path, ToolResult(content=(), structured=deep)))


def test_what_would_hold_up_the_loop_is_told_apart() -> None:
    assert not heavy(ToolResult(content=(Text("x"),)))
    assert heavy(ToolResult(content=(Resource(uri="a", text="x" * 1_000_000),)))
    assert heavy(ToolResult(content=tuple(Text("x") for _ in range(MAX_PARTS + 1))))


_PARTS = st.one_of(
    st.builds(Text, st.text(max_size=3_000)),
    st.builds(Image, data=st.sampled_from([PIXEL, BYTES, "?"]), mime=st.text(max_size=20)),
    st.builds(Audio, data=st.sampled_from([BYTES, ""]), mime=st.just("audio/wav")),
    st.builds(Resource, uri=st.text(max_size=400), text=st.text(max_size=2_000)),
    st.builds(Resource, uri=st.text(max_size=400), blob=st.sampled_from([BYTES, PIXEL, "x"])),
    st.builds(ResourceLink, uri=st.text(max_size=900), name=st.text(max_size=900)),
)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(_PARTS, max_size=12),
    structured=st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=900)),
    kinds=st.sets(st.sampled_from(["text", "image", "audio", "resource"])),
)
def test_the_limit_holds_for_any_mixture(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[Content],
    structured: dict[str, str] | None,
    kinds: set[str],
) -> None:
    folder = tmp_path_factory.mktemp("mixed")
    result = ToolResult(content=tuple(parts), structured=structured)
    message = _shown(folder, result, output=dict.fromkeys(kinds, "artifact"))
    assert len(_read(message)) <= LIMIT
    assert decode(json.loads(to_line(encode(message)))).id == message.id
