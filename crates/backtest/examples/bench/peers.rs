//! What others need for the same events and policies: the Rego machine, and Cedar.
//!
//! What they judge is made ready beforehand: only judging is timed. Everybody has to find the same matches.

use super::measure::{Cost, cost};
use provost_policy::{Event, Symbols};
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::RegoVM;
use regorus::{Engine, Value};

const ENTRY: &str = "data.forge.content.matched";

/// Judges the events with a module on the Rego machine; returns how many policies matched, and what it took.
pub fn rego(module: &str, events: &[Event], symbols: &Symbols, threads: usize) -> (u64, Cost) {
    let inputs: Vec<Value> = events
        .iter()
        .map(|event| Value::from(event.nested(symbols)))
        .collect();
    let mut engine = Engine::new();
    engine
        .add_policy("module.rego".into(), module.into())
        .expect("a module");
    let policy = engine.compile_with_entrypoint(&ENTRY.into()).expect("an entry");
    let program = Compiler::compile_from_policy(&policy, &[ENTRY]).expect("a program");
    shared(&inputs, threads, |inputs| {
        let mut vm = RegoVM::new_with_policy(policy.clone());
        vm.load_program(program.clone());
        let mut matched = 0;
        for input in inputs {
            vm.set_input(input.clone());
            let value = vm.execute_entry_point_by_name(ENTRY).expect("an answer");
            matched += value.as_set().expect("a set").len() as u64;
        }
        matched
    })
}

/// Judges the events with Cedar; returns how many policies matched, and what it took.
#[cfg(feature = "cedar")]
pub fn cedar(policies: &str, events: &[Event], symbols: &Symbols, threads: usize) -> (u64, Cost) {
    use cedar_policy::{Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet, Request};
    use serde_json::{Value as Json, json};
    use std::collections::{BTreeMap, HashSet};

    let uid = |kind: &str, id: &str| -> EntityUid { format!("{kind}::{id:?}").parse().expect("an entity") };
    let policies: PolicySet = policies.parse().expect("policies of Cedar");
    let mut users: BTreeMap<String, HashSet<EntityUid>> = BTreeMap::new();
    let request = |event: &Event, users: &mut BTreeMap<String, HashSet<EntityUid>>| {
        let flat = event.nested(symbols);
        let text = |path: &str| flat.pointer(path).cloned().unwrap_or(Json::Null);
        let user = text("/identity/user_id").as_str().unwrap_or_default().to_owned();
        let groups = text("/identity/group_ids");
        let groups = groups.as_array().into_iter().flatten().filter_map(Json::as_str);
        users
            .entry(user.clone())
            .or_insert_with(|| groups.map(|group| uid("Group", group)).collect());
        let context = json!({"tool": text("/tool/id"), "user": user, "server": text("/mcp/server_id"),
            "model": text("/llm/model"), "tokens": text("/llm/input_tokens"),
            "labels": text("/classification/sensitivity_labels")});
        let context = Context::from_json_value(context, None).expect("a context");
        Request::new(
            uid("User", &user),
            uid("Action", "call"),
            uid("Tool", "any"),
            context,
            None,
        )
        .expect("a request")
    };
    let requests: Vec<Request> = events.iter().map(|event| request(event, &mut users)).collect();
    let entities = users
        .into_iter()
        .map(|(user, groups)| Entity::new_no_attrs(uid("User", &user), groups));
    let entities = Entities::from_entities(entities, None).expect("entities");
    shared(&requests, threads, |requests| {
        let authorizer = Authorizer::new();
        let answers = requests
            .iter()
            .map(|request| authorizer.is_authorized(request, &policies, &entities));
        answers
            .filter(|answer| answer.decision() == Decision::Deny)
            .map(|answer| answer.diagnostics().reason().count() as u64)
            .sum()
    })
}

/// Does the work in as many parts as there are threads, and adds what they found.
fn shared<T: Sync>(all: &[T], threads: usize, work: impl Fn(&[T]) -> u64 + Sync) -> (u64, Cost) {
    let work = &work;
    cost(|| {
        std::thread::scope(|scope| {
            let parts = all.chunks(all.len().div_ceil(threads));
            let handles: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().expect("a thread"))
                .sum()
        })
    })
}
