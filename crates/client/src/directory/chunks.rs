//! A file as chunks that a server takes, split where a record ends. The same file is always split the same way,
//! so that a repeated import sends the same chunks under the same keys.
//!
//! Rows of a table are sent in the server's columns, each on as many lines as in the file: numbers that the server
//! says of lines are those of the file. What is no row is refused here, and leaves blank lines behind.

use super::columns::{Columns, Layout};
use super::encoding::Utf8Reader;
use super::table::{self, SEPARATORS, Within};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// LIMIT: bytes of a chunk.
const MAX_BYTES: usize = 1 << 20;
/// Half of what a server takes: a chunk is one unit of its work, which must be short on a busy machine too.
const MAX_RECORDS: usize = 250;
/// LIMIT: group names of a chunk.
const MAX_GROUPS: usize = 5_000;
/// LIMIT: bytes of a record.
const MAX_RECORD: usize = 64 << 10;

/// How a file says its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// Rows with a header.
    Csv(Layout),
}

/// Part of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// What is sent: whole records; in CSV behind the header.
    pub bytes: Vec<u8>,
    /// Records that are sent; blank lines are none.
    pub records: u64,
    /// Records that are none, as the server says refused lines.
    pub refused: Vec<Value>,
}

/// The chunks of a file that is read as it goes.
pub struct Chunks {
    reader: BufReader<Utf8Reader>,
    bytes_read: Arc<AtomicU64>,
    format: Format,
    table: Option<Table>,
    /// The record that did not fit the chunk before.
    next: Option<Record>,
    /// Lines of the file behind those that were read.
    lines: usize,
}

/// What the top of a table says of its rows.
struct Table {
    separator: u8,
    columns: Columns,
}

/// What stands on some lines of a file.
#[derive(Debug)]
struct Lines {
    bytes: Vec<u8>,
    /// The number of the first.
    first: usize,
    count: usize,
    /// It has more bytes than a record may have, and some of them were dropped.
    is_too_long: bool,
}

/// One record as it is sent.
#[derive(Debug)]
struct Record {
    bytes: Vec<u8>,
    groups: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Blank,
    Sent,
    Refused(Value),
}

impl Chunks {
    /// Begins a file.
    pub fn new(reader: Box<dyn Read + Send>, format: Format) -> Self {
        let reader = Utf8Reader::new(reader);
        Self {
            bytes_read: reader.bytes_read(),
            reader: BufReader::with_capacity(MAX_RECORD, reader),
            format,
            table: None,
            next: None,
            lines: 0,
        }
    }

