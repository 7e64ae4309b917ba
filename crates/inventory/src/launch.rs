//! What a command line starts, once the programs around it are taken away.

/// LIMIT: programs around a command. Ours.
const LEVELS: usize = 8;

/// What is left of a command line.
pub(crate) enum Launch {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A line that only a shell understands: a pipeline, a list, a substitution.
    Pipeline(Vec<String>),
}

/// A command line without the programs around its command.
pub(crate) struct Line {
    pub(crate) launch: Launch,
    /// The names of variables that were set on the way.
    pub(crate) variables: Vec<String>,
    /// Whether it starts in another folder than the one where its client is.
    pub(crate) is_moved: bool,
}

/// Folders whose programs are what their names say.
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/bin", "/opt/homebrew/bin"];
/// The same of Windows, in lower case.
const WINDOWS_FOLDERS: [&str; 2] = ["c:/program files/nodejs", "c:/windows/system32"];

/// Returns the name of a program if it is found by its name, or lies where systems have their programs: `./npx` may be anything.
pub(crate) fn tool(program: &str) -> Option<String> {
    if let Some(at) = program.rfind(['/', '\\']) {
        let folder = program[..at].replace('\\', "/");
        let is_known =
            FOLDERS.contains(&folder.as_str()) || WINDOWS_FOLDERS.contains(&folder.to_lowercase().as_str());
        if !is_known {
            return None;
        }
    }
    Some(base(program))
}

/// Returns the name of a program without its folder and ending.
pub(crate) fn base(program: &str) -> String {
    let name = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_lowercase();
    [".exe", ".cmd", ".bat", ".ps1"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .map_or(name.clone(), str::to_owned)
}

/// Takes away `env`, `sudo`, `nohup`, `timeout`, `cmd /c`, `sh -c` and our own guard.
pub(crate) fn unwrapped(mut words: Vec<String>) -> Line {
    let (mut variables, mut is_moved) = (Vec::new(), false);
    let pipeline = |words, variables, is_moved| Line {
        launch: Launch::Pipeline(words),
        variables,
        is_moved,
    };
    for _ in 0..LEVELS {
        let Some((program, rest)) = words.split_first() else {
            break;
        };
        let inner = match tool(program).unwrap_or_default().as_str() {
            "env" => {
                let inner = after(
                    rest,
                    &["-u", "--unset", "-C", "--chdir"],
                    &["-i", "-", "--ignore-environment"],
                );
                let flags = rest.len() - inner.as_ref().map_or(0, Vec::len);
                is_moved |= rest[..flags]
                    .iter()
                    .any(|word| word.starts_with("-C") || word.starts_with("--chdir"));
                inner
            }
            "sudo" | "doas" => after(rest, &["-u", "-g"], &["-E", "-n", "-H", "-S", "--preserve-env"]),
            "nohup" | "exec" | "time" => after(rest, &[], &[]),
            "nice" => after(rest, &["-n", "--adjustment"], &[]),
            "timeout" => after(
                rest,
                &["-k", "-s", "--signal", "--kill-after"],
                &["--foreground", "-v"],
            )
            .and_then(|rest| rest.get(1..).map(<[String]>::to_vec)),
            "cmd" if rest.iter().any(|word| is_of_shell(word, "%^!()")) => {
                return pipeline(words, variables, is_moved);
            }
            "cmd" => after_cmd(rest),
            "sh" | "bash" | "zsh" | "dash" => match rest {
                [flag, line, behind @ ..]
                    if flag.starts_with('-') && flag.ends_with('c') && !flag.starts_with("--") =>
                {
                    let is_of_shell =
                        is_of_shell(line, "") || behind.iter().any(|word| is_of_shell(word, ""));
                    match simple(line).filter(|_| !is_of_shell) {
                        Some(inner) => Some(inner),
                        None => return pipeline(words, variables, is_moved),
                    }
                }
                _ => None,
            },
            "provost" if rest.len() > 2 && rest[0] == "mcp" && rest[1] == "guard" => {
                let end = rest.iter().position(|word| word == "--");
                end.map(|end| rest[end + 1..].to_vec())
            }
            _ => None,
        };
        let Some(inner) = inner.filter(|inner| !inner.is_empty()) else {
            break;
        };
        let set = inner.iter().take_while(|word| is_assignment(word)).count();
        variables.extend(
            inner[..set]
                .iter()
                .filter_map(|word| Some(word.split_once('=')?.0.to_owned())),
        );
        words = inner[set..].to_vec();
    }
    Line {
        launch: Launch::Program(words),
        variables,
        is_moved,
    }
}

/// Says whether a word holds a character with which a shell does more than split, also in quotes: shells differ in which of them count.
fn is_of_shell(word: &str, more: &str) -> bool {
    word.contains(|c| "|&;<>$`\r\n".contains(c) || more.contains(c))
}

fn is_assignment(word: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(is_part))
}

/// Returns what stands behind the flags of a program; `None` when one of them is not known.
pub(crate) fn after(words: &[String], with_value: &[&str], alone: &[&str]) -> Option<Vec<String>> {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if word == "--" {
            at += 1;
            break;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if with_value.contains(&name) {
            at += if name == word { 2 } else { 1 };
        } else if alone.contains(&name) {
            at += 1;
        } else {
            return None;
        }
    }
    words.get(at..).map(<[String]>::to_vec)
}

fn after_cmd(words: &[String]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| word.eq_ignore_ascii_case("/c"))?;
    if !words[..at].iter().all(|word| word.starts_with('/')) {
        return None;
    }
    match &words[at + 1..] {
        [line] => simple(line),
        rest => Some(rest.to_vec()),
    }
}

/// Returns the words of one simple command; `None` when a shell would do more with it than split it.
pub(crate) fn simple(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut is_word, mut quote) = (Vec::new(), String::new(), false, None);
    for c in line.chars() {
        match (c, quote) {
            ('`' | '$', None | Some('"'))
            | ('|' | ';' | '&' | '<' | '>' | '(' | ')' | '\n' | '*' | '?' | '#', None) => {
                return None;
            }
            // Escapes mean different things inside and outside of quotes, and to different shells.
            ('\\', None | Some('"')) => return None,
            ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            _ => {
                is_word = true;
                word.push(c);
            }
        }
    }
    if quote.is_some() {
        return None;
    }
    if is_word {
        words.push(word);
    }
    Some(words)
}
