//! `docs/guide/policy-language.md` is written from the tables that the compiler reads; its examples compile and are what they say.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use provost_policy::language::{self, CONDITION_FORMS, CONDITION_LIMITS, Form};
use provost_policy::{
    Action, COUNT_LIMIT, Definition, Event, Family, Field, FieldType, Occasion, PATTERN_LIMIT_BYTES,
    PolicySet, SubjectStates, Symbols, contract, rego,
};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PAGE: &str = "docs/guide/policy-language.md";
const EXAMPLES: &str = "crates/policy/examples/language";
/// When the cases are judged. Units: milliseconds since the Unix epoch: 2026-11-20.
const NOW_MS: i64 = 1_795_132_800_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Example {
    name: String,
    family: Family,
    text: String,
    definition: Value,
    cases: Vec<Value>,
}

fn examples() -> Vec<Example> {
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join(EXAMPLES))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.to_str().unwrap().ends_with(".cases.json"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let file: Value = serde_json::from_str(&read(path)).unwrap();
            let cases: Value = serde_json::from_str(&read(&path.with_extension("cases.json"))).unwrap();
            let family = Family::ALL
                .into_iter()
                .find(|family| file["family"] == family.word());
            Example {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                family: family.unwrap(),
                text: serde_json::to_string_pretty(&file["definition"]).unwrap(),
                definition: file["definition"].clone(),
                cases: cases["cases"].as_array().unwrap().clone(),
            }
        })
        .collect()
}

fn event(sent: &Value, ago_ms: i64, symbols: &mut Symbols) -> Event {
    let occasion = Occasion::ALL
        .into_iter()
        .find(|occasion| sent["occasion"] == occasion.word());
    let missing: Vec<&str> = sent["missing"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap())
        .collect();
    let attributes = sent["attributes"].as_object().unwrap();
    Event::read(symbols, NOW_MS - ago_ms, occasion.unwrap(), attributes, &missing).unwrap()
}

#[test]
fn every_example_compiles_and_is_what_its_cases_say() {
    let examples = examples();
    assert!(examples.len() >= 30, "{}", examples.len());
    for example in &examples {
        let definition = Definition::read(example.family, &example.definition);
        let definition = definition.unwrap_or_else(|faults| panic!("{}: {faults}", example.name));
        assert_eq!(definition.advice(), [], "{}", example.name);
        let set = PolicySet::new([Arc::new(definition)]).unwrap();
        assert!(example.cases.len() >= 2, "{}", example.name);
        for case in &example.cases {
            let mut symbols = Symbols::new();
            let mut earlier: Vec<Event> = Vec::new();
            for before in case["earlier"].as_array().into_iter().flatten() {
                let ago = language::within_ms(before["ago"].as_str().unwrap()).unwrap();
                earlier.push(event(&before["event"], ago, &mut symbols));
            }
            let judged = event(&case["event"], 0, &mut symbols);
            let mut past = SubjectStates::new();
            for before in &earlier {
                past.observe(&set, before, &symbols);
            }
            let outcome = set.judge(&judged, &symbols, &past);
            let expect = &case["expect"];
            let place = format!("{}: {}", example.name, case["name"]);
            if let Some(action) = expect["action"].as_str() {
                assert_eq!(outcome.action.word(), action, "{place}");
            }
            if let Some(matched) = expect["matched"].as_bool() {
                assert_eq!(!outcome.findings.is_empty(), matched, "{place}");
            }
            if let Some(unknown) = expect["unknown"].as_bool() {
                assert_eq!(outcome.unknown, unknown, "{place}");
            }
        }
    }
}

