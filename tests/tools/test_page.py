"""HTML to text: whatever a page holds, something readable comes out in time."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.tools import page, programs, workers


def convert(source: str, *, timeout: float = 30.0) -> str:
    async def main() -> bytes:
        data, _ = await workers.run(
            programs.Groups(),
            "kage.tools.page",
            page.request(source, "https://example.com/"),
            timeout=timeout,
            most=1 << 25,
            libraries=True,
        )
        return data

    return asyncio.run(main()).decode()


def test_deep_nesting_becomes_plain_text() -> None:
    assert "bottom" in convert("<div>" * 50_000 + "bottom" + "</div>" * 50_000)


HOSTILE = ["<", "<!--", "<a ", "<script>", "&", "<p>x", "<![CDATA[", "<svg>", "</", "<a b='"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_plain_way_takes_time_in_proportion(piece: str) -> None:
    started = time.monotonic()
    page.to_text(piece * 300_000)
    assert time.monotonic() - started < 10  # what grows with the square takes hours


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_worker_answers_or_is_ended(piece: str) -> None:
    with contextlib.suppress(TimeoutError):
        convert(piece * 20_000, timeout=3.0)


def test_the_plain_way_leaves_out_scripts_and_tags() -> None:
    source = "<p>a &lt; b</p><SCRIPT>evil()</SCRIPT><!-- no --><b>İ c</b> 1 < 2"
    assert page.to_text(source) == "a < b\nİ c 1 < 2"


@given(st.text(alphabet="<>/!-ab &;\"'=script", max_size=80))
def test_the_plain_way_takes_anything(source: str) -> None:
    page.to_text(source)


def test_a_worker_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        convert("<p>x</p>" * 200_000, timeout=0.2)
