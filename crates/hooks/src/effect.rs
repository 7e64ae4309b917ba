//! Which registration of ours a client obeys, by its own order of precedence.
//!
//! ```text
//! Claude Code   managed-settings.json, then managed-settings.d/*.json in their order ──► the person's settings.json
//! Codex         requirements.toml, with features.hooks = true ──► (a person's hooks are not obeyed without that person's trust)
//! Gemini CLI    system settings.json ──► the person's settings.json
//! ```
//!
//! A registration counts as it is written by `provost hook install`, to the letter: another time to wait, another matcher or another line
//! is another registration, of which nobody measured what it does.
//!
//! Source: what each client did when it was measured (ADR 0097), and its documents where it says so.

use crate::client::{Client, Mode};
use crate::coverage::Reason;
use crate::registration::{MOMENTS, command_line, found, hooks};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Whose settings register something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of the machine.
    Machine,
    /// Those of a person, who can change them.
    Person,
}

/// A file of settings as it was found.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingsFound {
    /// There is none.
    Absent,
    /// There is one, and it is not what the client reads, or cannot be read.
    Unreadable,
    /// What it says.
    Read(Map<String, Value>),
}

/// Every file of settings of a client that decides about hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EverySettings {
    /// Those of the machine, the weakest first.
    pub machine: Vec<SettingsFound>,
    /// Files of the machine that switch things on and off and register nothing that the client obeys.
    pub switches: Vec<SettingsFound>,
    /// Those of the person; none where nobody looks at them.
    pub person: Vec<SettingsFound>,
}

/// What a client obeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Whose settings register it.
    pub whose: Whose,
    /// The command line.
    pub line: String,
    /// The program in it, and the mode that it asks in; nothing where the line is another one than is written.
    pub program: Option<(String, Mode)>,
    /// Why it is less than a registration that holds.
    pub lacks: BTreeSet<Reason>,
}

/// Returns the registration that a client obeys.
///
/// Errors: why it obeys none.
pub fn effect(client: Client, settings: &EverySettings) -> Result<Effect, Reason> {
    // A client that cannot read one of the machine's files does what nobody measured.
    let machine = read(&settings.machine).ok_or(Reason::RegistrationUnreadable)?;
    let switches = read(&settings.switches).ok_or(Reason::RegistrationUnreadable)?;
    if is_off(client, &machine) || is_off(client, &switches) {
        return Err(Reason::HooksDisabled);
    }
    if let Some(found) = found(client, &machine) {
        let mut effect = looked_at(client, Whose::Machine, &machine, found.command);
        if client == Client::ClaudeCode && machine.get("policyHelper").is_some() {
            effect.lacks.insert(Reason::ManagedElsewhere);
        }
        return Ok(effect);
    }
    // Codex obeys hooks of a person only after that person's trust, which no file shows.
    if client == Client::Codex {
        return Err(Reason::NotRegistered);
    }
    let person = read(&settings.person).ok_or(Reason::RegistrationUnreadable)?;
    let Some(found) = found(client, &person) else {
        return Err(Reason::NotRegistered);
    };
    if is_off(client, &person) {
        return Err(Reason::HooksDisabled);
    }
    if client == Client::ClaudeCode && machine.get("allowManagedHooksOnly") == Some(&Value::Bool(true)) {
        return Err(Reason::ManagedHooksOnly);
    }
    let mut effect = looked_at(client, Whose::Person, &person, found.command);
    effect.lacks.insert(Reason::PersonRegistration);
    Ok(effect)
}

fn looked_at(client: Client, whose: Whose, settings: &Value, line: String) -> Effect {
    let program = program_of(client, &line);
    let mut lacks = BTreeSet::new();
    match &program {
        Some((_, mode)) => {
            if *mode == Mode::Monitor {
                lacks.insert(Reason::MonitorMode);
            }
            if !is_whole(client, *mode, settings, &line) {
                lacks.insert(Reason::RegistrationChanged);
            }
        }
        None => {
            lacks.insert(Reason::RegistrationChanged);
        }
    }
    Effect {
        whose,
        line,
        program,
        lacks,
    }
}

/// Returns the program of a command line and the mode in which it asks; `None` for a line that is not written by an installation.
pub fn program_of(client: Client, line: &str) -> Option<(String, Mode)> {
    let program = first_word(line)?;
    [Mode::Enforce, Mode::Monitor]
        .into_iter()
        .find(|mode| command_line(&program, client, *mode, &[]) == line)
        .map(|mode| (program, mode))
}

