//! A file as chunks that a server takes, split where a record ends. The same file is always split the same way,
//! so that a repeated import sends the same chunks under the same keys.

use std::io::{self, BufRead, BufReader, Read};

/// LIMIT: bytes of a chunk.
const MAX_BYTES: usize = 1 << 20;
/// Half of what a server takes: a chunk is one unit of its work, which must be short on a busy machine too.
const MAX_RECORDS: usize = 250;
/// LIMIT: group names of a chunk.
const MAX_GROUPS: usize = 5_000;
/// LIMIT: bytes of a record; a longer one is refused by the server, which need not read it for that.
const MAX_RECORD: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a file says its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// RFC 4180, with a header.
    Csv,
}

/// Part of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What is sent: whole records; in CSV behind the header.
    pub bytes: Vec<u8>,
    /// Records that are not blank lines.
    pub records: u64,
}

/// The chunks of a file that is read as it goes.
pub struct Chunks {
    reader: BufReader<Box<dyn Read + Send>>,
    format: Format,
    header: Option<Vec<u8>>,
    /// The record that did not fit the chunk before.
    next: Option<Record>,
    /// Bytes of the file that were read.
    pub bytes_read: u64,
}

/// One record with its line end.
#[derive(Debug)]
struct Record {
    bytes: Vec<u8>,
    groups: usize,
}

/// Where in a record of CSV a byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote inside quotes: their end, or the first of two.
    Quote,
}

impl Chunks {
    /// Begins a file.
    pub fn new(reader: Box<dyn Read + Send>, format: Format) -> Self {
        Self {
            reader: BufReader::with_capacity(MAX_RECORD, reader),
            format,
            header: None,
            next: None,
            bytes_read: 0,
        }
    }

    /// Returns the media type of every chunk.
    pub fn media_type(&self) -> &'static str {
        match self.format {
            Format::JsonLines => "application/x-ndjson",
            Format::Csv => "text/csv",
        }
    }

    /// Returns the next chunk; `None` behind the last record.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        if self.bytes_read == 0 && self.reader.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            self.reader.consume(BYTE_ORDER_MARK.len());
            self.bytes_read = BYTE_ORDER_MARK.len() as u64;
        }
        if self.format == Format::Csv && self.header.is_none() {
            self.header = self.read_record()?.map(|record| terminated(record.bytes));
        }
        let mut bytes = self.header.clone().unwrap_or_default();
        let (mut records, mut groups) = (0, 0);
        while let Some(record) = self.take_record()? {
            let is_blank = record.bytes.trim_ascii().is_empty();
            let is_full = bytes.len() + record.bytes.len() > MAX_BYTES
                || records == MAX_RECORDS
                || groups + record.groups > MAX_GROUPS;
            if is_full && records > 0 {
                self.next = Some(record);
                break;
            }
            groups += record.groups;
            records += usize::from(!is_blank);
            bytes.extend(record.bytes);
        }
        Ok((records > 0).then_some(Chunk {
            bytes,
            records: records as u64,
        }))
    }

    fn take_record(&mut self) -> io::Result<Option<Record>> {
        match self.next.take() {
            Some(record) => Ok(Some(record)),
            None => self.read_record(),
        }
    }

    /// Reads up to the end of a record. One that is too long becomes filler of as many lines, which the server
    /// refuses as one record.
    fn read_record(&mut self) -> io::Result<Option<Record>> {
        let mut record = Vec::new();
        let (mut within, mut lines, mut length) = (Within::FieldStart, 0, 0);
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if available.is_empty() {
                break;
            }
            let (taken, is_end) = up_to_end(available, self.format, &mut within);
            let part = &available[..taken];
            lines += part.split(|byte| *byte == b'\n').count() - 1;
            length += taken;
            if length <= MAX_RECORD {
                record.extend_from_slice(part);
            }
            self.reader.consume(taken);
            self.bytes_read += taken as u64;
            if is_end {
                break;
            }
        }
        if length > MAX_RECORD {
            record = vec![b'x'; MAX_RECORD + 1];
            record.extend(std::iter::repeat_n(b'\n', lines.max(1)));
        }
        let groups = if length > MAX_RECORD {
            0
        } else {
            groups_of(&record, self.format)
        };
        Ok((length > 0).then_some(Record {
            bytes: record,
            groups,
        }))
    }
}

