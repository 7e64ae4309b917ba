//! Answers of JSON Lines: written as they come, page by page, until the server has no more.
//!
//! A page is written when it is complete, so a retry never leaves a torn or a doubled line.

use super::api::Operation;
use super::draft::Draft;
use super::failure::{Exit, Failure};
use super::pages::Trail;
use super::send::Sender;
use super::server::Reply;
use super::terminal::Terminal;
use std::fs::File;
use std::io::{self, Write};

/// Names where the next page begins; absent behind the last one.
const NEXT: &str = "x-provost-next-after";

/// Fetches every page, or one of them, and writes the lines.
pub(super) async fn export(
    sender: &Sender<'_>,
    operation: &Operation,
    mut draft: Draft,
    all: bool,
    mut file: Option<File>,
) -> Result<(), Failure> {
    let is_watched = sender.terminal.stderr_is_terminal && !sender.quiet;
    let shows_progress = is_watched && (file.is_some() || !sender.terminal.stdout_is_terminal);
    if let (true, None, Some(largest)) = (all, draft.query("limit"), operation.largest_page()) {
        draft.set_query("limit", largest.to_string());
    }
    let (mut lines, mut trail) = (0, Trail::default());
    let mut place = draft.query("after").unwrap_or_default().to_owned();
    loop {
        let reply = sender
            .send(&draft.call())
            .await
            .map_err(|failure| go_on(failure, lines, &draft))?;
        write(&reply, file.as_mut(), sender.terminal)?;
        let found = reply.body.split(|byte| *byte == b'\n').count() - 1;
        lines += found;
        if shows_progress {
            sender.terminal.progress(&format!("{lines} lines"));
        }
        let next = reply
            .headers
            .get(NEXT)
            .and_then(|next| next.to_str().ok())
            .filter(|next| !next.is_empty());
        let Some(next) = next.filter(|_| operation.query_field("after").is_some()) else {
            break;
        };
        if !all {
            if !sender.quiet {
                sender
                    .terminal
                    .note(&format!("there is more: --after {next}, or --all"));
            }
            break;
        }
        if place == next {
            return Err(Failure::new(
                Exit::ServerFault,
                "the server names the same place again",
            ));
        }
        trail.go_on("place", next, found)?;
        next.clone_into(&mut place);
        draft.set_query("after", next.to_owned());
    }
    if shows_progress {
        sender.terminal.note(&format!("{lines} lines"));
    }
    if let Some(file) = file {
        file.sync_all()?;
    }
    Ok(())
}

fn go_on(failure: Failure, lines: usize, draft: &Draft) -> Failure {
    match draft.query("after") {
        Some(after) if lines > 0 => {
            failure.and(format!("{lines} lines were written; go on with --after {after}"))
        }
        _ => failure,
    }
}

fn write(reply: &Reply, file: Option<&mut File>, terminal: &Terminal) -> Result<(), Failure> {
    let is_lines = |kind: &str| kind.contains("jsonl") || kind.contains("ndjson");
    let kind = reply
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if !reply.body.is_empty() && !kind.is_some_and(is_lines) {
        return Err(Failure::new(
            Exit::ServerFault,
            "the answer is not JSON Lines; is this a Provost server?",
        ));
    }
    let whole = |result: io::Result<()>| result.map_err(Failure::from);
    if let Some(file) = file {
        return whole(file.write_all(&reply.body));
    }
    if terminal.stdout_is_terminal {
        return whole(terminal.print(terminal.shown(&String::from_utf8_lossy(&reply.body)).as_bytes()));
    }
    whole(terminal.print(&reply.body))
}
