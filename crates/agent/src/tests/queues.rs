//! The queue: nothing lost, nothing torn taken.

use super::Scratch;
use crate::folder::Folder;
use crate::queue::{MAX_BYTES, MAX_SEGMENT, Queue};
use crate::sent;
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::time::{Clock, SystemClock};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn quiet(_: &str) {}

#[test]
fn what_is_pushed_comes_in_its_order_and_stays_until_it_was_sent() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let queue = Queue::open(&folder).unwrap();
    for body in ["one", "two", "three"] {
        queue.push(body.as_bytes()).unwrap();
    }
    let now = SystemClock::new().now();
    for body in ["one", "two", "three"] {
        let segment = Queue::open(&folder).unwrap().next(&quiet).unwrap().unwrap();
        assert_eq!(segment.body, body.as_bytes());
        assert_eq!(
            queue.next(&quiet).unwrap().unwrap(),
            segment,
            "a look removes nothing"
        );
        queue.sent(&folder, &segment, now).unwrap();
    }
    assert!(queue.next(&quiet).unwrap().is_none());
    let kept: Vec<Vec<u8>> = sent::uploads(&folder)
        .unwrap()
        .into_iter()
        .map(|upload| upload.body)
        .collect();
    assert_eq!(kept, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    sent::keep_decisions(&folder, b"{}").unwrap();
    sent::forget(&folder, now.plus_secs(sent::KEPT_SECS - 1)).unwrap();
    assert_eq!(sent::uploads(&folder).unwrap().len(), 4);
    sent::forget(&folder, now.plus_secs(sent::KEPT_SECS + 60)).unwrap();
    assert!(sent::uploads(&folder).unwrap().is_empty());
}

/// Proves AG-3.
#[test]
fn what_is_torn_is_set_aside_by_name_and_never_taken() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let queue = Queue::open(&folder).unwrap();
    queue.push(b"a whole report").unwrap();
    let path = folder.file("queue/00000000000000000001");
    let whole = fs::read(&path).unwrap();
    let below = folder.below("queue").unwrap();
    // Every place at which the file could end, and in every byte a bit that turned.
    let mut broken: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    broken.extend((0..whole.len()).map(|place| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        bytes
    }));
    broken.push([&whole[..], b"more"].concat());
    fs::remove_file(&path).unwrap();
    for (number, bytes) in (1u64..).zip(broken) {
        let name = format!("{number:020}");
        below.replace(&name, &bytes).unwrap();
        let said = RefCell::new(Vec::new());
        let next = queue
            .next(&|line| said.borrow_mut().push(line.to_owned()))
            .unwrap();
        assert_eq!(next, None, "{}", String::from_utf8_lossy(&bytes));
        assert!(said.borrow()[0].contains(&name) && said.borrow()[0].contains("torn"));
        assert_eq!(
            queue.push(b"next").unwrap(),
            number + 1,
            "no number is given twice"
        );
        let segment = queue.next(&quiet).unwrap().unwrap();
        queue.sent(&folder, &segment, SystemClock::new().now()).unwrap();
        fs::remove_file(below.file(&format!("{name}.torn"))).unwrap();
        fs::write(folder.file("queue/.00.new"), "a draft").unwrap();
        Queue::open(&folder).unwrap();
        assert!(!folder.file("queue/.00.new").exists());
    }
}

#[test]
fn the_queue_is_bounded_and_what_was_set_aside_goes_in_time() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let queue = Queue::open(&folder).unwrap();
    let large = vec![b'x'; usize::try_from(MAX_SEGMENT).unwrap() - 200];
    assert!(
        queue
            .push(&vec![b'x'; usize::try_from(MAX_SEGMENT).unwrap()])
            .is_err()
    );
    let mut count = 0;
    while queue.push(&large).is_ok() {
        count += 1;
    }
    assert_eq!(count, 8);
    assert!(queue.depth().unwrap().bytes <= MAX_BYTES);
    let first = queue.next(&quiet).unwrap().unwrap();
    queue.refused(&first, &quiet).unwrap();
    assert_eq!(queue.depth().unwrap().aside, 1);
    let now = SystemClock::new().now();
    queue.forget_aside(now.plus_secs(-sent::KEPT_SECS), 9).unwrap();
    assert_eq!(queue.depth().unwrap().aside, 1);
    queue.forget_aside(now.plus_secs(60), 9).unwrap();
    assert_eq!(queue.depth().unwrap().aside, 0);
}

const CHILD: &str = "PROVOST_AGENT_TEST_FOLDER";

/// Pushes and sends without end, and says each time what it has done; the test below starts and kills it. Without a folder it has
/// nothing to do.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let folder = Folder::make(path.as_ref()).unwrap();
    let queue = Queue::open(&folder).unwrap();
    let mut next = fs::read_to_string(folder.file("begin"))
        .unwrap()
        .parse::<u64>()
        .unwrap();
    let filler = "x".repeat(20_000);
    loop {
        for _ in 0..3 {
            queue.push(format!("{next} {filler}").as_bytes()).unwrap();
            println!("\npushed {next}");
            next += 1;
        }
        for _ in 0..2 {
            let segment = queue.next(&|line| println!("\n{line}")).unwrap().unwrap();
            let text = String::from_utf8(segment.body.clone()).unwrap();
            println!("\nsent {}", text.split(' ').next().unwrap());
            queue.sent(&folder, &segment, SystemClock::new().now()).unwrap();
        }
    }
}

/// Proves AG-3.
#[test]
fn a_kill_at_any_moment_loses_nothing_and_leaves_nothing_torn() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let (mut pushed, mut sent) = (BTreeSet::new(), BTreeSet::new());
    let number = |line: &str, word: &str| line.strip_prefix(word)?.parse::<u64>().ok();
    for round in 0..25 {
        // A child may be killed between the disk and its word of it, so what was said does not tell which numbers are free: each has
        // room of its own.
        let begin = 1 + round * 1_000_000;
        fs::write(folder.file("begin"), format!("{begin}")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::queues::child_that_is_killed", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed after so many words of it, wherever it is by then.
        let most = usize::from(SystemEntropy.seed()[0]);
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut said: Vec<String> = lines.by_ref().take(most).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(lines);
        for line in said {
            assert!(!line.contains("torn"), "{line}");
            pushed.extend(number(&line, "pushed "));
            sent.extend(number(&line, "sent "));
        }
        let queue = Queue::open(&folder).unwrap();
        assert_eq!(queue.depth().unwrap().aside, 0);
    }
    let queue = Queue::open(&folder).unwrap();
    let now = SystemClock::new().now();
    let (mut last, mut waiting) = (0, BTreeSet::new());
    while let Some(segment) = queue.next(&|line| panic!("{line}")).unwrap() {
        let text = String::from_utf8(segment.body.clone()).unwrap();
        let value: u64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(text.len(), value.to_string().len() + 20_001);
        assert!(value > last, "in order");
        last = value;
        waiting.insert(value);
        queue.sent(&folder, &segment, now).unwrap();
    }
    assert!(pushed.len() > 25, "{} were pushed", pushed.len());
    for value in &pushed {
        assert!(sent.contains(value) || waiting.contains(value), "{value} is lost");
    }
}
