//! What of a module is refused before the parser sees it.
//!
//! The parser tries `[` and `{` in several ways, and reads what stands inside again for each: its work doubles with
//! every level. Sixteen levels take a third of a second, thirty would take hours.
//!
//! The engine calls itself for every operator that waits for another one (`1 + 1 + …`, `- - - 1`, `a[0][0]…`), up to
//! four kilobytes of stack each: some hundreds would end the whole program.
//!
//! Keeps RG-2.

/// LIMIT: how deep `[` and `{` may nest.
pub(super) const NESTING_LIMIT: usize = 10;
/// LIMIT: characters that the parser reads, those in n brackets counted 2^n times.
const WORK_LIMIT: usize = 2 << 20;
/// LIMIT: operators, steps of references and brackets of one expression that can wait for one another.
pub(super) const CHAIN_LIMIT: usize = 128;

/// LIMIT: digits of the exponent of a number; a double has three.
pub(super) const EXPONENT_DIGITS: usize = 3;

/// Returns where the parser would have worked too long on a module. Units: bytes.
pub(super) fn too_much(source: &str) -> Option<usize> {
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
            return Some(place(source, &rest));
        }
        work += 1 << depth;
        if work > WORK_LIMIT {
            return Some(place(source, &rest));
        }
    }
    None
}

/// Returns where the byte stands that was read last.
fn place(source: &str, rest: &std::str::Bytes<'_>) -> usize {
    source.len().saturating_sub(rest.len() + 1)
}

/// Returns where an expression of a module becomes so long that the engine would call itself too deep. Units: bytes.
pub(super) fn too_long(source: &str) -> Option<usize> {
    let mut chains = Chains::default();
    let mut rest = source.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_text(&mut rest),
            b'`' => drop(rest.find(|byte| *byte == b'`')),
            b'#' => {
                let _ = rest.find(|byte| *byte == b'\n');
                chains.is_new_line = true;
                continue;
            }
            b'\n' => {
                chains.is_new_line = true;
                continue;
            }
            byte if byte.is_ascii_whitespace() => continue,
            _ => {}
        }
        chains.take(byte);
        if chains.waiting + chains.here.inner > CHAIN_LIMIT {
            return Some(place(source, &rest));
        }
    }
    None
}

/// Returns where a number of a module ends whose exponent is so large that reading it would take hours, or all memory. Units:
/// bytes.
pub(super) fn large_exponent(source: &str) -> Option<usize> {
    let mut rest = source.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_text(&mut rest),
            b'`' => drop(rest.find(|byte| *byte == b'`')),
            b'#' => drop(rest.find(|byte| *byte == b'\n')),
            byte if !byte.is_ascii_alphanumeric() && byte != b'_' => {}
            byte if exponent_digits(byte, &mut rest) > EXPONENT_DIGITS => return Some(place(source, &rest)),
            _ => {}
        }
    }
    None
}

/// Passes over the rest of a name or number; returns how many digits the exponent has.
fn exponent_digits(first: u8, rest: &mut std::str::Bytes<'_>) -> usize {
    let is_number = first.is_ascii_digit();
    let mut exponent: Option<usize> = None;
    loop {
        let mut ahead = rest.clone();
        match ahead.next() {
            Some(b'e' | b'E') if is_number && exponent.is_none() => exponent = Some(0),
            Some(b'+' | b'-') if exponent == Some(0) => {}
            Some(b'.') if is_number => {}
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => exponent = exponent.map(|n| n + 1),
            _ => return exponent.unwrap_or(0),
        }
        *rest = ahead;
    }
}

/// The operators of the expressions that are open.
#[derive(Default)]
struct Chains {
    around: Vec<Chain>,
    here: Chain,
    /// The operators of all that is open.
    waiting: usize,
    before: u8,
    is_new_line: bool,
}

/// The operators since the last separator, and the most that waited inside of brackets.
#[derive(Clone, Copy, Default)]
struct Chain {
    own: usize,
    inner: usize,
}

impl Chains {
    fn take(&mut self, byte: u8) {
        // A line goes on where an operator stands at its end or at the start of the next one.
        let is_between = std::mem::take(&mut self.is_new_line) && !joins(self.before) && !joins(byte);
        if is_between || matches!(byte, b',' | b';') {
            self.waiting -= self.here.own;
            self.here = Chain::default();
        }
        match byte {
            b'[' | b'(' | b'{' => {
                self.count();
                self.around.push(std::mem::take(&mut self.here));
            }
            b']' | b')' | b'}' => {
                let inner = self.here.own + self.here.inner;
                self.waiting -= self.here.own;
                self.here = self.around.pop().unwrap_or_default();
                self.here.inner = self.here.inner.max(inner);
            }
            // The second half of an operator of two.
            b'=' if matches!(self.before, b'=' | b'!' | b'<' | b'>' | b':') => {}
            byte if joins(byte) => self.count(),
            _ => {}
        }
        self.before = byte;
    }

    fn count(&mut self) {
        self.here.own += 1;
        self.waiting += 1;
    }
}

fn joins(byte: u8) -> bool {
    b"+-*/%|&=<>!.[(".contains(&byte)
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
