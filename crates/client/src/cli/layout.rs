//! Where the cells of a table stand, so that it fits the terminal.

use dialoguer::console::measure_text_width;
use std::fmt::Write as _;

/// Columns narrower than this are no pleasure to read.
const MIN_WIDTH: usize = 10;
/// Words up to this length, such as ids and times, are not broken: they are copied with a double click.
const WORD_WIDTH: usize = 40;
/// What stands between two columns; half of it stands before the first one, and nothing behind the last.
const GAP: usize = 2;

/// The colour of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// As it should be.
    Green,
    /// On its way, or worth a look.
    Yellow,
    /// Stopped.
    Red,
}

impl Colour {
    fn code(self) -> u8 {
        match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
        }
    }
}

/// One cell: lines of text that cannot steer a terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) colour: Option<Colour>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, colour: None }
    }
}

/// Returns how many columns from the left have room, at least one.
pub(super) fn fitting(rows: &[Vec<Cell>], width: Option<u16>) -> usize {
    let room = width.map_or(usize::MAX, usize::from).saturating_add(GAP / 2);
    let mut used = 0;
    let fits = least(rows).into_iter().take_while(|needed| {
        used += needed + GAP;
        used <= room
    });
    fits.count().max(1)
}

/// Returns the rows as text, the heads being the first of them.
pub(super) fn text(rows: &[Vec<Cell>], width: Option<u16>) -> String {
    let natural: Vec<usize> = columns(rows, |cell| widest(cell.text.lines()));
    let widths = match width {
        Some(width) => shares(least(rows), &natural, usize::from(width)),
        None => natural,
    };
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrapped(&cell.text, *width))
            .collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            push_line(&mut text, row, &cells, &widths, line);
        }
    }
    text
}

fn push_line(text: &mut String, row: &[Cell], cells: &[Vec<String>], widths: &[usize], line: usize) {
    let mut blanks = GAP / 2;
    for ((cell, lines), width) in row.iter().zip(cells).zip(widths) {
        let part = lines.get(line).map_or("", String::as_str);
        if !part.is_empty() {
            text.extend(std::iter::repeat_n(' ', blanks));
            blanks = 0;
            match cell.colour {
                Some(colour) => {
                    let _ = write!(text, "\u{1b}[{}m{part}\u{1b}[0m", colour.code());
                }
                None => text.push_str(part),
            }
        }
        blanks += width.saturating_sub(measure_text_width(part)) + GAP;
    }
    text.push('\n');
}

/// Returns the widths of the columns: at least what each needs, where there is room for all of that, and the rest from the left.
fn shares(mut widths: Vec<usize>, natural: &[usize], width: usize) -> Vec<usize> {
    let room = (width + GAP / 2)
        .saturating_sub(GAP * widths.len())
        .max(widths.len());
    let mut used: usize = widths.iter().sum();
    while used > room {
        let Some(largest) = widths.iter_mut().max() else {
            break;
        };
        *largest -= 1;
        used -= 1;
    }
    for (width, natural) in widths.iter_mut().zip(natural) {
        let more = natural.saturating_sub(*width).min(room - used);
        *width += more;
        used += more;
    }
    widths
}

/// Returns what each column needs at least.
fn least(rows: &[Vec<Cell>]) -> Vec<usize> {
    let heads = rows.first().map(Vec::as_slice).unwrap_or_default();
    let natural = columns(rows, |cell| widest(cell.text.lines()));
    let word = columns(rows, |cell| widest(cell.text.split_whitespace()));
    let least = heads.iter().zip(natural.iter().zip(&word));
    least
        .map(|(head, (natural, word))| {
            let heading = widest(head.text.split_whitespace());
            (*natural).min((*word).clamp(MIN_WIDTH, WORD_WIDTH)).max(heading)
        })
        .collect()
}

fn columns(rows: &[Vec<Cell>], measure: fn(&Cell) -> usize) -> Vec<usize> {
    let mut widths = vec![0; rows.first().map_or(0, Vec::len)];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure(cell).max(*width);
        }
    }
    widths
}

fn widest<'a>(parts: impl Iterator<Item = &'a str>) -> usize {
    parts.map(measure_text_width).max().unwrap_or(0)
}

/// Returns the text in lines of a width, broken between words where that is possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        if measure_text_width(line) <= width {
            lines.push(line.to_owned());
            continue;
        }
        let mut current = String::new();
        for word in line.split(' ') {
            let blank = usize::from(!current.is_empty());
            if measure_text_width(&current) + blank + measure_text_width(word) <= width {
                current.extend(std::iter::repeat_n(' ', blank));
                current.push_str(word);
                continue;
            }
            if !current.is_empty() {
                lines.push(std::mem::take(&mut current));
            }
            for c in word.chars() {
                if !current.is_empty()
                    && measure_text_width(&current) + measure_text_width(c.encode_utf8(&mut [0; 4])) > width
                {
                    lines.push(std::mem::take(&mut current));
                }
                current.push(c);
            }
        }
        lines.push(current);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&[&str]], width: Option<u16>) -> String {
        let cells = |row: &&[&str]| row.iter().map(|text| Cell::from((*text).to_owned())).collect();
        text(&rows.iter().map(cells).collect::<Vec<Vec<Cell>>>(), width)
    }

    #[test]
    fn cells_stand_below_each_other_and_wrap_between_words() {
        let rows: &[&[&str]] = &[
            &["NAME", "SAYS"],
            &["wheel", "it turns round and round"],
            &["李", "a"],
        ];
        assert_eq!(
            table(rows, None),
            " NAME   SAYS\n wheel  it turns round and round\n 李     a\n"
        );
        assert_eq!(
            table(rows, Some(24)),
            " NAME   SAYS\n wheel  it turns round\n        and round\n 李     a\n"
        );
    }

    #[test]
    fn a_table_is_never_wider_than_its_room() {
        let long = "x".repeat(120);
        let rows: &[&[&str]] = &[&["A", "B", "C"], &[&long, "two words", &long], &["", "b", ""]];
        for width in 8..200 {
            let text = table(rows, Some(width));
            let widest = text.lines().map(measure_text_width).max().unwrap();
            assert!(widest <= usize::from(width), "{width}: {text}");
            assert_eq!(text.matches('x').count(), 240, "{width}: {text}");
        }
    }

    #[test]
    fn a_colour_takes_no_room_and_ends() {
        let cell = |text: &str, colour| Cell {
            text: text.into(),
            colour,
        };
        let rows = vec![
            vec![cell("STATUS", None), cell("ID", None)],
            vec![cell("active", Some(Colour::Green)), cell("w_1", None)],
        ];
        assert_eq!(
            text(&rows, Some(40)),
            " STATUS  ID\n \u{1b}[32mactive\u{1b}[0m  w_1\n"
        );
    }
}
