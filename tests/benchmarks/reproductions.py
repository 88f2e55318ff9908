"""The fourteen ways in which a library was broken in an attack over two hours, and the tests by which each is held.

``make lint`` fails when one of them is missing.
"""

REPRODUCTIONS = {  # what was broken -> the tests (file::name) that fail where it is again
    "a flipped bit of the stored text, a title or an edition answers": (
        "library/test_flips.py",
        "library/test_generations.py::test_a_flipped_bit_in_any_file_is_found",
    ),
    "a lost `current` loses the library, and with ledger and access file restrictions and withdrawals": (
        "upkeep/test_repair.py::test_without_the_link_nothing_is_answered_built_or_removed",
        "upkeep/test_repair.py::test_repair_serves_what_was_served_and_the_withdrawal_holds",
        "upkeep/test_repair.py::test_what_is_lost_is_shown_and_asked_about",
    ),
    "a ledger emptied or cut at a line's end answers": (
        "site/test_in_force.py::test_what_was_altered_stops_everything_until_it_is_repaired",
        "site/test_in_force.py::test_the_manifest_knows_a_journal_that_was_cut_with_its_copy",
    ),
    "one changed letter in the access file opens a collection": (
        "site/test_in_force.py::test_no_single_character_changed_in_a_row_lifts_anything",
        "site/test_in_force.py::test_an_older_file_put_in_its_place_is_missed",
    ),
    "a full, locked or read-only disk takes answers, or a change that is done is called failed": (
        "site/test_audit.py::test_an_answer_that_cannot_be_audited_now_is_given_and_entered_later",
        "site/test_audit.py::test_a_change_that_cannot_be_noted_is_refused_before_it_takes_effect",
        "site/test_audit.py::test_a_change_whose_outcome_cannot_be_noted_is_done_and_says_so",
        "site/test_audit.py::test_a_library_that_may_not_be_written_to_can_be_read",
    ),
    "an original that was replaced is drawn, and nothing says so": (
        "site/test_stored.py::test_an_original_that_is_another_or_lost",
        "cli/test_errors.py::test_an_original_that_was_replaced_is_not_drawn",
    ),
    "access: kept answers, scores and counts, replaced_by, replay, --as-group, LOCALMED_CONFIG, readers' rights": (
        "cli/test_hidden.py::test_a_kept_answer_is_resolved_against_the_catalogue",
        "cli/test_hidden.py::test_what_is_hidden_changes_nothing_of_what_is_printed",
        "cli/test_hidden.py::test_a_hidden_thing_is_as_unknown_as_one_that_is_not_there",
        "cli/test_hidden.py::test_settings_elsewhere_narrow_and_never_widen",
        "site/test_audit.py::test_who_may_not_write_gets_no_group_by_asking_for_it",
        "cli/test_hidden.py::test_the_id_of_a_hidden_successor_is_not_told",
        "site/test_audit.py::test_a_library_that_may_not_be_written_to_can_be_read",
    ),
    "terminal escapes in file names and titles": ("cli/test_terminal.py::test_names_and_titles_are_not_obeyed",),
    "patient text in a core dump, or only as an argument": ("cli/test_process.py",),
    "endless files, and rules that are not linear": (
        "cli/test_file_arguments.py",
        "cli/test_long_texts.py",
    ),
    "damage is told as an unexpected error": (
        "cli/test_damage.py",
        "cli/test_errors.py::test_a_file_in_the_place_of_a_folder_is_damage",
    ),
    "a damaged vector cache changes rankings": (
        "site/test_stored.py::test_a_damaged_vector_costs_nothing_and_is_said",
    ),
    "a kill during a withdrawal leaves the document in force and unlogged; a deleted audit log is not missed": (
        "site/test_in_force.py::test_a_withdrawal_that_is_killed",
        "site/test_state.py::test_nothing_is_answered_until_it_was_put_right_and_the_stop_holds_then",
        "site/test_audit.py::test_a_tail_cut_behind_a_head_that_was_taken_away_is_seen_every_time",
    ),
    "cells that a spreadsheet would run": (
        "ingest/test_governance_sheet.py::test_a_name_that_a_screen_or_a_spreadsheet_obeys_comes_back",
    ),
}
