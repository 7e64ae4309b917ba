//! A page of Markdown as the steps that a reader takes.

use crate::failure::{Failure, Outcome};

/// A page and what is typed on it.
#[derive(Debug)]
pub struct Page {
    pub name: String,
    /// With the line of the page where each begins.
    pub steps: Vec<(usize, Step)>,
    /// Blocks that are neither typed nor compared: examples of data, other languages.
    pub illustrations: usize,
}

#[derive(Debug)]
pub enum Step {
    Type(Input),
    File {
        name: String,
        content: String,
    },
    LeftOut {
        reason: String,
    },
    /// A name of the page stands for what this command says.
    Means {
        shown: String,
        command: String,
    },
}

/// Something that is typed.
#[derive(Debug)]
pub struct Input {
    pub text: String,
    pub how: How,
    pub exit: Exit,
    /// What the page shows of its output, with the line where that begins.
    pub shown: Option<(usize, String)>,
    /// Whether the reader sees it.
    is_visible: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Every command of it has to succeed.
    Block,
    /// One command, whose exit code the next one may ask for.
    One,
    /// A server; what follows needs its answers.
    Background,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    Failure,
    Code(i32),
    Any,
}

impl Exit {
    pub fn takes(self, status: i32) -> bool {
        match self {
            Self::Success => status == 0,
            Self::Failure => status != 0,
            Self::Code(code) => status == code,
            Self::Any => true,
        }
    }
}

/// How much of a page is proved.
pub struct Count {
    pub typed: usize,
    pub compared: usize,
    pub left_out: usize,
}

/// What a comment says of the block that follows.
enum Note {
    NotRun(String),
    Shown,
    File(String),
    Background,
    Exits(i32),
}

/// A fenced block.
struct Block {
    line: usize,
    language: String,
    text: String,
}

impl Page {
    /// Reads a page.
    ///
    /// Errors: a comment that says nothing known, a block without an end.
    pub fn read(name: &str, markdown: &str) -> Outcome<Self> {
        let wrong = |line: usize, what: &str| Failure::new(format!("{name}, line {line}: {what}"));
        let mut reader = Reader::default();
        let mut lines = (1..).zip(markdown.lines());
        while let Some((line, text)) = lines.next() {
            let trimmed = text.trim_start();
            if let Some(language) = trimmed.strip_prefix("```") {
                let indent = text.len() - trimmed.len();
                let mut content = String::new();
                loop {
                    let Some((_, inner)) = lines.next() else {
                        return Err(wrong(line, "the block has no end"));
                    };
                    if inner.trim() == "```" {
                        break;
                    }
                    content.push_str(inner.get(indent..).unwrap_or_else(|| inner.trim_start()));
                    content.push('\n');
                }
                reader.block(Block {
                    line,
                    language: language.trim().to_owned(),
                    text: content,
                });
            } else if let Some(begin) = trimmed.strip_prefix("<!--") {
                let mut comment = begin.to_owned();
                while !comment.contains("-->") {
                    let Some((_, inner)) = lines.next() else {
                        return Err(wrong(line, "the comment has no end"));
                    };
                    comment.push('\n');
                    comment.push_str(inner);
                }
                let comment = comment.split("-->").next().unwrap_or_default().trim();
                if !reader.comment(line, comment) {
                    return Err(wrong(line, "nothing is known that this comment could mean"));
                }
            } else if trimmed.starts_with('#') {
                reader.awaits_output = false;
            }
        }
        Ok(Self {
            name: name.to_owned(),
            steps: reader.steps,
            illustrations: reader.illustrations,
        })
    }

    pub fn starts_a_server(&self) -> bool {
        let is_server = |step: &Step| matches!(step, Step::Type(typed) if typed.how == How::Background);
        self.steps.iter().any(|(_, step)| is_server(step))
    }

    pub fn count(&self) -> Count {
        let mut count = Count {
            typed: 0,
            compared: 0,
            left_out: 0,
        };
        for (_, step) in &self.steps {
            match step {
                Step::Type(typed) => {
                    count.typed += usize::from(typed.is_visible);
                    count.compared += usize::from(typed.shown.is_some());
                }
                Step::File { .. } | Step::Means { .. } => {}
                Step::LeftOut { .. } => count.left_out += 1,
            }
        }
        count
    }
}

#[derive(Default)]
struct Reader {
    steps: Vec<(usize, Step)>,
    illustrations: usize,
    notes: Vec<Note>,
    /// Whether the next block is what the last step says.
    awaits_output: bool,
    /// Why nothing is typed from here on.
    page_is_not_run: Option<String>,
}

impl Reader {
    /// Takes a comment; false when it means nothing.
    fn comment(&mut self, line: usize, comment: &str) -> bool {
        let after = |word: &str| comment.strip_prefix(word).map(|rest| rest.trim().to_owned());
        if let Some(reason) = after("page not run:") {
            self.page_is_not_run = Some(reason);
        } else if let Some(reason) = after("not run:") {
            self.notes.push(Note::NotRun(reason));
        } else if after("shown:").is_some() {
            self.notes.push(Note::Shown);
        } else if let Some(name) = after("in: file ") {
            self.notes.push(Note::File(name));
        } else if comment == "in the background" {
            self.notes.push(Note::Background);
        } else if let Some(code) = after("exits ").and_then(|code| code.parse().ok()) {
            self.notes.push(Note::Exits(code));
        } else if let Some((shown, command)) = after("stands for:")
            .as_deref()
            .and_then(|rest| rest.split_once(" is "))
        {
            let (shown, command) = (shown.trim().to_owned(), command.to_owned());
            self.steps.push((line, Step::Means { shown, command }));
        } else if let Some(text) = after("run:") {
            self.hidden(line, text);
            self.awaits_output = true;
        } else if let Some(text) = after("set up:") {
            self.hidden(line, text);
            self.awaits_output = false;
        } else {
            return false;
        }
        true
    }

