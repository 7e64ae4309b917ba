//! What every figure of `/metrics` means: its help text. A test refuses a figure that is counted somewhere and not named here.

use FigureKind::{Counter, Gauge, Histogram};

/// How a figure moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureKind {
    Counter,
    Gauge,
    Histogram,
}

/// Every figure, by name.
const FIGURES: [(FigureKind, &str, &str); 44] = [
    (Gauge, "process_open_fds", "Open file descriptors."),
    (Gauge, "process_resident_memory_bytes", "Memory that is in RAM."),
    (
        Gauge,
        "process_start_time_seconds",
        "When the process started, since the Unix epoch.",
    ),
    (
        Gauge,
        "provost_backtests_at_work",
        "Backtests that are computed now.",
    ),
    (
        Gauge,
        "provost_backup_age_seconds",
        "Since the last backup of `provost store backup --to`; absent where none is known beside the data.",
    ),
    (
        Gauge,
        "provost_build_info",
        "Always 1; the label names the version.",
    ),
    (
        Gauge,
        "provost_checkpoint_lag_seconds",
        "Since the oldest entry of an audit log that no signed checkpoint covers; 0 where all are covered.",
    ),
    (
        Gauge,
        "provost_clock_doubted",
        "1 while the clock is doubted for the reason of the label: nothing is removed then.",
    ),
    (
        Histogram,
        "provost_decision_judge_seconds",
        "Time to judge one event under the live policies, without reading, recording and answering.",
    ),
    (
        Counter,
        "provost_decisions_total",
        "Decisions that were given out, by action and mode.",
    ),
    (
        Counter,
        "provost_device_decision_mismatches_total",
        "Decisions of devices that the server, asked again, took otherwise.",
    ),
    (
        Counter,
        "provost_device_decisions_judged_again_total",
        "Decisions of devices that the server judged again.",
    ),
    (
        Counter,
        "provost_device_decisions_refused_total",
        "Reports of devices that did not follow what was taken before, by why.",
    ),
    (
        Counter,
        "provost_device_decisions_total",
        "Decisions that devices took and reported.",
    ),
    (
        Counter,
        "provost_ends_unwritten_total",
        "Commits that were refused because what they take away could not be written beside the keys.",
    ),
    (
        Counter,
        "provost_history_chunk_bytes_total",
        "Bytes of the chunks in which events were recorded, before they are sealed.",
    ),
    (
        Counter,
        "provost_history_events_total",
        "Events that were recorded.",
    ),
    (
        Counter,
        "provost_history_lost_events_total",
        "Events that were accepted with decisions and could not be recorded.",
    ),
    (
        Counter,
        "provost_history_not_kept_total",
        "Segments that their place took and did not keep as they were written.",
    ),
    (
        Counter,
        "provost_history_orphans_removed_total",
        "Files of interrupted sealings that were removed.",
    ),
    (
        Gauge,
        "provost_history_place_usable",
        "1 while the place of the recorded history is this store's and keeps what is written there; 0: nothing is sealed, and events stay in the database.",
    ),
    (
        Histogram,
        "provost_history_seal_seconds",
        "Time to seal one segment of the recorded history.",
    ),
    (
        Counter,
        "provost_history_unreadable_total",
        "Reads that met a chunk or a segment which cannot be read.",
    ),
    (
        Gauge,
        "provost_history_unsealed_events",
        "Recorded events that wait in the database to be sealed into a segment.",
    ),
    (
        Counter,
        "provost_log_lines_lost_total",
        "Lines of the log that standard error did not take: closed, full, or read too slowly.",
    ),
    (
        Counter,
        "provost_module_worker_starts_failed_total",
        "Processes for Rego modules that could not be started.",
    ),
    (
        Counter,
        "provost_module_workers_killed_total",
        "Processes for Rego modules that ended in the middle of a question.",
    ),
    (
        Gauge,
        "provost_module_workers_unavailable",
        "1 while no process for Rego modules can be started: their policies count as matched.",
    ),
    (
        Counter,
        "provost_otlp_records_total",
        "Records of telemetry that came in, by outcome: read, other, foreign, twice, rejected.",
    ),
    (
        Counter,
        "provost_policy_evaluations_failed_total",
        "Policies that counted as matched because nobody could say, in decisions that were given out, by family.",
    ),
    (
        Gauge,
        "provost_proxy_unnamed",
        "1 where http.behind_proxy is set and http.trusted_proxies is empty: every caller counts as the proxy.",
    ),
    (
        Gauge,
        "provost_removal_waits",
        "1 while a round waits that would remove more than a tenth of what the label names.",
    ),
    (
        Histogram,
        "provost_request_seconds",
        "Time from a request's head to its answer.",
    ),
    (
        Counter,
        "provost_requests_total",
        "Requests, by operation and status.",
    ),
    (
        Gauge,
        "provost_rights_disagreeing",
        "Rows that decide rights and are not what Provost wrote, by the last hourly round.",
    ),
    (
        Counter,
        "provost_rights_unproven_total",
        "Changes that met such a row and did not vouch for it.",
    ),
    (
        Gauge,
        "provost_store_broken",
        "1 after a failed write to the store, until a restart.",
    ),
    (
        Gauge,
        "provost_store_rehearsal",
        "1 where the store is a rehearsal of a restore.",
    ),
    (
        Counter,
        "provost_strangers_closed_total",
        "Requests and connections without a valid token that made room for others of their network, by kind.",
    ),
    (
        Gauge,
        "provost_tls_certificate_expires_in_seconds",
        "Until the TLS certificate in use ends; below 0 when it has.",
    ),
    (
        Gauge,
        "provost_tokens_ending",
        "Tokens of enabled service accounts that end within the time of the label and that nothing has replaced.",
    ),
    (
        Gauge,
        "provost_tokens_next_end_in_seconds",
        "Until the next of those tokens ends, however far away; absent where there is none.",
    ),
    (
        Counter,
        "provost_unresolved_words_total",
        "Words in events that name nobody, or more than one, by their kind and why.",
    ),
    (Gauge, "provost_waiting_units", "Changes that wait for a writer."),
];

