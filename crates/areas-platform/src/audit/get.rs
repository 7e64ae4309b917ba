//! `GET …/audit/events/{entryId}`

use super::model::{AuditEntryId, AuditEvent, READERS, Record};
use super::show::show;
use super::store;
use provost_kernel::fence::Reader;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Error, OperationContext, Result, audit};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) struct Get;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EntryPath {
    /// The entry.
    entry_id: AuditEntryId,
}

impl Operation for Get {
    const META: Meta = Meta::read("getHeadlessAuditEvent", "/audit/events/{entryId}", "audit")
        .access("audit:read", READERS)
        .says(
            "Show one audit entry",
            "An entry whose details are not for the caller says withheld.",
        )
        .command("audit", "get");
    type Path = EntryPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AuditEvent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AuditEvent> {
        let record = find(ctx, &input.path.entry_id)?;
        let mut reader = Reader::of(ctx.actor());
        Ok(show(ctx, &mut reader, &record)?.event)
    }
}

/// Returns the entry that an id names, as it is stored.
///
/// Errors: `NotFound`.
pub(super) fn find(ctx: &mut OperationContext<'_>, id: &AuditEntryId) -> Result<Record> {
    // The id holds the place; its other half must still be the entry's own.
    let record = match audit::entry_seq(id.as_str()) {
        Some(seq) => store::get(ctx, seq)?,
        None => None,
    };
    let record = record.ok_or_else(|| Error::not_found("audit entry"))?;
    if AuditEvent::of(&record)?.id() != Some(id.as_str()) {
        return Err(Error::not_found("audit entry"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use crate::audit::testing::{HIDDEN, START, on_every_store};
    use provost_kernel::audit::{AuditRecord, entry_id};
    use provost_kernel::auth::{Actor, OrganizationId};
    use provost_kernel::fence::{Readers, TargetKind};
    use serde_json::json;

    const GET: &str = "getHeadlessAuditEvent";

    static STRANGE: TargetKind = TargetKind::new("strange thing", Readers::Everybody);

    /// Proves AL-4.
    #[test]
    fn one_entry_is_shown_as_it_stands_in_the_export() {
        on_every_store("audit_get", |world| {
            world.grow(3);
            let lines = world.exported();
            for (place, line) in lines.iter().enumerate() {
                let id = entry_id(START, i64::try_from(place + 1).unwrap());
                let shown = world.get("operator", GET, &[("entryId", &id)], "").json();
                assert_eq!(shown, serde_json::from_str::<serde_json::Value>(line).unwrap());
            }
        });
    }

    #[test]
    fn of_an_entry_that_is_not_for_its_reader_only_that_it_happened_is_shown() {
        on_every_store("audit_get_withheld", |world| {
            let acme = OrganizationId::parse("acme").unwrap();
            let mut note = AuditRecord::new(acme.clone(), START, "test.grew");
            note.actor = Some(Actor::system(acme.clone()));
            note.target = Some((&HIDDEN, "a name".into()));
            note.reason = Some("why".into());
            note.count = Some(3);
            // An act that nobody declared, and a record of a kind that nobody declared.
            let unknown = AuditRecord::new(acme.clone(), START, "test.unknown");
            let mut stranger = AuditRecord::new(acme.clone(), START, "test.grew");
            stranger.target = Some((&STRANGE, "a name".into()));
            world.append(&acme, &[note, unknown, stranger]);
            for (place, line) in world.exported().iter().enumerate() {
                let id = entry_id(START, i64::try_from(place + 1).unwrap());
                let get = |who| world.get(who, GET, &[("entryId", &id)], "").json();
                let whole: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(get("auditor"), whole);
                assert_eq!(get("admin"), whole);
                let kept = json!({
                    "id": id, "seq": whole["seq"], "time": whole["time"], "organizationId": "acme",
                    "action": whole["action"], "outcome": whole["outcome"],
                    "previousHash": whole["previousHash"], "hash": whole["hash"], "withheld": true,
                });
                assert_eq!(get("operator"), kept);
            }
        });
    }

    #[test]
    fn what_is_no_entry_of_the_organization_is_not_found() {
        on_every_store("audit_get_unknown", |world| {
            world.grow(3);
            let other_time = entry_id(START.plus_ms(1), 2);
            let (beyond, zero) = (entry_id(START, 4), entry_id(START, 0));
            let huge = format!("aud_{}", "7z".repeat(13));
            let mut bodies = Vec::new();
            for id in [&other_time, &beyond, &zero, &huge, "aud_x", "", "sa_1", "a\0b"] {
                let reply = world.get("admin", GET, &[("entryId", id)], "");
                assert_eq!(reply.status, 404, "{id:?}");
                bodies.push(reply.json());
            }
            let foreign = world.get("stranger", GET, &[("entryId", &entry_id(START, 2))], "");
            bodies.push(foreign.json());
            assert!(bodies.iter().all(|body| *body == bodies[0]));
            assert_eq!(bodies[0]["code"], json!("not_found"));
        });
    }
}