    /// Returns the media type of every chunk.
    pub fn media_type(&self) -> &'static str {
        match self.format {
            Format::JsonLines => "application/x-ndjson",
            Format::Csv(_) => "text/csv",
        }
    }

    /// Returns how many bytes of the file were read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Returns what a person should know of the file's columns, once they were read.
    pub fn notes(&self) -> &[String] {
        self.table.as_ref().map_or(&[], |table| table.columns.notes())
    }

    /// Returns the next chunk; `None` behind the last record.
    ///
    /// Errors: what the file system says, and `InvalidData` with a sentence about a header that is none.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        if let (Format::Csv(layout), true) = (&self.format, self.table.is_none()) {
            let layout = layout.clone();
            let Some((table, lines)) = self.begin_table(&layout)? else {
                return Ok(None);
            };
            // The header stands on the last of its lines, so that what follows keeps its numbers.
            chunk.bytes = vec![b'\n'; lines - 1];
            self.table = Some(table);
        }
        if let Some(table) = &self.table {
            table::write(&table.columns.header(), &mut chunk.bytes);
        }
        let mut groups = 0;
        while let Some(record) = self.take_record()? {
            let is_full = chunk.bytes.len() + record.bytes.len() > MAX_BYTES
                || chunk.records == MAX_RECORDS as u64
                || groups + record.groups > MAX_GROUPS;
            if is_full && chunk.records > 0 {
                self.next = Some(record);
                break;
            }
            groups += record.groups;
            chunk.bytes.extend(record.bytes);
            match record.kind {
                Kind::Blank => {}
                Kind::Sent => chunk.records += 1,
                Kind::Refused(line) => chunk.refused.push(line),
            }
        }
        Ok((chunk.records > 0 || !chunk.refused.is_empty()).then_some(chunk))
    }

    /// Reads the header of a table, and a line before it that says its separator. Returns how many lines were read.
    fn begin_table(&mut self, layout: &Layout) -> io::Result<Option<(Table, usize)>> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        let mut said = None;
        loop {
            let Some(lines) = self.read_lines(Some(&SEPARATORS))? else {
                return Ok(None);
            };
            if is_blank(&lines.bytes) {
                continue;
            }
            if let (None, Some(sign)) = (said, table::said_separator(&lines.bytes)) {
                said = Some(sign);
                continue;
            }
            let separator = said.unwrap_or_else(|| table::separator_of(&lines.bytes));
            let cells = if lines.is_too_long {
                Err("has more than 65536 bytes")
            } else {
                table::cells(&lines.bytes, separator)
            };
            let cells = cells.map_err(|why| invalid(format!("its header {why}")))?;
            let columns = layout.columns(&cells).map_err(invalid)?;
            return Ok(Some((Table { separator, columns }, self.lines)));
        }
    }

    fn take_record(&mut self) -> io::Result<Option<Record>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let separator = self.table.as_ref().map(|table| [table.separator]);
        let lines = self.read_lines(separator.as_ref().map(<[u8; 1]>::as_slice))?;
        Ok(lines.map(|lines| self.record(lines)))
    }

    fn record(&self, lines: Lines) -> Record {
        let refused = |path: Option<&str>, message: &str| {
            let mut line = json!({ "line": lines.first, "message": message });
            if let Some(path) = path {
                line["path"] = path.into();
            }
            Record {
                bytes: vec![b'\n'; lines.count],
                groups: 0,
                kind: Kind::Refused(line),
            }
        };
        if lines.is_too_long {
            return refused(None, "has more than 65536 bytes");
        }
        if is_blank(&lines.bytes) {
            return Record {
                bytes: vec![b'\n'; lines.count],
                groups: 0,
                kind: Kind::Blank,
            };
        }
        let Some(table) = &self.table else {
            let names = |value: Value| Some(value.get("groups")?.as_array()?.len());
            let read = serde_json::from_slice(&lines.bytes).ok();
            return Record {
                groups: read.and_then(names).unwrap_or(0),
                bytes: lines.bytes,
                kind: Kind::Sent,
            };
        };
        let cells = match table::cells(&lines.bytes, table.separator) {
            Ok(cells) => cells,
            Err(why) => return refused(None, why),
        };
        let row = match table.columns.row(&cells) {
            Ok(row) => row,
            Err(why) => return refused(why.path, &why.message),
        };
        let mut bytes = Vec::new();
        table::write(&row, &mut bytes);
        // Cells with line ends may have been left out.
        let written = count_lines(&bytes);
        bytes.extend(std::iter::repeat_n(b'\n', lines.count.saturating_sub(written)));
        Record {
            groups: bytes.split(|byte| *byte == b';').count(),
            bytes,
            kind: Kind::Sent,
        }
    }

    /// Reads up to the end of a line, or of a row if these signs separate its cells.
    fn read_lines(&mut self, separators: Option<&[u8]>) -> io::Result<Option<Lines>> {
        let mut read = Lines {
            bytes: Vec::new(),
            first: self.lines + 1,
            count: 0,
            is_too_long: false,
        };
        let (mut within, mut is_end, mut is_any) = (Within::CellStart, false, false);
        while !is_end {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if available.is_empty() {
                // The last line need not end.
                read.count += usize::from(is_any);
                break;
            }
            is_any = true;
            let taken;
            (taken, is_end) = up_to_end(available, separators, &mut within);
            let part = &available[..taken];
            read.count += count_lines(part);
            read.is_too_long |= read.bytes.len() + taken > MAX_RECORD;
            if !read.is_too_long {
                read.bytes.extend_from_slice(part);
            }
            self.reader.consume(taken);
        }
        self.lines += read.count;
        Ok(is_any.then_some(read))
    }
}

/// Returns how many of these bytes belong to the record, and whether it ends with them.
fn up_to_end(bytes: &[u8], separators: Option<&[u8]>, within: &mut Within) -> (usize, bool) {
    for (place, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' && *within != Within::Quoted {
            return (place + 1, true);
        }
        if let Some(separators) = separators {
            *within = within.step(*byte, separators);
        }
    }
    (bytes.len(), false)
}