/// Every action, operator and form of a condition, and every strategy of a redaction that an example can show, stands in one.
#[test]
fn the_examples_show_all_of_the_language() {
    let all: String = examples()
        .iter()
        .map(|example| example.definition.to_string())
        .collect();
    for action in Action::ALL {
        assert!(
            all.contains(&format!("\"{}\"", action.word())),
            "{}",
            action.word()
        );
    }
    let kinds = [
        FieldType::Text,
        FieldType::Set,
        FieldType::Number,
        FieldType::Boolean,
        FieldType::Content,
    ];
    for operator in kinds.iter().flat_map(|kind| kind.operators()) {
        assert!(all.contains(&format!("\"op\":\"{operator}\"")), "{operator}");
    }
    for form in CONDITION_FORMS {
        assert!(all.contains(&format!("\"{form}\"")), "{form}");
    }
    for member in [
        "customFields",
        "exceptions",
        "except",
        "logic",
        "dataTarget",
        "enforcement",
        "approval",
    ] {
        assert!(all.contains(&format!("\"{member}\"")), "{member}");
    }
}

fn code(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words
        .into_iter()
        .map(|word| format!("`{}`", word.as_ref()))
        .collect();
    words.join(", ")
}

fn title(family: Family) -> &'static str {
    match family {
        Family::Content => "Content: prompts, tool calls, results, responses",
        Family::Access => "Access: which AI product, route or account is used at all",
        Family::Resource => "Resource: requests to databases and HTTP APIs",
        Family::SkillAcl => "Skill ACL: who may use a skill",
    }
}

fn kind(kind: FieldType) -> &'static str {
    match kind {
        FieldType::Text => "text",
        FieldType::Set => "set of texts",
        FieldType::Number => "number",
        FieldType::Boolean => "true or false",
        FieldType::Content => "content: a text or a document",
        FieldType::Object => "object",
    }
}

fn families(page: &mut String) {
    for family in Family::ALL {
        let Form {
            members,
            actions,
            acknowledged,
            scope,
            occasions,
        } = language::form(family);
        writeln!(page, "\n### {}\n", title(family)).unwrap();
        writeln!(page, "| | |\n| --- | --- |").unwrap();
        writeln!(page, "| family | `{}` |", family.word()).unwrap();
        writeln!(page, "| members | {} |", code(members)).unwrap();
        let judged = match occasions {
            Some((member, words)) => format!("`{member}`: {}", code(words)),
            None => format!(
                "always at `{}`",
                Occasion::ALL
                    .into_iter()
                    .find(|o| o.family() == family)
                    .unwrap()
                    .word()
            ),
        };
        writeln!(page, "| judged | {judged} |").unwrap();
        let verb = if family == Family::SkillAcl {
            "effect"
        } else {
            "action"
        };
        writeln!(page, "| `{verb}` | {} |", code(actions)).unwrap();
        if !acknowledged.is_empty() {
            writeln!(
                page,
                "| `acknowledgeBroadScope` needed with an empty scope and | {} |",
                code(acknowledged)
            )
            .unwrap();
        }
        let everyone = if family == Family::SkillAcl {
            "either `everyone`, or "
        } else {
            ""
        };
        writeln!(page, "| `{}` names | {everyone}{} |", scope.0, code(scope.1)).unwrap();
        let package = contract::rego_package(family)
            .map_or_else(|| "none".to_owned(), |name| format!("package `{name}`"));
        writeln!(page, "| Rego | {package} |").unwrap();
    }
}

fn attributes(page: &mut String) {
    for family in [Family::Content, Family::Access, Family::Resource] {
        writeln!(page, "\n### Attributes of {} policies\n", family.word()).unwrap();
        writeln!(
            page,
            "| attribute | type | at | sent by |\n| --- | --- | --- | --- |"
        )
        .unwrap();
        for field in Field::all().filter(|field| field.is_in(family)) {
            let at = code(field.occasions(family).map(Occasion::word));
            let by: Vec<&str> = field.senders(family).iter().map(|sender| sender.word()).collect();
            let mut by = by.join(", ");
            if field.member_of_input().is_some() {
                by.push_str("; follows from `tool.input`");
            }
            if field == Field::GROUPS {
                by.push_str("; of a known user the directory says it");
            }
            let mut words = kind(field.kind()).to_owned();
            if !field.words().is_empty() {
                write!(words, ": {}", code(field.words())).unwrap();
            }
            if field.is_content() && field.kind() != FieldType::Content {
                words.push_str(", free");
            }
            writeln!(page, "| `{}` | {words} | {at} | {by} |", field.name()).unwrap();
        }
    }
}