/// Returns the mode of a command line as `provost hook install` writes it, with `--config` and a file or without; `None` for another one.
fn mode_of_written(client: Client, line: &str) -> Option<Mode> {
    let program = first_word(line)?;
    let config = line.rsplit_once(" --config ");
    let config = config.and_then(|(_, rest)| first_word(&format!("{rest} ")));
    let flags: Vec<&str> = config
        .iter()
        .flat_map(|file| ["--config", file.as_str()])
        .collect();
    [Mode::Enforce, Mode::Monitor]
        .into_iter()
        .find(|mode| command_line(&program, client, *mode, &flags) == line)
}

/// Returns why a client does less by this file of settings than by one that an installation wrote; `None` where it is just that.
///
/// Other files of the client may take it away all the same: [`effect`] looks at all of them.
pub fn changed(client: Client, settings: &Map<String, Value>, line: &str) -> Option<Reason> {
    let settings = Value::Object(settings.clone());
    if is_off(client, &settings) {
        return Some(Reason::HooksDisabled);
    }
    let is_written =
        mode_of_written(client, line).is_some_and(|mode| is_whole(client, mode, &settings, line));
    (!is_written).then_some(Reason::RegistrationChanged)
}

/// Returns the first word of a line as a shell reads those that an installation writes.
fn first_word(line: &str) -> Option<String> {
    let Some(mut rest) = line.strip_prefix('\'') else {
        return line.split_once(' ').map(|(word, _)| word.to_owned());
    };
    let mut word = String::new();
    loop {
        let (part, behind) = rest.split_once('\'')?;
        word.push_str(part);
        match behind.strip_prefix("\\''") {
            Some(more) => {
                word.push('\'');
                rest = more;
            }
            None => return behind.starts_with(' ').then_some(word),
        }
    }
}

/// Says whether the client asks by this line at each moment, whatever tool it is, exactly as an installation has it.
fn is_whole(client: Client, mode: Mode, settings: &Value, line: &str) -> bool {
    // Measured: where the machine does not say so, a person's own settings or a flag switch the machine's hooks off.
    if client == Client::Codex && settings.pointer("/features/hooks") != Some(&Value::Bool(true)) {
        return false;
    }
    let wanted = hooks(client, mode, line);
    MOMENTS.iter().all(|moment| {
        let event = moment.event_name(client);
        let hook = &wanted[event][0]["hooks"][0];
        let groups = settings["hooks"][event].as_array();
        groups.into_iter().flatten().any(|group| {
            let is_for_all = group.as_object().is_some_and(|members| {
                members.iter().all(|(name, value)| match name.as_str() {
                    "hooks" => true,
                    "matcher" => value == "" || value == "*",
                    _ => false,
                })
            });
            let hooks = group["hooks"].as_array();
            is_for_all && hooks.is_some_and(|hooks| hooks.contains(hook))
        })
    })
}

/// Says whether a file of a client's settings switches its hooks off.
pub fn switches_off(client: Client, settings: &Map<String, Value>) -> bool {
    is_off(client, &Value::Object(settings.clone()))
}

/// Says whether settings switch hooks off.
fn is_off(client: Client, settings: &Value) -> bool {
    let is = |pointer: &str, what: bool| settings.pointer(pointer) == Some(&Value::Bool(what));
    match client {
        Client::ClaudeCode => is("/disableAllHooks", true),
        Client::Codex => is("/features/hooks", false) || is("/features/codex_hooks", false),
        Client::Gemini => {
            let names = |pointer: &str| {
                let list = settings.pointer(pointer).and_then(Value::as_array);
                list.is_some_and(|list| list.iter().any(|name| name == "provost"))
            };
            is("/hooksConfig/enabled", false)
                || is("/tools/enableHooks", false)
                || names("/hooksConfig/disabled")
                || names("/hooks/disabled")
        }
    }
}

/// Returns what files say together; `None` where one of them cannot be read.
fn read(files: &[SettingsFound]) -> Option<Value> {
    let mut all = Value::Object(Map::new());
    for file in files {
        match file {
            SettingsFound::Absent => {}
            SettingsFound::Unreadable => return None,
            SettingsFound::Read(members) => merge(&mut all, &Value::Object(members.clone())),
        }
    }
    Some(all)
}

