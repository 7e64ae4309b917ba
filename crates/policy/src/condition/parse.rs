//! From JSON to a condition, with every rule of the contract on the way.

use super::custom::CustomField;
use super::{
    CHILD_LIMIT, COUNT_LIMIT, Compare, Condition, DEPTH_LIMIT, HistoryCondition, NODE_LIMIT, Operand, Order,
    WITHIN_LIMIT_MS, predicate,
};
use crate::catalogue::{Field, FieldType};
use crate::family::Family;
use crate::read::Object;
use crate::violation::Violations;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The members that make a node something else than a predicate.
pub(crate) const FORMS: [&str; 7] = [
    "all",
    "any",
    "not",
    "hasPriorEvent",
    "hasEventSequence",
    "eventCount",
    "priorDistinctValues",
];

/// How a count is compared.
pub(crate) const COMPARISONS: [&str; 5] = ["eq", "gt", "gte", "lt", "lte"];

/// Reads one condition; the limits hold for each condition by itself.
pub(crate) struct Parser<'a> {
    family: Family,
    custom: &'a BTreeMap<String, Arc<CustomField>>,
    faults: &'a mut Violations,
    nodes: usize,
}

impl<'a> Parser<'a> {
    pub fn new(
        family: Family,
        custom: &'a BTreeMap<String, Arc<CustomField>>,
        faults: &'a mut Violations,
    ) -> Self {
        Self {
            family,
            custom,
            faults,
            nodes: 0,
        }
    }

    /// Returns the condition that stands at `path`.
    pub fn condition(&mut self, value: &Value, path: &str) -> Option<Condition> {
        self.node(value, path, 1)
    }

    // INVARIANT PC-1: depth and nodes are counted before a node is read, so that a refused document costs no more
    // than an accepted one.
    fn node(&mut self, value: &Value, path: &str, depth: usize) -> Option<Condition> {
        if depth > DEPTH_LIMIT {
            self.faults.add(path, "must not be deeper than 16 levels");
            return None;
        }
        self.nodes += 1;
        if self.nodes > NODE_LIMIT {
            if self.nodes == NODE_LIMIT + 1 {
                self.faults.add(path, "must not have more than 512 nodes");
            }
            return None;
        }
        let node = Object::of(value, path, self.faults)?;
        let forms: Vec<&str> = FORMS.into_iter().filter(|form| node.has(form)).collect();
        match forms.as_slice() {
            [] => self.predicate(node),
            [form] => {
                node.only(&[*form], self.faults);
                self.form(node, form, depth)
            }
            _ => {
                self.faults.add(
                    path,
                    "must have exactly one of these members: field, all, any, not, or a history condition",
                );
                None
            }
        }
    }

    fn form(&mut self, node: Object<'_>, form: &str, depth: usize) -> Option<Condition> {
        let path = node.at(form);
        let value = node.get(form)?;
        let is_past = !matches!(form, "all" | "any" | "not");
        if is_past && !matches!(self.family, Family::Content | Family::Resource) {
            self.faults.add(path, "is not part of this family's conditions");
            return None;
        }
        Some(match form {
            "all" => Condition::All(self.nodes(value, &path, 1..=CHILD_LIMIT, depth)?),
            "any" => Condition::Any(self.nodes(value, &path, 1..=CHILD_LIMIT, depth)?),
            "not" => Condition::Not(Box::new(self.node(value, &path, depth + 1)?)),
            "hasPriorEvent" => Condition::Past(HistoryCondition::Prior(Box::new(self.node(
                value,
                &path,
                depth + 1,
            )?))),
            _ => {
                let inner = Object::of(value, &path, self.faults)?;
                Condition::Past(match form {
                    "hasEventSequence" => self.sequence(inner, depth)?,
                    "eventCount" => self.count(inner, depth)?,
                    _ => self.distinct(inner, depth)?,
                })
            }
        })
    }

    fn nodes(
        &mut self,
        value: &Value,
        path: &str,
        length: std::ops::RangeInclusive<usize>,
        depth: usize,
    ) -> Option<Vec<Condition>> {
        let items = crate::read::list(value, path, &length, self.faults)?;
        let read = items.iter().enumerate();
        let nodes: Vec<_> = read
            .map(|(at, item)| self.node(item, &format!("{path}/{at}"), depth + 1))
            .collect();
        nodes.into_iter().collect()
    }

    fn predicate(&mut self, node: Object<'_>) -> Option<Condition> {
        if !node.has("field") {
            self.faults.add(
                node.path,
                "must have exactly one of these members: field, all, any, not, or a history condition",
            );
            return None;
        }
        node.only(&["field", "op", "value"], self.faults);
        let operand = self.operand(node)?;
        predicate::parse(node, operand, self.faults).map(Condition::Is)
    }

    fn operand(&mut self, node: Object<'_>) -> Option<Operand> {
        let name = node.required_text("field", 1..=1024, self.faults)?;
        if let Some(custom) = self.custom.get(name) {
            return Some(Operand::Custom(Arc::clone(custom)));
        }
        let field = Field::named(name).filter(|field| field.is_in(self.family));
        if field.is_none() {
            self.faults.add(node.at("field"), "is not a field of this family");
        }
        field.map(Operand::Field)
    }

