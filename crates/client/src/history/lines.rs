//! A file of JSON Lines as chunks that a server takes, with the number that each line has in the file. The same
//! file is always split the same way, so that a repeated import sends the same chunks, which the server knows.

use std::io::{self, BufRead, BufReader, Read};

/// LIMIT: lines of a chunk (D9.11).
const MAX_LINES: usize = 5_000;
/// Well below what a server takes (32 MiB): a chunk is one answer to wait for.
const MAX_BYTES: usize = 8 << 20;
/// LIMIT: bytes of a line without its end (D1.10).
pub const MAX_LINE: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Part of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// What is sent: whole lines, none of them blank.
    pub bytes: Vec<u8>,
    /// The number of each of them in the file, from 1.
    pub numbers: Vec<u64>,
    /// Lines that cannot be sent: number, reason.
    pub refused: Vec<(u64, String)>,
}

/// What becomes of a line before it is sent: itself, other bytes, or a reason why it cannot be sent.
pub type Convert = Box<dyn FnMut(&[u8]) -> Result<Vec<u8>, String> + Send>;

/// The chunks of a file that is read as it goes.
pub struct Chunks {
    reader: BufReader<Box<dyn Read + Send>>,
    convert: Convert,
    number: u64,
    /// The line that did not fit the chunk before.
    next: Option<(u64, Vec<u8>)>,
    /// Bytes of the file that were read.
    pub bytes_read: u64,
}

impl Chunks {
    /// Begins a file.
    pub fn new(reader: Box<dyn Read + Send>, convert: Convert) -> Self {
        Self {
            reader: BufReader::with_capacity(MAX_LINE, reader),
            convert,
            number: 0,
            next: None,
            bytes_read: 0,
        }
    }

    /// Returns the next chunk; `None` behind the last line.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        if let Some((number, line)) = self.next.take() {
            chunk.add(number, &line);
        }
        while chunk.numbers.len() + chunk.refused.len() < MAX_LINES {
            let Some(line) = self.read_line()? else { break };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match self.converted(&line) {
                Err(why) => chunk.refused.push((self.number, why)),
                Ok(line) if chunk.bytes.len() + line.len() >= MAX_BYTES => {
                    self.next = Some((self.number, line));
                    break;
                }
                Ok(line) => chunk.add(self.number, &line),
            }
        }
        let is_empty = chunk.numbers.is_empty() && chunk.refused.is_empty();
        Ok((!is_empty).then_some(chunk))
    }

    fn converted(&mut self, line: &[u8]) -> Result<Vec<u8>, String> {
        let too_long = || format!("the line has more than {MAX_LINE} bytes");
        if line.len() > MAX_LINE {
            // It counts as a line for whoever counts them.
            let _ = (self.convert)(b"");
            return Err(too_long());
        }
        let converted = (self.convert)(line)?;
        if converted.len() > MAX_LINE {
            Err(too_long())
        } else {
            Ok(converted)
        }
    }

    /// Reads a line without its end; of one that is too long only so much that this can be seen.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut is_there = false;
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if available.is_empty() {
                break;
            }
            is_there = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let room = (MAX_LINE + 2).saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            let taken = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(taken);
            self.bytes_read += taken as u64;
            if end.is_some() {
                break;
            }
        }
        if !is_there {
            return Ok(None);
        }
        self.number += 1;
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.len() <= MAX_LINE + 1 && line.ends_with(b"\r") {
            line.pop();
        }
        Ok(Some(line))
    }
}

impl Chunk {
    fn add(&mut self, number: u64, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
        self.numbers.push(number);
    }

    /// Returns the number in the file of a line of what was sent.
    ///
    /// Units: both count from 1.
    pub fn number(&self, line_sent: u64) -> Option<u64> {
        let place = usize::try_from(line_sent).ok()?.checked_sub(1)?;
        self.numbers.get(place).copied()
    }
}

/// Returns how many lines are not blank.
pub fn count(reader: Box<dyn Read + Send>) -> io::Result<u64> {
    let mut chunks = Chunks::new(reader, Box::new(|_| Err(String::new())));
    let mut lines = 0;
    while let Some(chunk) = chunks.next_chunk()? {
        lines += chunk.refused.len() as u64;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Hands out few bytes at a time, as a pipe may.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let some = buffer.len().min(7);
            self.0.read(&mut buffer[..some])
        }
    }

    fn reader(text: impl Into<Vec<u8>>) -> Box<dyn Read + Send> {
        Box::new(Trickle(Cursor::new(text.into())))
    }

    fn split(text: impl Into<Vec<u8>>) -> Vec<Chunk> {
        let mut chunks = Chunks::new(reader(text), Box::new(|line| Ok(line.to_vec())));
        std::iter::from_fn(|| chunks.next_chunk().unwrap()).collect()
    }

    #[test]
    fn lines_keep_their_numbers_and_blank_ones_are_not_sent() {
        let chunks = split("\u{feff}{\"a\":1}\r\n\n  \n{\"b\":2}");
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].bytes, b"{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(chunks[0].numbers, [1, 4]);
        assert_eq!(
            (chunks[0].number(2), chunks[0].number(3), chunks[0].number(0)),
            (Some(4), None, None)
        );
        assert_eq!(split("\n \r\n"), []);
    }

    #[test]
    fn a_chunk_holds_no_more_lines_and_bytes_than_a_server_takes() {
        let chunks = split("{\"n\":1}\n".repeat(12_001));
        let lines: Vec<usize> = chunks.iter().map(|chunk| chunk.numbers.len()).collect();
        assert_eq!(lines, [5_000, 5_000, 2_001]);
        assert_eq!(chunks[2].number(2_001), Some(12_001));

        let long = format!("{}\n", "y".repeat(60_000)).repeat(300);
        let chunks = split(long.clone());
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.bytes.len() <= MAX_BYTES));
        let joined: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
        assert_eq!(joined, long.as_bytes());
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_by_its_number_and_costs_no_memory() {
        let exact = "x".repeat(MAX_LINE);
        let chunks = split(format!("{exact}\r\n{}\n{}x\n{{}}\n", "y".repeat(3 << 20), exact));
        let refused: Vec<u64> = chunks[0].refused.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            (chunks[0].numbers.as_slice(), refused.as_slice()),
            (&[1, 4][..], &[2, 3][..])
        );
    }

    #[test]
    fn what_cannot_be_converted_is_refused_and_the_rest_goes_on() {
        let convert: Convert = Box::new(|line| {
            if line == b"bad" {
                Err("no".into())
            } else {
                Ok(b"good".to_vec())
            }
        });
        let mut chunks = Chunks::new(reader("one\nbad\ntwo\n"), convert);
        let chunk = chunks.next_chunk().unwrap().unwrap();
        assert_eq!(
            (chunk.bytes.as_slice(), chunk.numbers.as_slice()),
            (&b"good\ngood\n"[..], &[1, 3][..])
        );
        assert_eq!(chunk.refused, [(2, "no".to_owned())]);
        assert_eq!(chunks.bytes_read, 12);
    }

    #[test]
    fn lines_are_counted_as_they_are_sent() {
        assert_eq!(count(reader("a\n\nb\n \nc")).unwrap(), 3);
        assert_eq!(count(reader("")).unwrap(), 0);
    }
}