/// Puts settings over others as clients do: members of objects one by one, lists behind each other, anything else in its place.
fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                merge(under.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(under), Value::Array(over)) => under.extend(over.iter().cloned()),
        (under, over) => under.clone_from(over),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PROGRAM: &str = "/usr/local/bin/provost";

    fn object(value: Value) -> SettingsFound {
        match value {
            Value::Object(members) => SettingsFound::Read(members),
            other => panic!("{other} is no object"),
        }
    }

    fn registered(client: Client, mode: Mode) -> Value {
        let line = command_line(PROGRAM, client, mode, &[]);
        let mut settings = json!({ "hooks": hooks(client, mode, &line) });
        if client == Client::Codex {
            settings["features"] = json!({ "hooks": true });
        }
        settings
    }

    fn machine(settings: Value) -> EverySettings {
        EverySettings {
            machine: vec![object(settings)],
            ..EverySettings::default()
        }
    }

    fn person(settings: Value, machine: Value) -> EverySettings {
        EverySettings {
            machine: vec![object(machine)],
            person: vec![object(settings)],
            ..EverySettings::default()
        }
    }

    fn lacks(settings: &EverySettings, client: Client) -> Vec<Reason> {
        match effect(client, settings) {
            Ok(effect) => effect.lacks.into_iter().collect(),
            Err(reason) => vec![reason],
        }
    }

    /// Proves FH-6.
    #[test]
    fn what_an_installation_writes_for_the_machine_lacks_nothing() {
        for client in Client::ALL {
            let settings = machine(registered(client, Mode::Enforce));
            let effect = effect(client, &settings).unwrap();
            assert_eq!(effect.whose, Whose::Machine);
            assert_eq!(effect.program, Some((PROGRAM.to_owned(), Mode::Enforce)));
            assert_eq!(effect.lacks, BTreeSet::new(), "{client:?}");
            let watched = machine(registered(client, Mode::Monitor));
            assert_eq!(lacks(&watched, client), [Reason::MonitorMode]);
            assert_eq!(
                lacks(&EverySettings::default(), client),
                [Reason::NotRegistered],
                "{client:?}"
            );
        }
    }

    /// Proves FH-6.
    #[test]
    fn a_registration_that_is_another_one_to_the_letter_is_changed() {
        for client in Client::ALL {
            let whole = registered(client, Mode::Enforce);
            let event = crate::question::Moment::PreTool.event_name(client);
            let mut changes: Vec<Value> = Vec::new();
            let change = |pointer: &str, value: Value| {
                let mut other = whole.clone();
                *other.pointer_mut(pointer).unwrap() = value;
                other
            };
            // It waits shorter than our own watchdog, or runs something around our line.
            changes.push(change(&format!("/hooks/{event}/0/hooks/0/timeout"), json!(1)));
            let line = command_line(PROGRAM, client, Mode::Enforce, &[]);
            let longer = json!(format!("{line}; true"));
            changes.push(change(&format!("/hooks/{event}/0/hooks/0/command"), longer));
            // At one of its moments it is missing, or asked about some tools alone.
            let mut missing = whole.clone();
            missing["hooks"].as_object_mut().unwrap().remove(event);
            changes.push(missing);
            let mut narrow = whole.clone();
            narrow["hooks"][event][0]["matcher"] = "Read".into();
            changes.push(narrow);
            let mut conditional = whole.clone();
            conditional["hooks"][event][0]["if"] = "x".into();
            changes.push(conditional);
            if client == Client::ClaudeCode {
                changes.push(change(
                    &format!("/hooks/{event}/0/hooks/0/onFailure"),
                    json!("allow"),
                ));
            }
            for changed in changes {
                let found = lacks(&machine(changed.clone()), client);
                assert_eq!(found, [Reason::RegistrationChanged], "{client:?} {changed}");
            }
            let mut wide = whole.clone();
            wide["hooks"][event][0]["matcher"] = "*".into();
            assert!(lacks(&machine(wide), client).is_empty());
        }
    }

    /// Proves FH-6.
    #[test]
    fn the_machine_comes_before_the_person_who_switches_off_what_is_their_own() {
        let whole = registered(Client::ClaudeCode, Mode::Enforce);
        let mut off = whole.clone();
        off["disableAllHooks"] = true.into();
        // Measured: what a person switches off does not reach the machine's.
        let own = person(json!({ "disableAllHooks": true }), whole.clone());
        assert!(lacks(&own, Client::ClaudeCode).is_empty());
        assert_eq!(
            lacks(&machine(off.clone()), Client::ClaudeCode),
            [Reason::HooksDisabled]
        );
        assert_eq!(
            lacks(&person(whole.clone(), json!({})), Client::ClaudeCode),
            [Reason::PersonRegistration]
        );
        assert_eq!(
            lacks(&person(off, json!({})), Client::ClaudeCode),
            [Reason::HooksDisabled]
        );
        let only = json!({ "allowManagedHooksOnly": true });
        assert_eq!(
            lacks(&person(whole.clone(), only.clone()), Client::ClaudeCode),
            [Reason::ManagedHooksOnly]
        );
        let mut managed = whole.clone();
        managed["allowManagedHooksOnly"] = true.into();
        assert!(lacks(&machine(managed), Client::ClaudeCode).is_empty());
        // A person's hooks of Codex are obeyed after that person's trust alone.
        let codex = registered(Client::Codex, Mode::Enforce);
        assert_eq!(
            lacks(&person(codex.clone(), json!({})), Client::Codex),
            [Reason::NotRegistered]
        );
        let mut without = codex.clone();
        without["features"] = json!({ "hooks": false });
        assert_eq!(lacks(&machine(without), Client::Codex), [Reason::HooksDisabled]);
        // Measured: what the machine leaves open, a person switches off.
        for open in [json!({}), json!({ "goals": true }), json!({ "hooks": "true" })] {
            let mut left = codex.clone();
            left["features"] = open;
            assert_eq!(
                lacks(&machine(left), Client::Codex),
                [Reason::RegistrationChanged]
            );
        }
        let mut switched = machine(codex);
        switched.switches = vec![object(json!({ "features": { "codex_hooks": false } }))];
        assert_eq!(lacks(&switched, Client::Codex), [Reason::HooksDisabled]);
        let mut gemini = registered(Client::Gemini, Mode::Enforce);
        gemini["hooksConfig"] = json!({ "disabled": ["provost"] });
        assert_eq!(lacks(&machine(gemini), Client::Gemini), [Reason::HooksDisabled]);
    }

    /// Proves FH-6.
    #[test]
    fn parts_of_the_machines_settings_count_in_their_order_and_one_that_cannot_be_read_proves_nothing() {
        let whole = registered(Client::ClaudeCode, Mode::Enforce);
        let parts = |parts: Vec<SettingsFound>| EverySettings {
            machine: parts,
            ..EverySettings::default()
        };
        let base = object(json!({ "disableAllHooks": true }));
        let last = object(json!({ "disableAllHooks": false }));
        let on = parts(vec![base.clone(), object(whole.clone()), last.clone()]);
        assert!(lacks(&on, Client::ClaudeCode).is_empty());
        let off = parts(vec![last, object(whole.clone()), base]);
        assert_eq!(lacks(&off, Client::ClaudeCode), [Reason::HooksDisabled]);
        let torn = parts(vec![object(whole.clone()), SettingsFound::Unreadable]);
        assert_eq!(lacks(&torn, Client::ClaudeCode), [Reason::RegistrationUnreadable]);
        let mut helped = whole;
        helped["policyHelper"] = json!({ "path": "/x" });
        assert_eq!(
            lacks(&machine(helped), Client::ClaudeCode),
            [Reason::ManagedElsewhere]
        );
    }

    #[test]
    fn a_line_names_its_program_only_where_an_installation_wrote_it() {
        for program in [PROGRAM, "/opt/it's here/provost", "/opt/''/provost"] {
            for mode in [Mode::Enforce, Mode::Monitor] {
                let line = command_line(program, Client::Codex, mode, &[]);
                assert_eq!(
                    program_of(Client::Codex, &line),
                    Some((program.to_owned(), mode)),
                    "{line}"
                );
                assert_eq!(program_of(Client::ClaudeCode, &line), None);
            }
        }
        let elsewhere = command_line(PROGRAM, Client::Codex, Mode::Enforce, &["--config", "/tmp/x"]);
        for line in ["", "provost", "'provost", "a'b c", &elsewhere] {
            assert_eq!(program_of(Client::Codex, line), None, "{line}");
        }
    }
}