    fn sequence(&mut self, node: Object<'_>, depth: usize) -> Option<HistoryCondition> {
        node.only(&["within", "ordered", "events"], self.faults);
        let within_ms = self.within(node);
        node.required("ordered", self.faults);
        let ordered = node.boolean("ordered", self.faults);
        let events = node.required("events", self.faults);
        let events = events.and_then(|value| self.nodes(value, &node.at("events"), 2..=16, depth));
        Some(HistoryCondition::Sequence {
            within_ms: within_ms?,
            ordered: ordered?,
            events: events?,
        })
    }

    fn count(&mut self, node: Object<'_>, depth: usize) -> Option<HistoryCondition> {
        node.only(&["within", "where", "op", "value"], self.faults);
        let within_ms = self.within(node);
        let compare = self.compare(node);
        node.required("where", self.faults);
        let matching = node
            .get("where")
            .and_then(|value| self.node(value, &node.at("where"), depth + 1));
        Some(HistoryCondition::Count {
            within_ms: within_ms?,
            matching: Box::new(matching?),
            compare: compare?,
        })
    }

    fn distinct(&mut self, node: Object<'_>, depth: usize) -> Option<HistoryCondition> {
        node.only(&["within", "field", "where", "op", "value"], self.faults);
        let within_ms = self.within(node);
        let compare = self.compare(node);
        let operand = self.operand(node);
        let matching = node
            .get("where")
            .map(|value| self.node(value, &node.at("where"), depth + 1));
        let operand = operand?;
        if matches!(operand.kind(), FieldType::Content | FieldType::Object) {
            self.faults.add(
                node.at("field"),
                "must be a string, a string set, a number or a boolean",
            );
        }
        Some(HistoryCondition::Distinct {
            within_ms: within_ms?,
            operand,
            matching: match matching {
                Some(matching) => Some(Box::new(matching?)),
                None => None,
            },
            compare: compare?,
        })
    }

    fn within(&mut self, node: Object<'_>) -> Option<i64> {
        let text = node.required_text("within", 1..=32, self.faults)?;
        let within = parse_within(text);
        if within.is_none() {
            self.faults.add(
                node.at("within"),
                "must be a time like 90s, 15m, 2h or 7d, at most 30d",
            );
        }
        within
    }

    fn compare(&mut self, node: Object<'_>) -> Option<Compare> {
        node.required("op", self.faults);
        let op = node.word("op", &COMPARISONS, self.faults);
        node.required("value", self.faults);
        let value = node.whole("value", 0..=COUNT_LIMIT, self.faults);
        Some(Compare {
            op: Order::named(op?)?,
            value: value?,
        })
    }
}