    fn hidden(&mut self, line: usize, text: String) {
        let exit = match self.notes.pop() {
            Some(Note::Exits(code)) => Exit::Code(code),
            _ => Exit::Success,
        };
        let typed = Input {
            text,
            how: How::Block,
            exit,
            shown: None,
            is_visible: false,
        };
        self.steps.push((line, Step::Type(typed)));
    }

    fn block(&mut self, block: Block) {
        let notes = std::mem::take(&mut self.notes);
        let awaited = std::mem::take(&mut self.awaits_output);
        let is_text = matches!(block.language.as_str(), "" | "text" | "json");
        let is_dialogue = block.language.is_empty() && block.text.starts_with("$ ");
        let (mut how, mut exit) = (How::Block, Exit::Success);
        let is_command = block.language == "sh" || is_dialogue;
        if let Some(reason) = self.page_is_not_run.clone().filter(|_| is_command) {
            return self.steps.push((block.line, Step::LeftOut { reason }));
        }
        for note in notes {
            match note {
                Note::NotRun(reason) => return self.steps.push((block.line, Step::LeftOut { reason })),
                Note::Shown => {
                    self.illustrations += 1;
                    return;
                }
                Note::File(name) => {
                    let content = block.text;
                    return self.steps.push((block.line, Step::File { name, content }));
                }
                Note::Background => how = How::Background,
                Note::Exits(code) => exit = Exit::Code(code),
            }
        }
        if block.language == "sh" {
            self.steps.push((
                block.line,
                Step::Type(Input {
                    text: block.text,
                    how,
                    exit,
                    shown: None,
                    is_visible: true,
                }),
            ));
            self.awaits_output = true;
        } else if is_dialogue {
            self.dialogue(&block);
        } else if is_text && awaited {
            if let Some((_, Step::Type(typed))) = self.steps.last_mut() {
                typed.shown = Some((block.line, block.text));
            }
        } else {
            self.illustrations += 1;
        }
    }

    /// Takes commands behind `$ ` apart from what they say.
    fn dialogue(&mut self, block: &Block) {
        let mut lines = (block.line + 1..).zip(block.text.lines()).peekable();
        while let Some((line, first)) = lines.next() {
            let mut text = first.strip_prefix("$ ").unwrap_or(first).to_owned();
            while is_unfinished(&text)
                && let Some((_, more)) = lines.next()
            {
                text.push('\n');
                text.push_str(more);
            }
            let mut said = String::new();
            let begins = line + text.lines().count();
            while let Some((_, output)) = lines.next_if(|(_, output)| !output.starts_with("$ ")) {
                said.push_str(output);
                said.push('\n');
            }
            let asks_for_the_code = lines.peek().is_some_and(|(_, next)| *next == "$ echo $?");
            let exit = if said.lines().any(|line| line.starts_with("error:")) {
                Exit::Failure
            } else if asks_for_the_code {
                Exit::Any
            } else {
                Exit::Success
            };
            let typed = Input {
                text,
                how: How::One,
                exit,
                shown: (!said.trim().is_empty()).then_some((begins, said)),
                is_visible: true,
            };
            self.steps.push((line, Step::Type(typed)));
        }
    }
}

/// Whether a shell would ask for more: an open quote, or a backslash at the end.
fn is_unfinished(text: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for letter in text.chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, letter) {
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    quote.is_some() || escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\n```sh\nmake it\n```\n\n```\nmade …\n```\n\n```json\n{}\n```\n\n## Next\n\n<!-- not run: takes an hour -->\n\
        ```sh\nsleep 3600\n```\n\n<!-- set up:\ntrue\n-->\n```\n$ say 'two\n  lines' \\\n    more\none\n$ fail\nerror: no\n$ echo $?\n1\n```\n\n\
        <!-- in: file a.csv -->\n```\na,b\n```\n\n1. In a list:\n\n   ```sh\n   if it\n     is so\n   ```\n";

    fn typed(page: &Page) -> Vec<&Input> {
        page.steps
            .iter()
            .filter_map(|(_, step)| match step {
                Step::Type(typed) => Some(typed),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn blocks_become_steps() {
        let page = Page::read("x", PAGE).unwrap();
        let typed = typed(&page);
        let texts: Vec<&str> = typed.iter().map(|typed| typed.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "make it\n",
                "true",
                "say 'two\n  lines' \\\n    more",
                "fail",
                "echo $?",
                "if it\n  is so\n"
            ]
        );
        assert_eq!(typed[0].shown, Some((7, "made …\n".to_owned())));
        assert_eq!(typed[2].shown.as_ref().unwrap().1, "one\n");
        assert_eq!(typed[3].exit, Exit::Failure);
        assert_eq!(page.illustrations, 1);
        let count = page.count();
        assert_eq!((count.typed, count.compared, count.left_out), (5, 4, 1));
        assert!(!page.starts_a_server());
        let page = Page::read("x", &format!("<!-- page not run: needs a fleet -->\n{PAGE}")).unwrap();
        assert_eq!((page.count().typed, page.count().left_out), (0, 4));
    }

    #[test]
    fn a_comment_that_means_nothing_is_refused() {
        Page::read("x", "<!-- not rum: because -->\n").unwrap_err();
        Page::read("x", "```sh\nls\n").unwrap_err();
    }
}
