"""Pictures and sounds reach the models that take them; others read what was left out, and where."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kage.core.content import Artifact, Audio, Content, Image, Resource, ResourceLink, Text
from kage.core.messages import Message, Outcome, ToolMessage
from kage.providers.anthropic_history import AnthropicHistory
from kage.providers.listing import read_listing
from kage.providers.media import MAX_IMAGE, Takes, portray, words
from kage.providers.openai_history import OpenAIHistory
from kage.providers.table import listens
from tests.providers.asking import answered, called, gave
from tests.stubs.media import PIXEL

BOTH = Takes(images=True, audio=True)
WAV = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)).decode()
MP3 = base64.b64encode(b"ID3\x04" + bytes(40)).decode()
PICTURE = Image(data=PIXEL, mime="image/jpeg", path="/kept/1.png")
SOUND = Audio(data=WAV, mime="audio/x-odd", path="/kept/2.wav")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (PICTURE, Image(data=PIXEL, mime="image/png")),
        (Resource(uri="a", mime="Image/PNG", blob=PIXEL), Image(data=PIXEL, mime="image/png")),
        (SOUND, Audio(data=WAV, mime="wav")),
        (Resource(uri="a", mime="audio/mpeg", blob=MP3), Audio(data=MP3, mime="mp3")),
    ],
)
def test_bytes_and_not_labels_say_what_a_part_is(part: Content, expected: Content) -> None:
    assert portray(part, BOTH) == expected


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Image(data="A" * (MAX_IMAGE + 4), mime="image/png", path="/kept/1"), "may have 3.9 MB"),
        (Image(data="bm90IGEgcGljdHVyZSBhdCBhbGw=", mime="image/png", path="/kept/1"), "no PNG"),
        (Image(data="%", mime="image/png", path="/kept/1"), "no PNG"),
        (Audio(data=PIXEL, mime="audio/wav", path="/kept/1"), "no WAV or MP3"),
        (Resource(uri="a", mime="application/pdf", blob=PIXEL, path="/kept/1"), "cannot take it"),
    ],
)
def test_what_is_left_out_says_why_and_where_it_lies(part: Content, why: str) -> None:
    told = portray(part, BOTH)
    assert isinstance(told, str)
    assert why in told and "/kept/1" in told


def test_a_model_that_takes_only_words_reads_of_every_kind() -> None:
    parts: tuple[Content, ...] = (
        PICTURE,
        SOUND,
        Artifact(path="/kept/3.csv", of="resource", mime="text/csv", size=7, uri="x://y"),
        ResourceLink(uri="x://z", name="z", description="the last one"),
        Resource(uri="x://t", text="inside"),
    )
    told = [portray(part, Takes()) for part in parts]
    assert all(isinstance(text, str) for text in told)
    assert told == [words(part) for part in parts]
    for text, word in zip(
        told, ("/kept/1", "/kept/2", "/kept/3", "the last", "inside"), strict=True
    ):
        assert word in str(text)


def _conversation(outcome: Outcome = Outcome.OK) -> tuple[Message, ...]:
    result: ToolMessage = gave("c1", Text("here"), PICTURE, SOUND, outcome=outcome)
    return (answered(called("c1")), result)  # type: ignore[no-untyped-call]


def _openai(outcome: Outcome = Outcome.OK, **takes: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        OpenAIHistory("openai:x", **takes).render("", _conversation(outcome))
    )
    return found


def test_chat_completions_get_media_in_a_message_behind_the_results() -> None:
    *_, result, media = _openai(images=True, audio=True)
    assert result["role"] == "tool" and "here" in result["content"]
    kinds = [block["type"] for block in media["content"]]
    assert (media["role"], kinds) == ("user", ["text", "image_url", "input_audio"])
    assert media["content"][2]["input_audio"] == {"data": WAV, "format": "wav"}
    deaf = _openai(images=True)
    assert "/kept/2.wav" in deaf[-2]["content"] and len(deaf[-1]["content"]) == 2
    blind = _openai(images=False)
    assert blind[-1]["role"] == "tool"
    assert "/kept/1.png" in blind[-1]["content"] and PIXEL not in json.dumps(blind)
    failed = _openai(Outcome.TOOL_ERROR)
    assert failed[-1]["content"][1]["type"] == "image_url"


def test_messages_get_pictures_inside_the_result_and_words_in_a_failed_one() -> None:
    def blocks(outcome: Outcome) -> list[dict[str, Any]]:
        history = AnthropicHistory("anthropic:x").render(_conversation(outcome))
        found: list[dict[str, Any]] = json.loads(history)[-1]["content"][0]["content"]
        return found

    fine = blocks(Outcome.OK)
    assert [block["type"] for block in fine] == ["text", "image", "text"]
    assert fine[1]["source"]["media_type"] == "image/png"
    assert "/kept/2.wav" in fine[2]["text"]
    failed = blocks(Outcome.TOOL_ERROR)
    assert [block["type"] for block in failed] == ["text", "text", "text"]
    assert "/kept/1.png" in failed[1]["text"] and "takes only text" in failed[1]["text"]


def test_what_a_model_takes_is_known_by_listing_or_by_name() -> None:
    data = {"data": [{"id": "m", "architecture": {"input_modalities": ["text", "audio"]}}]}
    (info,) = read_listing("local", data)
    assert (info.images, info.audio) == (False, True)
    assert listens("openai", "gpt-audio") and listens("openai", "gpt-4o-audio-preview")
    assert not listens("openai", "gpt-5.5") and not listens("anthropic", "gpt-audio")
