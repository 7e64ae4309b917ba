//! Rows of a file: which sign separates their cells, where they end, and how they are written for the server.

/// Signs that may separate the cells of a row.
pub const SEPARATORS: [u8; 4] = *b",;\t|";

/// Where in a row a byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// Before the first byte of a cell.
    CellStart,
    /// In a cell without quotes.
    Plain,
    /// Between quotes.
    Quoted,
    /// Behind a quote inside quotes: their end, or the first of two.
    Quote,
}

impl Within {
    /// Moves past a byte.
    pub fn step(self, byte: u8, separators: &[u8]) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::Quoted, _) | (Self::CellStart | Self::Quote, b'"') => Self::Quoted,
            (_, byte) if separators.contains(&byte) => Self::CellStart,
            _ => Self::Plain,
        }
    }
}

/// Returns the sign that a first line `sep=…`, as spreadsheets write it, says.
pub fn said_separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line {
        [word @ .., sign] if word.eq_ignore_ascii_case(b"sep=") && SEPARATORS.contains(sign) => Some(*sign),
        _ => None,
    }
}

/// Returns the sign that separates the cells of a header: the most frequent outside quotes; a comma if there is none.
pub fn separator_of(header: &[u8]) -> u8 {
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut within = Within::CellStart;
    for byte in header {
        let place = SEPARATORS.iter().position(|sign| sign == byte);
        if let (Some(place), false) = (place, within == Within::Quoted) {
            counts[place] += 1;
        }
        within = within.step(*byte, &SEPARATORS);
    }
    let mut best = 0;
    for (place, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = place;
        }
    }
    SEPARATORS[best]
}

/// Returns the cells of one row.
///
/// Errors: what is wrong with it.
pub fn cells(row: &[u8], separator: u8) -> Result<Vec<String>, &'static str> {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let (mut cells, mut cell) = (Vec::new(), Vec::new());
    let mut within = Within::CellStart;
    for byte in row {
        let next = within.step(*byte, &[separator]);
        match (within, next) {
            (Within::Plain, _) if *byte == b'"' => {
                return Err("has a quote inside a cell that is not quoted");
            }
            (Within::Quote, Within::Plain) => return Err("has text behind a quoted cell"),
            (_, Within::CellStart) => cells.push(std::mem::take(&mut cell)),
            (Within::CellStart, Within::Quoted) | (Within::Quoted, Within::Quote) => {}
            _ => cell.push(*byte),
        }
        within = next;
    }
    if within == Within::Quoted {
        return Err("has a quoted cell that does not end");
    }
    cells.push(cell);
    let cells: Result<Vec<String>, _> = cells.into_iter().map(String::from_utf8).collect();
    cells.map_err(|_| "must be UTF-8")
}

/// Writes a row as RFC 4180 has it. A row of one empty cell is quoted, so that it is no blank line.
pub fn write(cells: &[String], into: &mut Vec<u8>) {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            into.push(b',');
        }
        if cell.contains([',', '"', '\r', '\n']) || (cell.is_empty() && cells.len() == 1) {
            into.push(b'"');
            into.extend(cell.replace('"', "\"\"").into_bytes());
            into.push(b'"');
        } else {
            into.extend_from_slice(cell.as_bytes());
        }
    }
    into.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_or_a_line_before_it_says_what_separates() {
        assert_eq!(said_separator(b"sep=;\r\n"), Some(b';'));
        assert_eq!(said_separator(b"SEP=\t\n"), Some(b'\t'));
        for line in [&b"sep=x"[..], b"sep=", b"sep=;;", b"type;name", b""] {
            assert_eq!(said_separator(line), None);
        }
        for (header, sign) in [
            ("type,loginName", b','),
            ("type;loginName;groups\r\n", b';'),
            ("login\tstatus\n", b'\t'),
            ("\"a;b;c\",login", b','),
            ("login", b','),
        ] {
            assert_eq!(separator_of(header.as_bytes()), sign, "{header}");
        }
    }

    #[test]
    fn a_row_is_cells_and_its_damage_is_named() {
        let read = |row: &str| cells(row.as_bytes(), b';');
        let texts = |row: &[&str]| Ok(row.iter().map(|cell| (*cell).to_owned()).collect());
        assert_eq!(read("a;b,c;\r\n"), texts(&["a", "b,c", ""]));
        assert_eq!(
            read("\"x;\"\"y\"\"\";\"two\nlines\"\n"),
            texts(&["x;\"y\"", "two\nlines"])
        );
        assert_eq!(read("\"\""), texts(&[""]));
        assert_eq!(
            read("a\"b;c"),
            Err("has a quote inside a cell that is not quoted")
        );
        assert_eq!(read("\"a\"b;c"), Err("has text behind a quoted cell"));
        assert_eq!(read("\"a;c\n"), Err("has a quoted cell that does not end"));
        assert_eq!(cells(b"\xff", b';'), Err("must be UTF-8"));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for row in [
            vec!["a", "b,c", "say \"x\"", "two\r\nlines", ""],
            vec![""],
            vec!["Ødegård;李"],
        ] {
            let row: Vec<String> = row.into_iter().map(str::to_owned).collect();
            let mut written = Vec::new();
            write(&row, &mut written);
            assert_eq!(cells(&written, b','), Ok(row));
        }
    }
}
