"""How parsed markdown looks, and that nothing in it can act."""

from __future__ import annotations

import pytest

from kage.tui.transcript.cells import width
from kage.tui.transcript.markdown.highlight import colour, colour_line
from kage.tui.transcript.markdown.parse import parse
from kage.tui.transcript.markdown.table import fit
from kage.tui.transcript.model import TranscriptModel
from tests.tui.transcript.drawing import lines, reply


def _roles(text: str) -> dict[str, str]:
    model = TranscriptModel()
    model.add_reply("r", text, "m")
    return {span.text: span.role for line in lines(model)[2:] for span in line.spans}


def test_inline_styles_nest() -> None:
    roles = _roles("a **b *c* `d`** ~~e~~")
    assert roles["b "] == "strong"
    assert roles["c"] == "strong.em"
    assert roles["d"] == "strong.code"
    assert roles["e"] == "strike"


def test_nested_lists_indent_and_change_their_bullet() -> None:
    assert reply("- a\n  - b\n    - c\n- d\n\n9. x\n10. y") == [
        "• a", "  ◦ b", "    ▪ c", "• d", "", "9. x", "10. y",
    ]  # fmt: skip


def test_a_list_item_hangs_when_it_wraps() -> None:
    rows = reply("- " + "word " * 12, 30)
    assert rows[0].startswith("• word")
    assert all(row.startswith("  word") for row in rows[1:])


def test_a_table_aligns_by_cells_and_fits_the_screen() -> None:
    text = "| name | 数 |\n|:--|--:|\n| 語語 | 1 |\n| b | 22 |"
    assert reply(text) == ["name │ 数", "─────┼───", "語語 │  1", "b    │ 22"]
    wide = "| a | b |\n|---|---|\n| " + "long words here " * 6 + "| x |"
    for size in (12, 30, 60):
        assert all(width(row) <= size for row in reply(wide, size)), size


def test_a_table_that_cannot_fit_becomes_a_list() -> None:
    rows = reply("| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |", 14)
    assert "".join(rows).replace(" ", "") == "a:1b:2c:3d:4"


def test_columns_share_what_there_is() -> None:
    assert fit([3, 50, 50], 33) == [3, 15, 15]
    assert fit([3, 5], 20) == [3, 5]
    assert sum(fit([9, 9, 9], 10)) == 10


def test_a_quote_keeps_its_bar_on_every_row() -> None:
    assert all(row.startswith("▎ ") for row in reply("> " + "word " * 30, 40))


def test_a_fence_is_coloured_and_its_long_lines_are_cut_not_dropped() -> None:
    code = "def f():\n    return '" + "x" * 100 + "'"
    rows = reply(f"```python\n{code}\n```", 40)
    assert all(row.startswith("│") for row in rows)
    assert (
        "".join(row.removeprefix("│ ") for row in rows[1:]).strip() == code.split("\n")[1].strip()
    )
    assert _roles("```py\ndef f(): pass\n```")["def"] == "block.keyword"


def test_an_unknown_language_is_plain() -> None:
    assert colour(("x = 1",), "no-such-language")[0][0].role == "block"
    assert colour_line("x" * 5_000, "python")[0].role == "block"


def test_colouring_keeps_every_character_of_every_line() -> None:
    code = ("", "def f():", "\t'''doc", "", "  more'''", '語 = "é"  ', "", "")
    for info in ("python", "js", "html", "json", "diff", "bash", "", "C++"):
        rows = colour(code, info)
        assert ["".join(span.text for span in row) for row in rows] == [
            line.replace("\t", "    ") for line in code
        ], info


def test_a_lexer_that_fails_costs_the_colours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr("kage.tui.transcript.pieces.code_lines", fail)
    assert reply("```py\nx = 1\n```") == ["x = 1"]


def test_html_is_text() -> None:
    assert reply("<script>alert(1)</script> <b>x</b>") == ["<script>alert(1)</script> <b>x</b>"]
    assert reply("<!-- note -->\n\nafter") == ["<!-- note -->", "", "after"]


def test_markup_of_the_interface_is_text() -> None:
    assert reply("[@click=app.quit]x[/] [bold]y[/bold]") == ["[@click=app.quit]x[/] [bold]y[/bold]"]


@pytest.mark.parametrize(
    "text",
    [
        "&#x202e;evil", "[x](http://a/%E2%80%AE)", "![&#x202e;](u)", "`\u202e`", "\x1b]52;c;x\x07",
        "```\n\x1b[2J\n```", "```&#x202e;\nx\n```", "| \u200b |\n|---|\n| \x9b |", "# \u2066",
        "[a]: http://x/\u202e\n\n[a]", "<http://x/\u202e>", "&#8203;&#xfeff;", "**\x00**",
    ],
)  # fmt: skip
def test_nothing_that_could_act_on_a_terminal_reaches_a_row(text: str) -> None:
    for row in reply(text):
        for character in row:
            assert character.isprintable() or character == " ", repr(row)
            assert character not in "\u202e\u200b\u2066\ufeff\x1b\x9b"


def test_a_link_shows_where_it_leads_and_only_web_addresses_open() -> None:
    model = TranscriptModel()
    model.add_reply("r", "[site](https://a.b/c) [bad](javascript:x) https://d.e/f.", "m")
    spans = [span for line in lines(model)[2:] for span in line.spans]
    assert "".join(span.text for span in spans).strip().startswith("site (https://a.b/c)")
    assert {span.link for span in spans} == {"", "https://a.b/c", "https://d.e/f"}


def test_a_reference_defined_later_is_used_once_the_reply_is_whole() -> None:
    model = TranscriptModel()
    model.begin_reply("r", "m")
    model.stream_text("r", "see [docs]\n\n")
    model.blocks[0].pieces()
    model.stream_text("r", "[docs]: https://a.b/\n")
    model.end_reply("r", stop="end")
    assert any(span.link == "https://a.b/" for line in lines(model) for span in line.spans)


@pytest.mark.parametrize(
    "text", ["[" * 6_000, "> " * 3_000, "- " * 3_000, "*a " * 2_000, "`" * 6_000]
)
def test_hostile_nesting_is_parsed_without_failing(text: str) -> None:
    parse(text)
    for size in (1, 2, 5, 80):
        assert reply(text[:500], size) is not None


def test_every_width_down_to_one_cell_can_be_drawn() -> None:
    text = (
        "# h\n\n> - a\n>   1. b\n\n| a | b |\n|-|-|\n| 語 | x |\n\n```py\nx\n```\n\n---\n👩‍👩‍👧 語"
    )
    model = TranscriptModel()
    model.add_user("u", "語 text")
    model.add_reply("r", text, "anthropic:model", thinking="hm")
    model.fold_all(True)
    for size in range(1, 60):
        for line in lines(model, size):
            assert width(line.text) <= max(size, 2), (size, line)
