//! What makes the figures checkable: what was compared, over which events, by which engine.

use super::super::view::{PolicySet, RunView};
use super::super::words::{instant, number};
use super::section;
use provost_words::html::Html;

/// Names listed one by one; of longer lists the number is said.
const NAMED: usize = 12;

/// Adds the section.
pub fn add(html: &mut Html, run: &RunView) {
    let hint = "The same candidate, baseline, data and engine give the same result digest.";
    section(html, "About this backtest", hint, |html| {
        html.element("dl", &[("class", "facts")], |html| list(html, run));
        html.words(
            "p",
            "hint",
            "A backtest judges requests as they were recorded. People and agents may act differently once a policy \
             is enforced.",
        );
    });
}

fn list(html: &mut Html, run: &RunView) {
    fact(html, "Run", |html| html.words("code", "", &run.id));
    let enforcement = if run.live_enforcement_changed {
        "changed"
    } else {
        "not changed by this run"
    };
    fact(html, "Live enforcement", |html| html.text(enforcement));
    set(html, "Candidate", &run.policy_set.candidate);
    set(html, "Baseline", &run.policy_set.baseline);
    if run.reads_content {
        fact(html, "Content", |html| {
            html.text("what differs between the two reads content of events");
        });
    }
    fact(html, "Window", |html| {
        html.text(&format!(
            "{} to {}",
            instant(&run.window.from),
            instant(&run.window.to)
        ));
    });
    let filters = &run.filters;
    for (name, values) in [
        ("Only subjects", &filters.subject_ids),
        ("Only tools", &filters.tools),
        ("Only resources", &filters.resource_ids),
    ] {
        if !values.is_empty() {
            fact(html, name, |html| names(html, values));
        }
    }
    if let (Some(events), Some(seconds)) = (run.limits.max_events, run.limits.max_duration_seconds) {
        fact(html, "Limits", |html| {
            html.text(&format!("{} events, {seconds} seconds", number(events)));
        });
    }
    let times = [
        ("Created", &run.created_at),
        ("Started", &run.started_at),
        ("Finished", &run.finished_at),
        ("Canceled", &run.canceled_at),
        ("Kept until", &run.expires_at),
    ];
    for (name, at) in times {
        let by = run
            .created_by
            .as_ref()
            .filter(|by| name == "Created" && !by.id.is_empty());
        if let Some(at) = at {
            fact(html, name, |html| {
                html.text(&instant(at));
                if let Some(by) = by {
                    html.text(" by ");
                    html.words("code", "", &by.id);
                }
            });
        }
    }
    if let Some(reason) = &run.reason {
        fact(html, "Reason", |html| html.name(reason));
    }
    for (name, value) in [
        ("Data digest", &run.dataset_digest),
        ("Result digest", &run.result_digest),
        ("Engine", &run.engine_version),
    ] {
        if let Some(value) = value {
            fact(html, name, |html| html.words("code", "", value));
        }
    }
    if let Some(attempt) = run.attempt.filter(|attempt| *attempt > 1) {
        fact(html, "Attempts", |html| html.text(&number(attempt)));
    }
    commands(html, run);
}

/// Says with which commands to go on.
fn commands(html: &mut Html, run: &RunView) {
    let sample = run.results.as_ref().and_then(|results| results.samples.first());
    for (name, words, id) in [
        (
            "This page again",
            "provost backtests report --html FILE ",
            Some(&run.id),
        ),
        (
            "Every example",
            "provost backtests samples ",
            sample.map(|_| &run.id),
        ),
        (
            "The first example whole",
            "provost history get ",
            sample.map(|sample| &sample.event_id),
        ),
    ] {
        // What a shell would take apart is nobody's id, and is not put into a command.
        let is_id = |id: &&String| {
            !id.is_empty()
                && id.len() <= 64
                && id
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let Some(id) = id else { continue };
        let id = Some(id).filter(is_id).map_or("ID", String::as_str);
        fact(html, name, |html| html.words("code", "", &format!("{words}{id}")));
    }
}

fn set(html: &mut Html, name: &str, set: &PolicySet) {
    if set.kind.is_empty() && set.digest.is_empty() {
        return;
    }
    fact(html, name, |html| {
        html.text(&set.kind);
        if let Some(version) = &set.version_id {
            html.raw(" ");
            html.words("code", "", version);
        }
        if !set.policy_ids.is_empty() {
            html.text(": ");
            names(html, &set.policy_ids);
        }
        if !set.digest.is_empty() {
            html.raw("<br>");
            html.words("code", "", &set.digest);
        }
    });
}

fn names(html: &mut Html, names: &[String]) {
    for (place, name) in names.iter().take(NAMED).enumerate() {
        html.raw(if place > 0 { ", " } else { "" });
        html.name(name);
    }
    if names.len() > NAMED {
        html.text(&format!(" and {} more", names.len() - NAMED));
    }
}

fn fact(html: &mut Html, name: &str, inner: impl FnOnce(&mut Html)) {
    html.words("dt", "", name);
    html.element("dd", &[], inner);
}