/// Says whether nothing stands there; a row of empty cells is something, whatever separates them.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\r' | b'\n'))
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

#[cfg(test)]
mod tests {
    use super::super::columns::Origin;
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

    fn csv() -> Format {
        Format::Csv(Layout::new(Origin::Own, [], false).unwrap())
    }

    fn okta() -> Format {
        Format::Csv(Layout::new(Origin::Okta, [], false).unwrap())
    }

    fn texts(chunks: &[Chunk]) -> Vec<String> {
        let text = |chunk: &Chunk| String::from_utf8(chunk.bytes.clone()).unwrap();
        chunks.iter().map(text).collect()
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
        let record = "user,\"a\nb \"\"c\"\"\nd\",5 disk\r\n";
        let text = format!("\u{feff}type,loginName,displayName\r\n{}", record.repeat(251));
        let chunks = split(text, csv());
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[1].records, 1);
        let expected = "type,loginName,displayName\nuser,\"a\nb \"\"c\"\"\nd\",5 disk\n";
        assert_eq!(texts(&chunks)[1], expected);
    }

    #[test]
    fn blank_lines_count_as_lines_and_not_as_records() {
        let chunks = split("\n{}\n\n{}", Format::JsonLines);
        assert_eq!(
            chunks,
            [Chunk {
                bytes: b"\n{}\n\n{}".to_vec(),
                records: 2,
                refused: vec![],
            }]
        );
        assert_eq!(split("\n \r\n", Format::JsonLines), []);
        assert_eq!(split("", csv()), []);
        assert_eq!(split("type,name", csv()), []);
        let chunks = split("\nsep=;\n\nLoginName;email\n \na;b\n", csv());
        assert_eq!(texts(&chunks), ["\n\n\nloginName,email\n\na,b\n"]);
    }

    #[test]
    fn lines_keep_their_numbers_where_cells_with_line_ends_are_left_out() {
        let text = "login,streetAddress,\"two\nlines\",status\na,\"1\n2\n3\",,ACTIVE\nb,,,SUSPENDED\nc,,,?\nd,\nx\"y,,,\n\"e";
        let chunks = split(text, okta());
        assert_eq!(
            texts(&chunks),
            ["\nloginName,status\na,active\n\n\nb,suspended\n\n\n\n\n"]
        );
        let refused: Vec<_> = chunks[0].refused.iter().map(|line| &line["line"]).collect();
        assert_eq!(refused, [7, 8, 9, 10]);
        assert_eq!(chunks[0].records, 2);
        assert_eq!(chunks[0].refused[0]["path"], "/status");
    }

    #[test]
    fn a_file_of_refused_rows_alone_is_not_empty() {
        let chunks = split("login,status\na,?\n", okta());
        assert_eq!(
            (chunks.len(), chunks[0].records, chunks[0].refused.len()),
            (1, 0, 1)
        );
    }

    #[test]
    fn utf_16_and_other_separators_are_the_same_rows() {
        let text = "sep=\t\r\nLOGIN\tid\tstatus\r\nØde\t\"1;2\"\tDEPROVISIONED\r\n";
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        let wide: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        let expected = ["\nloginName,externalId,status\nØde,1;2,suspended\n"];
        assert_eq!(texts(&split(text, okta())), expected);
        assert_eq!(texts(&split(wide, okta())), expected);
    }

    #[test]
    fn a_header_that_says_nothing_is_an_error() {
        let mut chunks = Chunks::new(Box::new(Cursor::new("login,status\na,ACTIVE\n")), csv());
        let said = chunks.next_chunk().unwrap_err().to_string();
        assert!(said.contains("no column holds loginName"), "{said}");
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
    fn a_record_that_is_too_long_is_refused_and_leaves_its_lines_behind() {
        let text = format!("type,name\ngroup,\"{}\"\ngroup,b\n", "z\n".repeat(50_000));
        let chunks = split(text, csv());
        assert_eq!((chunks.len(), chunks[0].records), (1, 1));
        assert_eq!(
            chunks[0].refused,
            [json!({ "line": 2, "message": "has more than 65536 bytes" })]
        );
        assert_eq!(count_lines(&chunks[0].bytes), 50_003);
        assert!(chunks[0].bytes.ends_with(b"\ngroup,b\n"));
    }
}