/// What an operator says of a value that is there.
fn says(operator: &str) -> &'static str {
    match operator {
        "eq" => "is this; of a set: has exactly these members",
        "neq" => "is there and is not this",
        "in" => "is one of these",
        "not_in" => "is there and is none of these",
        "contains" => "has this part; of a set: has this member",
        "contains_any" => "has one of these members",
        "contains_all" => "has all of these members",
        "starts_with" => "begins with this",
        "ends_with" => "ends with this",
        "matches" => "has a part that this pattern matches (RE2; `^` and `$` for the whole)",
        "exists" => "is there; takes no value",
        "gt" => "is greater",
        "gte" => "is greater or equal",
        "lt" => "is less",
        "lte" => "is less or equal",
        other => panic!("{other} is not explained"),
    }
}

fn operators(page: &mut String) {
    let kinds = [
        FieldType::Text,
        FieldType::Set,
        FieldType::Number,
        FieldType::Boolean,
        FieldType::Content,
        FieldType::Object,
    ];
    let mut all: Vec<&str> = Vec::new();
    for operator in kinds.iter().flat_map(|kind| kind.operators()) {
        if !all.contains(operator) {
            all.push(operator);
        }
    }
    writeln!(
        page,
        "| operator | says that the attribute | types |\n| --- | --- | --- |"
    )
    .unwrap();
    for operator in all {
        let types = kinds.iter().filter(|kind| kind.operators().contains(&operator));
        let types: Vec<&str> = types.map(|one| kind(*one).split(':').next().unwrap()).collect();
        writeln!(
            page,
            "| `{operator}` | {} | {} |",
            says(operator),
            types.join(", ")
        )
        .unwrap();
    }
}

/// What each form of a condition says.
fn form_says(form: &str) -> &'static str {
    match form {
        "all" => "each of these holds",
        "any" => "one of these holds",
        "not" => "this does not hold; unknown stays unknown",
        "hasPriorEvent" => "an earlier event of the last 30 days matched",
        "hasEventSequence" => {
            "`within` this time earlier events matched each of `events` (2 to 16), one after the other where `ordered`"
        }
        "eventCount" => "so many earlier events `within` this time matched `where` (`op`, `value`)",
        "priorDistinctValues" => {
            "`field` had so many different values in earlier events `within` this time (`where` they matched, if it is there)"
        }
        other => panic!("{other} is not explained"),
    }
}

/// What each action does, and what it obliges whoever enforces to do.
fn action_says(action: Action) -> [&'static str; 2] {
    match action {
        Action::Block => [
            "It does not pass.",
            "to stop it, and to tell its author the `message`",
        ],
        Action::RequireApproval => [
            "It waits for somebody's approval.",
            "to ask as `approval` says, and to stop it where nobody can be asked",
        ],
        Action::Filter => [
            "It passes with some items of a list left out.",
            "the obligation `filter`, as authored",
        ],
        Action::Redact => [
            "It passes with parts of it replaced.",
            "the obligation `redaction`, as authored; of resource policies with `dataTarget`",
        ],
        Action::Nudge => ["It passes.", "to tell its author the `message`"],
        Action::FlagForReview => ["It passes, and somebody looks at it later.", "nothing"],
        Action::Allow => [
            "It passes. An allow policy lets nothing pass that another one stops.",
            "nothing",
        ],
    }
}

