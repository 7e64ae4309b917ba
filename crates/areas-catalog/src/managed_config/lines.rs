//! What differs between two texts, line by line, in the form that `diff -u` writes.

/// Lines of agreement around a change.
const CONTEXT: usize = 3;
/// LIMIT: cells of the table that finds the longest common lines. Beyond it a change is one block.
const MAX_CELLS: usize = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// Returns the lines of a unified difference, none when the texts are equal. `name` stands in the two first lines.
pub fn unified(name: &str, before: &str, after: &str) -> Vec<String> {
    if before == after {
        return Vec::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = edits(&old, &new);
    let mut lines = vec![format!("--- {name}"), format!("+++ {name}")];
    for hunk in hunks(&edits) {
        let at = |wanted: Edit| edits[..hunk.start].iter().filter(|e| **e != wanted).count();
        let (mut from, mut to) = (at(Edit::Add), at(Edit::Remove));
        let count = |unwanted: Edit| edits[hunk.clone()].iter().filter(|e| **e != unwanted).count();
        let (removed, added) = (count(Edit::Add), count(Edit::Remove));
        let start = |line: usize, count: usize| if count == 0 { line } else { line + 1 };
        lines.push(format!(
            "@@ -{},{removed} +{},{added} @@",
            start(from, removed),
            start(to, added)
        ));
        for edit in &edits[hunk] {
            match edit {
                Edit::Keep => lines.push(format!(" {}", old[from])),
                Edit::Remove => lines.push(format!("-{}", old[from])),
                Edit::Add => lines.push(format!("+{}", new[to])),
            }
            from += usize::from(*edit != Edit::Add);
            to += usize::from(*edit != Edit::Remove);
        }
    }
    lines
}

/// Returns the ranges of edits that hold changes and the lines around them.
fn hunks(edits: &[Edit]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (place, _) in edits.iter().enumerate().filter(|(_, edit)| **edit != Edit::Keep) {
        let range = place.saturating_sub(CONTEXT)..(place + CONTEXT + 1).min(edits.len());
        match hunks.last_mut() {
            Some(last) if range.start <= last.end => last.end = range.end,
            _ => hunks.push(range),
        }
    }
    hunks
}

fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut edits = vec![Edit::Keep; head];
    edits.extend(middle(old, new));
    edits.extend(vec![Edit::Keep; tail]);
    edits
}

/// Returns the edits between two texts that share neither their first nor their last line.
fn middle(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let width = new.len() + 1;
    if (old.len() + 1) * width > MAX_CELLS {
        return [vec![Edit::Remove; old.len()], vec![Edit::Add; new.len()]].concat();
    }
    // The length of the longest common part of what is left, from the end to the start.
    let mut left = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            left[i * width + j] = if old[i] == new[j] {
                left[(i + 1) * width + j + 1] + 1
            } else {
                left[(i + 1) * width + j].max(left[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut edits) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let edit = if i < old.len() && j < new.len() && old[i] == new[j] {
            Edit::Keep
        } else if j == new.len() || (i < old.len() && left[(i + 1) * width + j] >= left[i * width + j + 1]) {
            Edit::Remove
        } else {
            Edit::Add
        };
        i += usize::from(edit != Edit::Add);
        j += usize::from(edit != Edit::Remove);
        edits.push(edit);
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_is_that_of_diff() {
        let before = "{\n  a\n  b\n  c\n  d\n  e\n  f\n  g\n}\n";
        let after = "{\n  a\n  b\n  c\n  d\n  E\n  f\n  g\n  h\n}\n";
        let expected = [
            "--- x",
            "+++ x",
            "@@ -3,7 +3,8 @@",
            "   b",
            "   c",
            "   d",
            "-  e",
            "+  E",
            "   f",
            "   g",
            "+  h",
            " }",
        ];
        assert_eq!(unified("x", before, after), expected);
        assert_eq!(
            unified("x", "", "a\n"),
            ["--- x", "+++ x", "@@ -0,0 +1,1 @@", "+a"]
        );
        assert!(unified("x", before, before).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_lines_lead_from_one_text_to_the_other(
            old in prop::collection::vec("[a-c]", 0..30), new in prop::collection::vec("[a-c]", 0..30),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let (mut from, mut to, mut made) = (0, 0, Vec::new());
            for edit in edits(&old, &new) {
                match edit {
                    Edit::Keep => {
                        prop_assert_eq!(old[from], new[to]);
                        made.push(old[from]);
                    }
                    Edit::Remove => {}
                    Edit::Add => made.push(new[to]),
                }
                from += usize::from(edit != Edit::Add);
                to += usize::from(edit != Edit::Remove);
            }
            prop_assert_eq!((from, to), (old.len(), new.len()));
            prop_assert_eq!(made, new);
        }
    }
}
