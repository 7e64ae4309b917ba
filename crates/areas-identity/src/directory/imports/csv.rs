//! Comma-separated records as RFC 4180 writes them, with the line on which each begins.
//!
//! Ours, because a refused record must not take its neighbours along, and each is measured and numbered.

/// A record of a CSV text.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// The line on which it begins; the first of the text is 1.
    pub line: i64,
    /// How many lines it takes.
    pub lines: i64,
    /// Its length in bytes, with quotes and separators.
    pub size_bytes: usize,
    /// Its cells, or why it is no record.
    pub cells: Result<Vec<Vec<u8>>, &'static str>,
}

/// Returns the records of a text and how many lines it has. Blank lines are no records.
pub fn records(text: &[u8]) -> (Vec<Record>, i64) {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, text);
    while !rest.is_empty() {
        let (cells, taken) = record(rest);
        let lines = count_lines(&rest[..taken]);
        let is_blank = rest[..taken].iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        if !is_blank {
            found.push(Record {
                line,
                lines,
                size_bytes: taken,
                cells,
            });
        }
        line += lines;
        rest = &rest[taken..];
    }
    (found, line - 1)
}

/// Returns how many lines a text has; a last one need not end.
pub fn count_lines(text: &[u8]) -> i64 {
    let lines = text.split_inclusive(|byte| *byte == b'\n').count();
    i64::try_from(lines).unwrap_or(i64::MAX)
}

/// Reads the first record; returns it and how many bytes it takes with its line's end.
fn record(text: &[u8]) -> (Result<Vec<Vec<u8>>, &'static str>, usize) {
    let (mut cells, mut at) = (Vec::new(), 0);
    loop {
        let (cell, after) = match cell(text, at) {
            Ok(read) => read,
            Err((why, after)) => return (Err(why), end_of_line(text, after)),
        };
        cells.push(cell);
        match text.get(after) {
            Some(b',') => at = after + 1,
            _ => return (Ok(cells), end_of_line(text, after)),
        }
    }
}

fn end_of_line(text: &[u8], from: usize) -> usize {
    let end = text[from..].iter().position(|byte| *byte == b'\n');
    end.map_or(text.len(), |end| from + end + 1)
}

/// Reads one cell; returns it and where its separator stands, or why it is none and where the damage ends.
fn cell(text: &[u8], at: usize) -> Result<(Vec<u8>, usize), (&'static str, usize)> {
    let is_end = |place: usize| {
        text.get(place).is_none_or(|byte| matches!(byte, b',' | b'\n'))
            || (text[place] == b'\r' && text.get(place + 1).is_none_or(|next| *next == b'\n'))
    };
    if text.get(at) != Some(&b'"') {
        let mut end = at;
        while !is_end(end) {
            if text[end] == b'"' {
                return Err(("has a quote inside a cell that is not quoted", end));
            }
            end += 1;
        }
        return Ok((text[at..end].to_vec(), end));
    }
    let (mut value, mut place) = (Vec::new(), at + 1);
    loop {
        match (text.get(place), text.get(place + 1)) {
            (None, _) => return Err(("has a quoted cell that does not end", text.len())),
            (Some(b'"'), Some(b'"')) => {
                value.push(b'"');
                place += 2;
            }
            (Some(b'"'), _) if is_end(place + 1) => return Ok((value, place + 1)),
            (Some(b'"'), _) => return Err(("has text behind a quoted cell", place)),
            (Some(byte), _) => {
                value.push(*byte);
                place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(i64, Result<Vec<String>, &'static str>)> {
        let text_of =
            |cells: Vec<Vec<u8>>| cells.into_iter().map(|c| String::from_utf8(c).unwrap()).collect();
        let (records, _) = records(text.as_bytes());
        records
            .into_iter()
            .map(|r| (r.line, r.cells.map(text_of)))
            .collect()
    }

    #[test]
    fn records_are_cells_with_the_line_on_which_they_begin() {
        let text = "a,b\r\n\"x,\"\"y\"\"\",\n\n\"two\nlines\",z\nlast,\"\"";
        let expected: Vec<(i64, Result<Vec<String>, _>)> = vec![
            (1, Ok(vec!["a".into(), "b".into()])),
            (2, Ok(vec!["x,\"y\"".into(), String::new()])),
            (4, Ok(vec!["two\nlines".into(), "z".into()])),
            (6, Ok(vec!["last".into(), String::new()])),
        ];
        assert_eq!(cells(text), expected);
        assert_eq!(records(text.as_bytes()).1, 6);
    }

    #[test]
    fn a_damaged_record_does_not_take_the_next_one_along() {
        let found = cells("a\"b,c\n1,2\n\"x\"y,z\n3,4\n\"open\n5,6");
        let whole: Vec<_> = found.iter().map(|(line, r)| (*line, r.is_ok())).collect();
        assert_eq!(whole, [(1, false), (2, true), (3, false), (4, true), (5, false)]);
    }

    #[test]
    fn every_byte_belongs_to_one_line() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("\n\n", 2),
            ("a\r\nb\r\n", 2),
        ] {
            assert_eq!(records(text.as_bytes()).1, count, "{text:?}");
        }
    }
}