fn page() -> String {
    let mut page = String::from(HEAD);
    families(&mut page);
    page.push_str(ATTRIBUTES);
    attributes(&mut page);
    page.push_str(CONDITIONS);
    operators(&mut page);
    let (depth, nodes, children) = CONDITION_LIMITS;
    writeln!(
        page,
        "\nA pattern has at most {PATTERN_LIMIT_BYTES} bytes. A condition is at most {depth} levels deep and has at most {nodes} nodes; `all` and `any` \
         have 1 to {children} members.\n"
    )
    .unwrap();
    page.push_str(ABSENT);
    writeln!(page, "| form | says | families |\n| --- | --- | --- |").unwrap();
    for form in CONDITION_FORMS {
        let families = match form {
            "all" | "any" | "not" => "content, access, resource",
            _ => "content, resource",
        };
        writeln!(page, "| `{form}` | {} | {families} |", form_says(form)).unwrap();
    }
    writeln!(
        page,
        "\n`within` is a whole number and `s`, `m`, `h` or `d`, at most 30 days, its far end included. `value` is 0 to {COUNT_LIMIT}.\n"
    )
    .unwrap();
    page.push_str(PAST);
    writeln!(
        page,
        "| action | what happens | whoever enforces has |\n| --- | --- | --- |"
    )
    .unwrap();
    for action in Action::ALL.into_iter().rev() {
        let [happens, obliges] = action_says(action);
        writeln!(page, "| `{}` | {happens} | {obliges} |", action.word()).unwrap();
    }
    page.push_str(REDACTION);
    writeln!(page, "| `strategy` | members | needs |\n| --- | --- | --- |").unwrap();
    for (strategy, allowed, needed) in language::redactions() {
        writeln!(page, "| `{strategy}` | {} | {} |", code(allowed), code(needed)).unwrap();
    }
    page.push_str(EXCEPTIONS);
    let examples = examples();
    let of = |name: &str| examples.iter().find(|example| example.name == name).unwrap();
    writeln!(
        page,
        "```rego\n{}```\n",
        of("31-a-module").definition["logic"]["module"].as_str().unwrap()
    )
    .unwrap();
    writeln!(
        page,
        "The language is that of OPA {}; the members of `logic` are `kind` `rego`, `languageVersion` `{}`, `entrypoint`, `module` and `moduleSha256`. A \
         module has at most {} characters and {} instructions of one evaluation.\n",
        rego::OPA_VERSION,
        contract::REGO_LANGUAGE_VERSION,
        rego::MODULE_LIMIT_CHARS,
        rego::INSTRUCTION_LIMIT
    )
    .unwrap();
    let built_ins = rego::BUILT_INS.iter().map(|row| match row.name {
        "__builtin_sets.intersection" => "&",
        "__builtin_sets.union" => "|",
        name => name,
    });
    writeln!(
        page,
        "It can call {}; [what each costs and refuses](policies.md#rego).",
        code(built_ins)
    )
    .unwrap();
    page.push_str(EXAMPLES_HEAD);
    for example in &examples {
        let (number, words) = example.name.split_once('-').unwrap();
        writeln!(page, "\n### {number}. {}\n", capital(&words.replace('-', " "))).unwrap();
        writeln!(
            page,
            "Family `{}`.\n\n```json\n{}\n```\n",
            example.family.word(),
            example.text
        )
        .unwrap();
        writeln!(page, "| case | what comes out |\n| --- | --- |").unwrap();
        for case in &example.cases {
            let expect = &case["expect"];
            let mut out = match (expect["action"].as_str(), expect["matched"].as_bool()) {
                (_, Some(false)) => "not matched".to_owned(),
                (Some(action), _) => format!("`{action}`"),
                (None, _) => String::new(),
            };
            if expect["unknown"] == true {
                out.push_str(", unknown");
            }
            writeln!(page, "| {} | {out} |", case["name"].as_str().unwrap()).unwrap();
        }
    }
    page
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `UPDATE_GOLDENS=1` writes the page.
#[test]
fn the_reference_is_what_the_compiler_reads() {
    let (path, page) = (root().join(PAGE), page());
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let line = committed.lines().zip(page.lines()).position(|(a, b)| a != b);
    assert!(
        committed == page,
        "{PAGE} differs, first at line {:?}; UPDATE_GOLDENS=1 rewrites it",
        line.map(|line| line + 1)
    );
}

const HEAD: &str = r"# The policy language

Everything that a definition can say. For whoever writes policies; [Policies](policies.md) is how they are planned, written and owned,
[Decisions](decisions.md) how they are asked. This page is made from the compiler's own tables, and every example on it is compiled and
tried by the tests.

**Before you start**: a server, and a token with the scope `policies:read` in `PROVOST_TOKEN`. To try an example, save it with its cases and ask
the server; nothing is recorded:

<!-- not run: its files lie in the repository; the tests of the language run them -->
```sh
provost policies test crates/policy/examples/language/01-a-tool-is-blocked.json
provost policies lint crates/policy/examples/language/
provost policies schema --family content > content.schema.json
```

An event is judged by every enabled policy of its family. The strictest action of those that match wins:
`block`, `require_approval`, `filter`, `redact`, `nudge`, `flag_for_review`, `allow`. Where nothing matches it is `allow`. A policy of which
nobody can say whether it matches counts as matched.

## Families
";

const ATTRIBUTES: &str = r"
## Attributes

A condition reads attributes by their flat names. An attribute that the family does not have is refused. What stands under *sent by* is who
sends it as things are: hooks of agents that ask for a decision, telemetry of Claude Code, of Codex and of OpenTelemetry instrumentations
(recorded, for backtests and conditions on the past), gateways, and services of your own. Whoever asks for decisions may send any attribute of the
family at any of its occasions. *Free* is text that a person, a model, a tool or a request brought, in which a secret can stand: a backtest over it
needs the scope `policies:inspect`.
";

const CONDITIONS: &str = r#"
## Conditions

`{"field": NAME, "op": OPERATOR, "value": VALUE}`, or one of the forms below.

"#;

const ABSENT: &str = r#"**An attribute that is absent makes every operator false**, `neq` and `not_in` too: `mcp.server_id neq intranet` is about calls to other
servers, and a shell command, which has no server, does not match it. Who means "not this one, or none" writes `{"not": {"field": "mcp.server_id",
"op": "eq", "value": "intranet"}}`. An attribute that is *missing* (it exists, and nobody can say its value) makes every operator unknown, `exists` too.

| | present | absent | missing |
| --- | --- | --- | --- |
| `eq`, `in`, `contains`, … | by the value | false | unknown |
| `neq`, `not_in` | by the value | false | unknown |
| `exists` | true | false | unknown |
| `not` of any of these | the opposite | true | unknown |

Names of tools, servers, products, devices, models, providers, domains, methods and commands are compared in any spelling (case, normal form, blanks at the ends,
invisible characters); people, groups, service accounts, skills and resources by every word that they have. `all` is false as soon as one member is false,
`any` true as soon as one is true, whatever is unknown beside it.

"#;

const PAST: &str = r#"Conditions on the past see earlier events of the same subject (the user, else the service account, else the device) and family, never the
event itself. Without a subject there is no past.

## Scopes

`appliesTo` holds where one of `users`, `groups` and `serviceAccounts` is named (or none of these lists is there), and each of `agents`, `products`,
`devices` and `resources` that is there names the event's. Names must exist; `{"name": …, "directoryId": …}` tells equal ones apart. A skill ACL has
`subjects` instead, and a content policy of the form in example 30 is an access list of a server's tools: whom no allow list that names the tool covers is blocked.

## Actions and obligations

"#;

const REDACTION: &str = r#"
`approval` is `{"autoApproveOnRequest": true}` in content policies, `{"mode": "admin_approval"}` or `"self_serve"` in the others. A resource policy with
`"enforcement": "monitor"` is reported and changes nothing.

A `filter` is `{"collectionPath": "$.rows", "removeWhere": {"path", "op", "value"}, "onUnavailable": "allow"}` or `"block"`. A `redaction` has a strategy, and either
`paths` (`$.rows[0].name`) or `applyTo` `matches` with a `pattern`:

"#;

const EXCEPTIONS: &str = r#"
## Exceptions

`except` is one condition under which the policy does not match; `exceptions` is a list of `{"id", "reason", "expiresAt", "conditions"}`, where `expiresAt` may be
left out. An exception ends at its time, and one that is unknown does not hold.

## Rego

Instead of `conditions`, `logic` holds a module. Its package is that of the family, and the rule `match` decides: an object with `matched` and, if wanted, a
`reasonCode`. `input` is the event with its attributes nested (`input.tool.id`). Scope, action and exceptions stay in the definition.

"#;

const EXAMPLES_HEAD: &str = r"
## Examples

Each is a file of `crates/policy/examples/language` with its cases beside it.
";
