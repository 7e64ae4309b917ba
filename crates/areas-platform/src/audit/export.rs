//! `GET …/audit/export`

use super::model::ChainRange;
use super::store;
use crate::audit::fences;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How many entries a call without `limit` exports.
const DEFAULT_LIMIT: i64 = 1000;

pub(super) struct Export;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExportQuery {
    /// Entries after this place; 0, the default, is the beginning.
    after: Option<ChainRange<0>>,
    /// How many entries at most; 1000 when absent.
    limit: Option<IntegerBetween<1, 10_000>>,
}

/// One JSON object a line.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct JsonLines(String);

impl JsonSchema for JsonLines {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "JsonLines".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "one JSON object a line" })
    }
}

impl Operation for Export {
    const META: Meta = Meta::read("exportHeadlessAuditEvents", "/audit/export", "audit")
        .access("audit:export", &[Role::Admin, Role::Auditor])
        .says(
            "Export the audit log in order, for keeping and for offline verification",
            "Each line is one entry as it was hashed, followed by previousHash and hash. The header \
             X-Provost-Next-After names the value of after for the next call; it is absent when nothing \
             remains. Every export is an audit entry itself, so a log that is exported to its end has grown by \
             one.",
        )
        .command("audit", "export")
        .answers(&["X-Provost-Next-After"])
        .produces("application/jsonl")
        .sensitive();
    type Path = Empty;
    type Query = ExportQuery;
    type Body = Empty;
    type Output = JsonLines;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<JsonLines> {
        let org = ctx.org();
        ctx.target(&fences::LOG, org);
        let after = input.query.after.map_or(0, IntegerBetween::get);
        let limit = input.query.limit.map_or(DEFAULT_LIMIT, IntegerBetween::get);
        let records = store::after(ctx, after, limit)?;
        if let Some(last) = records.last()
            && last.seq < store::length(ctx, org)?
        {
            ctx.header("x-provost-next-after", last.seq.to_string());
        }
        let mut text = String::new();
        for record in &records {
            text.push_str(&record.line()?);
            text.push('\n');
        }
        Ok(JsonLines(text))
    }
}

#[cfg(test)]
mod tests {
    use crate::audit::testing::on_every_store;
    use serde_json::Value;

    const EXPORT: &str = "exportHeadlessAuditEvents";

    #[test]
    fn an_export_goes_on_where_the_last_one_ended() {
        on_every_store("audit_export", |world| {
            world.grow(25);
            let whole = world.get("auditor", EXPORT, &[], "limit=25");
            assert_eq!(whole.headers.get("x-provost-next-after"), None);
            let (mut text, mut after) = (String::new(), 0);
            for expected in [Some("10"), Some("20")] {
                let part = world.get("auditor", EXPORT, &[], &format!("after={after}&limit=10"));
                assert_eq!(
                    part.headers.get("x-provost-next-after").map(String::as_str),
                    expected
                );
                text.push_str(&part.text);
                after += 10;
            }
            let rest = world.get("auditor", EXPORT, &[], &format!("after={after}&limit=5"));
            assert_eq!(text + &rest.text, whole.text);
            let seqs: Vec<i64> = whole
                .text
                .lines()
                .map(|line| {
                    serde_json::from_str::<Value>(line).unwrap()["seq"]
                        .as_i64()
                        .unwrap()
                })
                .collect();
            assert_eq!(seqs, (1..=25).collect::<Vec<_>>());
            assert!(whole.text.ends_with('\n'));
        });
    }

    #[test]
    fn every_export_is_an_entry_and_only_two_roles_may() {
        on_every_store("audit_export_rights", |world| {
            assert_eq!(
                world.get("operator", EXPORT, &[], "").json()["code"],
                "role_forbidden"
            );
            assert_eq!(world.get("auditor", EXPORT, &[], "").text, "");
            world.settle();
            let last: Value = serde_json::from_str(world.exported().last().unwrap()).unwrap();
            assert_eq!(last["action"], EXPORT);
            assert_eq!(last["target"]["type"], "audit_log");
            assert_eq!(last["actor"]["id"], "auditor");
            for query in ["limit=0", "limit=10001", "after=-1", "after=x"] {
                assert_eq!(world.get("admin", EXPORT, &[], query).status, 400, "{query}");
            }
        });
    }
}