/// Returns how many of these bytes belong to the record, and whether it ends with them.
fn up_to_end(bytes: &[u8], format: Format, within: &mut Within) -> (usize, bool) {
    for (place, byte) in bytes.iter().enumerate() {
        let next = match (*within, byte) {
            (Within::Quoted, b'"') => Within::Quote,
            (Within::Quoted, _) => Within::Quoted,
            (_, b'\n') => return (place + 1, true),
            (Within::FieldStart | Within::Quote, b'"') if format == Format::Csv => Within::Quoted,
            (_, b',') => Within::FieldStart,
            _ => Within::Plain,
        };
        *within = next;
    }
    (bytes.len(), false)
}

/// Returns how many groups a record names, or more.
fn groups_of(record: &[u8], format: Format) -> usize {
    match format {
        Format::Csv => record.split(|byte| *byte == b';').count(),
        Format::JsonLines => {
            let names = |value: serde_json::Value| Some(value.get("groups")?.as_array()?.len());
            serde_json::from_slice(record).ok().and_then(names).unwrap_or(0)
        }
    }
}

fn terminated(mut record: Vec<u8>) -> Vec<u8> {
    if !record.ends_with(b"\n") {
        record.push(b'\n');
    }
    record
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

    fn split(text: impl Into<Vec<u8>>, format: Format) -> Vec<Chunk> {
        let mut chunks = Chunks::new(Box::new(Trickle(Cursor::new(text.into()))), format);
        std::iter::from_fn(|| chunks.next_chunk().unwrap()).collect()
    }

    #[test]
    fn lines_are_counted_and_kept_whole() {
        let text = "{\"n\":1}\n".repeat(1201);
        let chunks = split(text.clone(), Format::JsonLines);
        assert_eq!(
            chunks.iter().map(|chunk| chunk.records).collect::<Vec<_>>(),
            [250, 250, 250, 250, 201]
        );
        let joined: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
        assert_eq!(joined, text.as_bytes());
    }

    #[test]
    fn a_quoted_line_break_is_no_end_and_the_header_is_repeated() {
        let record = "user,\"a\nb \"\"c\"\"\nd\",5\" disk\r\n";
        let text = format!("\u{feff}type,loginName,displayName\r\n{}", record.repeat(251));
        let chunks = split(text, Format::Csv);
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[1].records, 1);
        let expected = format!("type,loginName,displayName\r\n{record}");
        assert_eq!(String::from_utf8_lossy(&chunks[1].bytes), expected);
    }

    #[test]
    fn blank_lines_count_as_lines_and_not_as_records() {
        let chunks = split("\n{}\n\n{}", Format::JsonLines);
        assert_eq!(
            chunks,
            [Chunk {
                bytes: b"\n{}\n\n{}".to_vec(),
                records: 2
            }]
        );
        assert_eq!(split("\n \r\n", Format::JsonLines), []);
        assert_eq!(split("", Format::Csv), []);
        assert_eq!(split("type,name", Format::Csv), []);
    }

    #[test]
    fn a_chunk_holds_no_more_groups_than_the_server_takes() {
        let names = vec!["\"g\""; 256].join(",");
        let text = format!("{{\"groups\":[{names}]}}\n").repeat(40);
        let records: Vec<u64> = split(text, Format::JsonLines).iter().map(|c| c.records).collect();
        assert_eq!(records, [19, 19, 2]);
    }

    #[test]
    fn a_chunk_holds_no_more_bytes_than_the_server_takes() {
        let text = format!("{{\"a\":\"{}\"}}\n", "y".repeat(60_000)).repeat(40);
        for chunk in split(text, Format::JsonLines) {
            assert!(chunk.bytes.len() <= MAX_BYTES && chunk.records <= 17);
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_one_filler_of_as_many_lines() {
        let text = format!("type,name\ngroup,\"{}\"\ngroup,b\n", "z\n".repeat(50_000));
        let chunks = split(text, Format::Csv);
        assert_eq!((chunks.len(), chunks[0].records), (1, 2));
        let lines = chunks[0].bytes.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines, 50_003);
        assert!(chunks[0].bytes.ends_with(b"\ngroup,b\n"));
    }
}