/// Returns the milliseconds of a time like `15m`, or `None` when it is no such time or longer than 30 days.
pub(crate) fn parse_within(text: &str) -> Option<i64> {
    let digits = text.get(..text.len().checked_sub(1)?)?;
    let unit_ms = match text.as_bytes().last()? {
        b's' => 1000,
        b'm' => 60 * 1000,
        b'h' => 60 * 60 * 1000,
        b'd' => 24 * 60 * 60 * 1000,
        _ => return None,
    };
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let within = digits.parse::<i64>().ok()?.checked_mul(unit_ms)?;
    (within <= WITHIN_LIMIT_MS).then_some(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults_of(family: Family, condition: &Value) -> Violations {
        let mut faults = Violations::default();
        let parsed = Parser::new(family, &BTreeMap::new(), &mut faults).condition(condition, "/conditions");
        assert_eq!(parsed.is_some(), faults.is_empty(), "{condition} {faults}");
        faults
    }

    fn is_fine(condition: &Value) -> bool {
        faults_of(Family::Content, condition).is_empty()
    }

    fn leaf() -> Value {
        json!({"field": "tool.id", "op": "exists"})
    }

    fn deep(levels: usize) -> Value {
        (1..levels).fold(leaf(), |inner, _| json!({ "not": inner }))
    }

    /// Proves PC-1.
    #[test]
    fn depth_ends_at_16() {
        assert!(is_fine(&deep(16)));
        let faults = faults_of(Family::Content, &deep(17));
        assert_eq!(faults.kept()[0].path, format!("/conditions{}", "/not".repeat(16)));
    }

    /// Proves PC-1.
    #[test]
    fn children_end_at_64_and_nodes_at_512() {
        let of = |n: usize, each: Value| json!({"any": vec![each; n]});
        assert!(is_fine(&of(64, leaf())));
        assert!(!is_fine(&of(65, leaf())));
        assert!(!is_fine(&of(0, leaf())));
        // 1 + 7 × (1 + 63) = 449; with 62 more in an eighth child 512.
        let mut children = vec![of(63, leaf()); 7];
        children.push(of(62, leaf()));
        assert!(is_fine(&json!({"all": children})));
        children.push(leaf());
        let faults = faults_of(Family::Content, &json!({"all": children}));
        assert_eq!(
            (faults.found(), faults.kept()[0].path.as_str()),
            (1, "/conditions/all/8")
        );
    }

    #[test]
    fn times_end_at_30_days() {
        for (text, ms) in [("1s", 1000), ("30d", WITHIN_LIMIT_MS), ("720h", WITHIN_LIMIT_MS)] {
            assert_eq!(parse_within(text), Some(ms));
        }
        for bad in [
            "",
            "s",
            "0s",
            "01s",
            "31d",
            "721h",
            "2592001s",
            "1",
            "1w",
            "-1s",
            "1.5h",
            "99999999999999999999s",
            "é",
        ] {
            assert_eq!(parse_within(bad), None, "{bad}");
        }
    }

    #[test]
    fn counts_are_0_to_1024_and_sequences_2_to_16() {
        let count = |value: Value| json!({"eventCount": {"within": "1h", "where": leaf(), "op": "gte", "value": value}});
        assert!(is_fine(&count(json!(0))) && is_fine(&count(json!(1024))));
        assert!(!is_fine(&count(json!(1025))) && !is_fine(&count(json!(-1))) && !is_fine(&count(json!(1.5))));
        let sequence = |n: usize| json!({"hasEventSequence": {"within": "1h", "ordered": true, "events": vec![leaf(); n]}});
        assert!(is_fine(&sequence(2)) && is_fine(&sequence(16)));
        assert!(!is_fine(&sequence(1)) && !is_fine(&sequence(17)));
    }

    #[test]
    fn access_has_no_past() {
        let prior = |field: &str| json!({"hasPriorEvent": {"field": field, "op": "exists"}});
        assert!(faults_of(Family::Resource, &prior("resource.id")).is_empty());
        assert_eq!(
            faults_of(Family::Access, &prior("device.id")).kept()[0].path,
            "/conditions/hasPriorEvent"
        );
    }

    #[test]
    fn every_operator_fits_its_types_and_no_other() {
        let every = [
            "eq",
            "neq",
            "in",
            "not_in",
            "contains",
            "contains_any",
            "contains_all",
            "starts_with",
            "ends_with",
            "matches",
            "exists",
            "gt",
            "gte",
            "lt",
            "lte",
            "like",
        ];
        let custom = BTreeMap::new();
        for (field, kind) in [
            ("tool.id", FieldType::Text),
            ("tool.input", FieldType::Content),
            ("llm.input_tokens", FieldType::Number),
            ("identity.group_ids", FieldType::Set),
            (
                "classification.has_unresolved_sensitive_content",
                FieldType::Boolean,
            ),
        ] {
            for op in every {
                let of_type = match (kind, op) {
                    (_, "exists") => Value::Null,
                    (FieldType::Number, "in" | "not_in") => json!([1, 2.5]),
                    (FieldType::Number, _) => json!(1),
                    (FieldType::Boolean, _) => json!(true),
                    (FieldType::Set, "contains") | (FieldType::Text | FieldType::Content, _)
                        if !matches!(op, "in" | "not_in") =>
                    {
                        json!("a")
                    }
                    _ => json!(["a"]),
                };
                let mut faults = Violations::default();
                let node = json!({"field": field, "op": op, "value": of_type});
                Parser::new(Family::Content, &custom, &mut faults).condition(&node, "");
                assert_eq!(
                    faults.is_empty(),
                    kind.operators().contains(&op),
                    "{node} {faults}"
                );
                let mut faults = Violations::default();
                let node = json!({"field": field, "op": op, "value": {"a": 1}});
                Parser::new(Family::Content, &custom, &mut faults).condition(&node, "");
                assert!(!faults.is_empty(), "{node}");
            }
        }
    }

    #[test]
    fn closed_fields_have_closed_values_for_equality_only() {
        let node = |op: &str, value: Value| json!({"field": "resource.protocol", "op": op, "value": value});
        let faults = |node| faults_of(Family::Resource, &node).found();
        assert_eq!(faults(node("eq", json!("redis"))), 0);
        assert_eq!(faults(node("neq", json!("ftp"))), 1);
        assert_eq!(faults(node("in", json!(["redis", "ftp"]))), 1);
        assert_eq!(faults(node("contains", json!("s"))), 0);
    }

    /// Proves PD-1.
    #[test]
    fn every_fault_is_named_at_its_place() {
        let node = json!({"all": [
            {"field": "tool.idd", "op": "eq", "value": "x"},
            {"field": "tool.id", "op": "matches", "value": "("},
            {"any": []},
            {"field": "tool.id", "op": "in", "value": []},
            {"not": {}, "all": []},
            {"field": "tool.id", "op": "exists", "value": 1, "extra": 2},
        ]});
        let faults = faults_of(Family::Content, &node);
        let places: Vec<_> = faults.kept().iter().map(|v| v.path.as_str()).collect();
        assert_eq!(
            places,
            [
                "/conditions/all/0/field",
                "/conditions/all/1/value",
                "/conditions/all/2/any",
                "/conditions/all/3/value",
                "/conditions/all/4",
                "/conditions/all/5/extra",
                "/conditions/all/5/value",
            ]
        );
    }
}
