//! What a fuzzer asks of messages and of streams of events: a function of any bytes that panics where a promise is
//! broken.
//!
//! The first byte of the input says what the rest is: `0` a JSON-RPC message; any other one a stream, cut after so many
//! bytes.
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpus; the test here replays it.

#[path = "../../src/message.rs"]
mod message;
#[path = "../../../client/src/bridge/sse.rs"]
mod sse;

use serde_json::Value;

/// A message that is taken is one by another reader's word; a stream gives the same events wherever it is cut.
pub fn messages(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    if *kind == b'0' {
        a_message(rest);
    } else {
        a_stream(rest, usize::from(*kind));
    }
}

fn a_message(body: &[u8]) {
    match message::read(body) {
        Err(refusal) => {
            let status = refusal.respond().status().as_u16();
            assert!(matches!(status, 200 | 400));
        }
        Ok(message) => {
            let lenient: Value = serde_json::from_slice(body).unwrap();
            assert!(lenient == message && message["jsonrpc"] == "2.0");
            let is_call = message["method"].is_string();
            assert!(is_call || message.get("result").is_some() || message.get("error").is_some());
            let id = message.get("id");
            assert!(!is_call || id.is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64()));
            assert!(message.get("params").is_none_or(Value::is_object));
            // What goes on to the protocol's library is its to judge, and it judges without a panic.
            let _ = serde_json::from_slice::<rmcp::model::ClientJsonRpcMessage>(body);
        }
    }
}

fn a_stream(bytes: &[u8], cut: usize) {
    let events = |pieces: Vec<&[u8]>| {
        let (mut stream, mut events) = (sse::Events::default(), Vec::new());
        for piece in pieces {
            stream.feed(piece, |event| events.push(event)).unwrap();
        }
        events
    };
    let whole = events(vec![bytes]);
    assert_eq!(events(bytes.chunks(cut.max(1)).collect()), whole);
    assert!(
        whole
            .iter()
            .all(|event| !event.is_empty() && !event.contains(&b'\r'))
    );
    assert!(whole.iter().map(Vec::len).sum::<usize>() <= bytes.len());
}

#[test]
fn the_corpus_of_messages_keeps_its_promises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/messages");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 8, "{} inputs", names.len());
    for name in names {
        println!("{}", name.display());
        messages(&std::fs::read(name).unwrap());
    }
}
