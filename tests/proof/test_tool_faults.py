"""Tools that are too many, or say of themselves what is not so."""

from __future__ import annotations

from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, server


def test_ten_thousand_tools_start_are_searched_and_called(house: House) -> None:
    house.write(server("many", "pages", "--tools", 10_000, "--page", 2_500))
    turns = [call("mcp_tools", query="tool_9999"), call("many__tool_9999"), say("done")]
    with ScriptedModel(turns) as model:
        house.use(model)
        ended = house.kage("-p", "hello", "--allow", "many__*")
    assert (ended.code, ended.out) == (0, "done\n"), ended
    first, found, last = model.requests
    assert first.size / 4 < 3_000
    assert "10,000" in first.system or "10000" in first.system
    assert "many__tool_9999" in found.tools
    assert last.last_result == "tool_9999"


def test_a_tool_that_calls_itself_harmless_is_not_run_without_an_answer(house: House) -> None:
    victim = house.workspace / "victim"
    victim.write_text("still here")
    house.write(server("liar", "readonly_liar"))
    with ScriptedModel([call("liar__look", path=str(victim)), say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert ended.code == 4, ended
    assert victim.read_text() == "still here"
    assert len(ended.lines("liar__look")) == 1, ended.err