/// Tells the exporter.
pub fn describe() {
    for (kind, name, help) in FIGURES {
        match kind {
            Counter => metrics::describe_counter!(name, help),
            Gauge => metrics::describe_gauge!(name, help),
            Histogram => metrics::describe_histogram!(name, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    /// Returns the kind of every figure that a source counts.
    fn counted() -> BTreeMap<String, FigureKind> {
        let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")];
        let mut counted = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs")
                    && path.iter().any(|part| part == "src")
                {
                    of_source(&std::fs::read_to_string(&path).unwrap(), &mut counted);
                }
            }
        }
        counted
    }

    fn of_source(text: &str, counted: &mut BTreeMap<String, FigureKind>) {
        for (word, kind) in [("counter", Counter), ("gauge", Gauge), ("histogram", Histogram)] {
            // In two parts, or this line would be one that counts.
            let lead = format!("metrics::{word}{}", "!(");
            for rest in text.split(&lead).skip(1) {
                let name = rest.trim_start().strip_prefix('"');
                let name = name.unwrap_or_else(|| panic!("a figure without a name of its own: {rest:.60}"));
                counted.insert(name.split('"').next().unwrap().to_owned(), kind);
            }
        }
    }

    #[test]
    fn every_figure_that_is_counted_says_what_it_means() {
        let named: BTreeMap<String, FigureKind> = FIGURES
            .iter()
            .map(|(kind, name, _)| ((*name).to_owned(), *kind))
            .collect();
        assert_eq!(named, counted());
        assert_eq!(named.len(), FIGURES.len(), "a name is there twice");
        for (_, name, help) in FIGURES {
            assert!(help.len() > 10 && help.ends_with('.'), "{name}: {help}");
        }
    }
}
