//! Lists of the page: the first rows are seen, the others unfold. On a narrow page each row becomes a block.

use super::MAX_ROWS;
use provost_words::html::Html;

pub struct Table<'a> {
    caption: &'static str,
    /// The heads of the columns, and the class of their cells.
    heads: &'a [(&'static str, &'static str)],
}

pub struct Row(pub Vec<Cell>);

pub enum Cell {
    /// Words of this program, or figures.
    Plain(String),
    /// A name that somebody chose, and something smaller below it.
    Named(String, Option<String>),
}

impl Cell {
    pub fn plain(text: String) -> Self {
        Self::Plain(text)
    }

    pub fn named(name: String, under: Option<String>) -> Self {
        let under = under.filter(|under| *under != name);
        Self::Named(name, under)
    }
}

impl<'a> Table<'a> {
    pub fn new(caption: &'static str, heads: &'a [(&'static str, &'static str)]) -> Self {
        Self { caption, heads }
    }

    pub fn add(&self, html: &mut Html, rows: &[Row], shown: usize) {
        let known = rows.len().min(MAX_ROWS);
        let (first, rest) = rows[..known].split_at(known.min(shown));
        self.part(html, self.caption, first);
        if !rest.is_empty() {
            html.element("details", &[], |html| {
                html.words("summary", "", &format!("{} more", rest.len()));
                self.part(html, "The others", rest);
            });
        }
        if rows.len() > known {
            html.words(
                "p",
                "hint",
                &format!("{} more are not listed.", rows.len() - known),
            );
        }
    }

    fn part(&self, html: &mut Html, caption: &str, rows: &[Row]) {
        // Blocks are no table to a browser; the roles keep it one for whoever listens.
        html.element("table", &[("class", "standing"), ("role", "table")], |html| {
            html.words("caption", "", caption);
            html.element("thead", &[("role", "rowgroup")], |html| {
                html.element("tr", &[("role", "row")], |html| {
                    for (head, class) in self.heads {
                        let at = [("scope", "col"), ("role", "columnheader"), ("class", *class)];
                        html.element("th", &at, |html| html.text(head));
                    }
                });
            });
            html.element("tbody", &[("role", "rowgroup")], |html| {
                for row in rows {
                    self.row(html, row);
                }
            });
        });
    }

    fn row(&self, html: &mut Html, row: &Row) {
        html.element("tr", &[("role", "row")], |html| {
            for (place, (cell, (head, class))) in row.0.iter().zip(self.heads).enumerate() {
                let inner = |html: &mut Html| match cell {
                    Cell::Plain(text) => html.text(text),
                    Cell::Named(name, under) => {
                        html.name(name);
                        if let Some(under) = under {
                            html.element("span", &[("class", "kind under")], |html| html.name(under));
                        }
                    }
                };
                if place == 0 {
                    html.element("th", &[("scope", "row"), ("role", "rowheader")], inner);
                } else {
                    let at = [("role", "cell"), ("data-label", *head), ("class", *class)];
                    html.element("td", &at, inner);
                }
            }
        });
    }
}
