//! A client of somebody else in a process of its own that says what it does, one line of JSON per step.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};

/// Longer than any step takes on a busy machine; the clients' own limits are 30 s.
const SILENCE: Duration = Duration::from_mins(2);

/// A running client; killed when dropped.
pub struct Program {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a client")?;
        let output = process.stdout.take().context("a client without output")?;
        let (sender, lines) = channel();
        // Ends with the process, whose output it reads.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            input: process.stdin.take(),
            process,
            lines,
        })
    }

    /// The next line of its output.
    pub fn line(&mut self) -> Outcome<String> {
        self.lines
            .recv_timeout(SILENCE)
            .map_err(|why| Failure::new(format!("a client says no more: {why}")))
    }

    /// The next line as JSON; lines that are none are somebody else's remarks.
    pub fn object(&mut self) -> Outcome<Value> {
        loop {
            let line = self.line()?;
            if let Ok(object) = serde_json::from_str::<Value>(&line)
                && object.is_object()
            {
                return Ok(object);
            }
        }
    }

    /// Waits for a step and returns what was said about it.
    pub fn step(&mut self, name: &str) -> Outcome<Value> {
        let said = self.object()?;
        if said["step"] == name {
            if name != "waiting" {
                println!("    {said}");
            }
            return Ok(said);
        }
        Err(Failure::new(format!("expected the step {name}: {said:#}")))
    }

    /// The first address of an authorization request that it prints, whatever stands around it.
    pub fn authorization(&mut self, origin: &str) -> Outcome<String> {
        let start = format!("{origin}/oauth/authorize?");
        loop {
            let line = self.line()?;
            if let Some(at) = line.find(&start) {
                let is_over = |c: char| c.is_whitespace() || c.is_control();
                return Ok(line[at..].split(is_over).next().unwrap_or_default().to_owned());
            }
        }
    }

    /// What it prints until its output ends.
    pub fn rest(&mut self) -> String {
        let lines = std::iter::from_fn(|| self.line().ok());
        lines.fold(String::new(), |all, line| all + &line + "\n")
    }

    pub fn tell(&mut self, line: &str) -> Outcome {
        let input = self.input.as_mut().context("a client without input")?;
        writeln!(input, "{line}").context("a client does not listen")
    }

    /// Waits for its end, which must be a good one.
    pub fn ends(mut self) -> Outcome {
        drop(self.input.take());
        let status = self.process.wait().context("cannot wait for a client")?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("a client ended with {status}")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Already gone after ends(); here for every other way out.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        Program::start(Command::new("sh").args(["-c", text])).unwrap()
    }

    #[test]
    fn steps_come_in_order_between_the_remarks_of_others() {
        let mut program =
            program(r#"echo 'a remark'; echo '{"step":"one"}'; read line; echo "{\"step\":\"$line\"}""#);
        program.step("one").unwrap();
        program.tell("two").unwrap();
        program.step("two").unwrap();
        program.ends().unwrap();
    }

    #[test]
    fn another_step_than_the_expected_is_a_failure_that_shows_it() {
        let mut program = program(r#"echo '{"step":"failed","text":"because"}'"#);
        let failure = program.step("one").unwrap_err();
        assert!(failure.to_string().contains("because"), "{failure}");
    }

    #[test]
    fn a_program_that_ends_early_or_badly_is_a_failure() {
        assert!(program("exit 0").step("one").is_err());
        assert!(program("exit 3").ends().is_err());
    }

    #[test]
    fn an_address_is_found_between_the_signs_of_a_terminal() {
        let mut program = program(r"printf 'Visit\n\033[94mhttp://h:1/oauth/authorize?a=b&c\033[39m now\n'");
        let found = program.authorization("http://h:1").unwrap();
        assert_eq!(found, "http://h:1/oauth/authorize?a=b&c");
    }
}
