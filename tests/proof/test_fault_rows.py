"""Every way a server, a file or a machine can fail, and the tests that prove what kage does then.

A row without a test, or with one that is gone, fails here; so does a stub nothing runs.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
KAGE = TESTS.parent / "kage"

CLIENT = "mcp/client/test_"
MATRIX = "proof/test_fault_matrix.py::test_"
WEB = "proof/test_web_faults.py::test_"
_WEB_START = f"{WEB}each_address_that_does_not_answer_well_is_told_once_with_its_reason"
_WEB_CALL = f"{WEB}each_answer_that_goes_wrong_costs_its_call_alone"
_STARTS = f"{MATRIX}each_server_that_does_not_start_is_told_once_with_stage_and_reason"
_CALLS = f"{MATRIX}each_call_that_fails_has_one_honest_result_and_the_run_goes_on"
_LIVES = f"{MATRIX}what_kage_can_live_with_costs_no_call_and_no_report"
_OWN = "proof/test_own_files.py::test_no_damage_to_its_files_keeps_kage_from_running"

FAILURES: dict[str, tuple[str, ...]] = {
    "command missing, not executable, bad folder": (
        _STARTS,
        f"{CLIENT}manager.py::test_a_start_no_further_try_can_mend_is_not_tried_again",
        f"{CLIENT}watchdog.py::test_a_program_that_cannot_run_is_an_os_error_that_names_it",
    ),
    "exits at the start": (
        _STARTS,
        f"{CLIENT}manager.py::test_a_server_that_dies_at_its_start_is_tried_again_by_the_backoff",
    ),
    "hangs at the start": (
        _STARTS,
        _WEB_START,
        f"{CLIENT}manager.py::test_a_silent_old_server_costs_two_seconds"
        "_and_one_that_dies_of_the_probe_works",
        f"{CLIENT}manager.py::test_start_returns_before_anything_is_up",
    ),
    "crashes while idle": (
        f"{MATRIX}a_crash_while_idle_takes_the_tools_away_and_is_told_once_per_try",
        f"{CLIENT}manager.py::test_a_crashed_server_leaves_the_registry_and_comes_back",
        f"{CLIENT}http.py::test_an_older_server_comes_back_when_its_stream_ends",
    ),
    "crashes in a call": (
        _CALLS,
        _WEB_CALL,
        f"{CLIENT}connection.py::test_a_crash_in_a_call_leaves_its_outcome_unknown_and_says_why",
        f"{CLIENT}connection.py::test_a_crash_by_a_signal_names_the_signal",
    ),
    "exit unnoticed: a grandchild holds stdout": (
        f"{CLIENT}connection.py::test_an_exit_is_noticed_although_a_grandchild_holds_the_output",
    ),
    "hangs in a call": (
        _CALLS,
        f"{CLIENT}connection.py::test_silence_ends_a_call_at_its_limit_and_the_server_is_told",
        f"{CLIENT}tap.py::test_a_second_answer_to_one_request_is_dropped",
        f"{CLIENT}http_faults.py::test_a_drip_ends_by_the_limit_of_its_call",
    ),
    "progress for ever": (
        f"{CLIENT}connection.py::test_progress_for_ever_ends_at_the_hard_limit",
        f"{CLIENT}http.py::test_progress_arrives_and_keeps_a_call_alive",
    ),
    "stops reading": (
        _CALLS,
        f"{CLIENT}connection.py::test_a_server_that_stops_reading_cannot_hold_a_call_past_its_limit",
        f"{CLIENT}stdio_transport.py::test_a_stalled_write_is_seen_and_blocks_nothing_else",
    ),
    "floods: stderr": (
        f"{CLIENT}stdio_transport.py::test_a_million_lines_on_stderr"
        "_are_drained_and_the_last_ones_kept",
        _LIVES,
    ),
    "floods: notifications and progress": (
        f"{CLIENT}stdio_transport.py::test_the_loop_stays_awake_during_floods",
        f"{CLIENT}framing.py::test_a_progress_flood_keeps_the_last_of_each_call",
        f"{CLIENT}framing.py::test_a_flood_of_anything_is_bounded_and_counted",
        f"{CLIENT}connection.py::test_a_flood_of_notices_does_not_stop_a_call",
        f"{CLIENT}http.py::test_a_flood_of_notices_stops_neither_its_call_nor_others",
    ),
    "floods: requests": (f"{CLIENT}tap.py::test_a_server_cannot_pile_up_requests",),
    "a huge or endless line": (
        _CALLS,
        f"{CLIENT}stdio_transport.py::test_a_line_of_100_mb_costs_that_call_only",
        f"{CLIENT}stdio_transport.py::test_an_endless_line_fails_its_call_before_it_ends",
        f"{CLIENT}stdio_transport.py::test_a_long_line_without_an_id"
        "_ends_the_connection_with_the_reason",
    ),
    "garbage on stdout": (
        _LIVES,
        f"{CLIENT}stdio_transport.py::test_text_on_stdout_is_counted_and_skipped",
        f"{CLIENT}framing.py::test_any_bytes_are_survived",
    ),
    "invalid UTF-8": (
        _LIVES,
        f"{CLIENT}stdio_transport.py::test_bad_bytes_cost_only_themselves",
    ),
    "null or too deep result": (
        _CALLS,
        f"{CLIENT}framing.py::test_an_answer_whose_result_is_no_object_fails_that_call",
        f"{CLIENT}framing.py::test_nothing_deeper_than_the_limit_is_passed_on",
    ),
    "wrong version": (
        _STARTS,
        f"{CLIENT}manager.py::test_a_revision_nobody_knows_is_named_beside_those_kage_speaks",
    ),
    "names: twice, invalid, long, colliding": (
        f"{MATRIX}odd_names_are_made_fit_and_each_still_reaches_its_tool",
        "mcp/test_names.py::test_every_name_is_legal_and_no_two_are_the_same",
        "mcp/test_names.py::test_names_do_not_depend_on_the_order",
    ),
    "odd schemas": (
        f"{MATRIX}invalid_tools_cost_only_themselves_and_are_named_once",
        "providers/test_projection.py::test_any_json_becomes_an_acceptable_schema",
        "proof/test_results.py::test_a_deferred_call_is_checked_against_the_servers_own_schema",
    ),
    "10,000 tools": (
        "proof/test_tool_faults.py::test_ten_thousand_tools_start_are_searched_and_called",
        f"{CLIENT}manager.py::test_pages_are_followed_to_their_end_and_no_further",
    ),
    "list_changed storm": (
        f"{MATRIX}a_storm_of_changes_ends_with_the_right_tools",
        f"{CLIENT}manager.py::test_a_storm_of_change_notices_ends_in_the_right_list",
    ),
    "odd results": (
        f"{CLIENT}connection.py::test_an_odd_answer_fails_its_call_at_once_and_nothing_else",
        f"{CLIENT}adapter.py::test_no_result_makes_the_reader_fail",
        _WEB_CALL,
    ),
    "restart, and the new one fails": (
        f"{CLIENT}manager.py::test_a_failing_restart_keeps_the_old_one_and_says_why",
        f"{CLIENT}manager.py::test_an_exclusive_server_is_stopped_before_its_successor_starts",
        "proof/test_screen_runs.py::test_restart_replaces_a_server_and_a_failing_one_keeps_the_old",
    ),
    "quit, with stubborn servers": (
        f"{CLIENT}manager.py::test_everything_ends_at_once_whatever_servers_do",
        f"{CLIENT}stdio_transport.py::test_close_ends_the_group_although_the_leader_left_at_eof",
        "proof/test_print_runs.py::test_a_second_interrupt_does_not_wait_for_a_deaf_server",
        "proof/test_terminal_runs.py::test_who_cannot_wait_for_a_deaf_server_leaves_at_once",
    ),
    "kage is killed by SIGKILL": (
        "proof/test_print_runs.py::test_no_signal_leaves_a_process_behind",
        f"{CLIENT}watchdog.py::test_nothing_survives_a_killed_host",
        f"{CLIENT}watchdog.py::test_a_child_whose_host_dies_before_the_go_line_never_runs",
    ),
    "SIGTERM, SIGHUP, a closed terminal": (
        "proof/test_terminal_runs.py::test_a_signal_leaves_no_process_within_six_seconds",
        "proof/test_terminal_runs.py::test_a_closed_window_leaves_no_process",
        "tui/test_terminal.py::test_a_signal_in_the_middle_of_a_reply_gives_the_terminal_back",
    ),
    "a storm of resizes, odd sizes": (
        "tui/test_screens.py::test_a_storm_of_resizes_does_no_harm",
        "tui/test_screens.py::test_every_screen_draws_at_every_size",
    ),
    "disk full, read-only, file limit": (
        "proof/test_own_files.py::test_a_full_disk_costs_no_call_and_is_said_without_end",
        "proof/test_own_files.py::test_too_few_descriptors_fail_servers_and_not_kage",
        f"{MATRIX}without_a_place_to_write_the_run_goes_on_in_memory_and_says_so",
        "sessions/test_sessions.py::test_a_disk_that_takes_nothing_costs_no_message",
        f"{CLIENT}journal.py::test_a_full_disk_is_survived",
    ),
    "half-written or spoiled files": (
        _OWN,
        "core/test_files.py::test_what_is_no_regular_file_is_refused_at_once",
        f"{MATRIX}a_corrupt_session_loads_what_is_whole_and_says_what_was_dropped",
        f"{MATRIX}corrupt_grants_allow_nothing_and_are_told_once",
        "config/test_faults.py::test_a_broken_file_is_a_fault_and_is_never_written",
        "config/test_trust.py::test_a_spoiled_file_trusts_nothing_and_is_kept_beside",
        f"{CLIENT}manifest.py::test_a_broken_file_counts_as_none_and_is_replaced",
        f"{CLIENT}http_faults.py::test_a_broken_file_of_verdicts_counts_as_none",
        "mcp/client/oauth/test_keeping.py::test_a_damaged_file_is_said_and_kept_aside",
        "sessions/test_artifacts.py::test_half_written_files_of_a_dead_kage_are_removed",
    ),
    "two kages in one folder": (
        "proof/test_two_kages.py::test_sessions_never_mix_and_the_log_stays_whole",
        "permissions/decisions/test_log.py::test_five_kages_at_once_keep_it_whole",
        "permissions/test_grants.py::test_two_kages_keep_each_others_grants",
        "config/test_trust.py::test_two_kages_keep_what_the_other_wrote_and_see_it",
        "config/test_edit.py::test_two_that_write_at_once_lose_nothing",
        f"{CLIENT}http_faults.py::test_verdicts_survive_and_are_shared",
        f"{CLIENT}shelf.py::test_two_managers_of_one_process_never_share_a_folder",
        "mcp/client/oauth/test_keeping.py::test_two_processes_renew_once",
    ),
    "the clock jumps": (
        "proof/test_fault_rows.py::test_the_clock_on_the_wall_is_read_only_where_a_date_is_kept",
        "permissions/decisions/test_log.py::test_a_clock_that_goes_back_does_not_reopen_a_finished_month",
    ),
    "odd characters in names, paths and texts": (
        "core/test_sanitise.py::test_nothing_that_acts_or_hides_is_left",
        "tui/test_screens.py::test_words_of_strangers_are_never_parsed_and_never_act",
        f"{CLIENT}journal.py::test_odd_text_can_be_written",
    ),
}

SDK: dict[str, tuple[str, ...]] = {
    "its clock starts after the write": FAILURES["stops reading"],
    "its one bad byte, its unparsable answers": (*FAILURES["invalid UTF-8"], _CALLS),
    "its list that fails as a whole": FAILURES["odd schemas"],
    "its buffer without a cap": FAILURES["a huge or endless line"],
    "its tasks without a bound": FAILURES["floods: notifications and progress"],
    "its groups that are not killed": FAILURES["quit, with stubborn servers"],
    "guessed and misspelt ids": (
        f"{CLIENT}tap.py::test_an_answer_finds_its_request_by_an_id_nobody_can_guess",
        f"{CLIENT}tap.py::test_an_id_that_comes_back_as_text_fails_its_request",
    ),
    "pages without an end": (
        f"{CLIENT}manager.py::test_pages_are_followed_to_their_end_and_no_further",
    ),
    "raw escapes in its exceptions": (
        "proof/test_print_runs.py::test_what_a_server_or_model_says_never_acts_on_the_terminal",
    ),
    "HTTP: one bad answer ends the client": (
        _WEB_CALL,
        f"{CLIENT}http_faults.py::test_one_bad_answer_costs_one_call",
    ),
    "HTTP: no cap on what is unpacked": (
        _WEB_CALL,
        f"{CLIENT}http_faults.py::test_an_answer_over_the_limit_is_not_kept",
        f"{CLIENT}http_parts.py::test_a_bomb_stops_at_the_limit",
    ),
    "HTTP: status, redirects, content type, storms of streams": (
        _WEB_START,
        f"{CLIENT}http_faults.py::test_a_start_that_fails_says_why_and_what_to_do",
        f"{CLIENT}http_faults.py::test_a_header_never_reaches_another_origin",
        f"{CLIENT}http.py::test_a_stream_that_breaks_is_opened_again_and_not_too_often",
    ),
}

PROMISES: dict[str, tuple[str, ...]] = {
    "a crashed server leaves the registry": FAILURES["crashes while idle"],
    "backoff": (
        f"{CLIENT}manager.py"
        "::test_the_waits_double_up_to_the_cap_and_start_anew_after_a_healthy_minute",
        f"{CLIENT}manager.py"
        "::test_a_server_that_keeps_crashing_is_started_five_times_more_and_then_failed",
    ),
    "health": (
        f"{CLIENT}manager.py"
        "::test_a_server_that_stops_answering_is_replaced_but_not_one_that_is_busy",
        f"{CLIENT}manager.py::test_health_checks_ask_what_the_revision_has",
        f"{CLIENT}replacing.py::test_no_health_interval_means_no_ping",
    ),
    "limits of a call": FAILURES["hangs in a call"],
    "no call lost, none doubled": (
        f"{CLIENT}replacing.py::test_a_storm_of_replacements_loses_and_doubles_no_call",
    ),
    "what the model reads is bounded": (
        "proof/test_results.py"
        "::test_a_flood_is_cut_and_the_rest_read_from_the_file_without_a_question",
        "agent/test_results.py::test_the_limit_holds_for_any_mixture",
    ),
    "no secret in any file or output": (
        "proof/test_print_runs.py::test_a_secret_of_a_server_is_in_no_file_and_no_output",
        "core/test_redact.py::test_every_encoded_form_is_replaced",
    ),
    "lazy start and rest": (
        f"{CLIENT}lazy.py"
        "::test_a_server_met_before_is_known_without_a_process_and_the_first_call_starts_it",
        f"{CLIENT}lazy.py::test_a_definition_that_changed_while_it_slept_is_not_called",
    ),
    "nothing new starts unseen": (
        "cli/test_trust.py"
        "::test_a_running_kage_holds_what_is_written_and_hears_of_trust_from_another_shell",
        "proof/test_hostile_repository.py::test_no_command_starts_anything_of_a_cloned_repository",
    ),
    "what a tool says of itself changes nothing": (
        "proof/test_tool_faults.py"
        "::test_a_tool_that_calls_itself_harmless_is_not_run_without_an_answer",
        f"{CLIENT}adapter.py::test_every_tool_is_exec_risk_whatever_it_claims",
    ),
    "every call has a decision": (
        "proof/test_gate_holds.py::test_no_call_of_a_server_leaves_without_an_answer",
        "proof/test_gate_holds.py::test_every_call_that_ran_has_a_record_before_and_after",
    ),
}

ROWS = {**FAILURES, **SDK, **PROMISES}

# where a date is written down, shown as an age, or compared with one somebody else gave
DATED = {
    "agent/effects.py",
    "agent/undo.py",
    "cli/login.py",
    "cli/status.py",
    "config/trustfile.py",
    "mcp/client/servers/journal.py",
    "mcp/client/oauth/records.py",  # a token outlives kage, so its end is a date
    "permissions/claims.py",
    "permissions/grants.py",
    "permissions/pins/book.py",
    "permissions/decisions/query.py",  # since=7d
    "providers/errors.py",  # Retry-After may name one
    "sessions/writer.py",
    "tools/effects/repository.py",  # beside the times of files
    "tui/screens/lists.py",
    "tui/widgets/welcome.py",
}


def _names(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_names_tests_that_are_there(row: str) -> None:
    assert ROWS[row]
    for test in ROWS[row]:
        file, _, name = test.partition("::")
        assert name in _names(TESTS / file), test


def test_every_stub_server_is_run_by_a_test() -> None:
    sources = "\n".join(file.read_text() for file in TESTS.rglob("test_*.py"))
    sources += "\n".join(file.read_text() for file in TESTS.rglob("harness.py"))
    for stub in (TESTS / "stubs").glob("*.py"):
        if stub.stem not in {"__init__", "base"}:
            assert stub.stem in sources, f"nothing runs {stub.name}"


def _reads_the_wall(node: ast.AST) -> bool:
    """Say whether a call asks what date it is: ``time.time()``, ``datetime.now()``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else ""
    return (name, node.func.attr) in {
        ("time", "time"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today"),
    }  # fmt: skip


def test_the_clock_on_the_wall_is_read_only_where_a_date_is_kept() -> None:
    """Limits, waits and health go by a clock that does not jump."""
    found = {
        str(file.relative_to(KAGE))
        for file in KAGE.rglob("*.py")
        if any(map(_reads_the_wall, ast.walk(ast.parse(file.read_text()))))
    }
    assert found == DATED
