//! What of a module is refused before the parser sees it.
//!
//! The parser tries `[` and `{` in several ways, and reads what stands inside again for each: its work doubles with
//! every level. Sixteen levels take a third of a second, thirty would take hours.

/// LIMIT: how deep `[` and `{` may nest.
pub(super) const NESTING_LIMIT: usize = 10;
/// LIMIT: characters that the parser reads, those in n brackets counted 2^n times.
const WORK_LIMIT: usize = 2 << 20;

/// Returns whether the parser would work too long on a module.
pub(super) fn is_too_much(source: &str) -> bool {
    let (mut depth, mut work) = (0_usize, 0_usize);
    let mut rest = source.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut rest),
            b'`' => drop(rest.find(|byte| *byte == b'`')),
            b'#' => drop(rest.find(|byte| *byte == b'\n')),
            _ => {}
        }
        if depth > NESTING_LIMIT {
            return true;
        }
        work += 1 << depth;
    }
    work > WORK_LIMIT
}

fn skip_text(rest: &mut std::str::Bytes<'_>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => drop(rest.next()),
            b'"' | b'\n' => return,
            _ => {}
        }
    }
}
