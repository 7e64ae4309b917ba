//! Resolves names to subjects for the LLM gateway (specification §4.2).

use super::model::{MAX_SUBJECTS, NameQuery, ResolvedName, keys, resolve};
use super::store;
use provost_areas_platform::settings;
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::MacPurpose;
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// How much of a name's keyed hash is recorded: enough to tell whether a given name was asked for. Units: bytes.
const MAC_BYTES: usize = 16;

pub struct ResolveSubjects;

/// The names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ResolveBody {
    /// 1 to 256 names.
    subjects: Subjects,
}

/// Names that are asked for. LIMIT: 1 to 256 (specification §8).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<NameQuery>")]
#[schemars(inline, extend("minItems" = 1, "maxItems" = 256))]
struct Subjects(Vec<NameQuery>);

impl TryFrom<Vec<NameQuery>> for Subjects {
    type Error = &'static str;
    fn try_from(asked: Vec<NameQuery>) -> std::result::Result<Self, Self::Error> {
        if (1..=MAX_SUBJECTS).contains(&asked.len()) {
            return Ok(Self(asked));
        }
        Err("must hold 1 to 256 names")
    }
}

/// The names that one active subject has.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Answer {
    /// In the order of the request; what is not resolved is absent.
    #[schemars(extend("maxItems" = 256))]
    items: Vec<ResolvedName>,
}

impl Operation for ResolveSubjects {
    const META: Meta = Meta::query(
        "resolveHeadlessLlmGatewaySubjects",
        "/llm-gateway/subjects/resolve",
        "llm_gateway",
    )
    .access("llm_gateway:resolve", &[Admin, Operator])
    .command("subjects", "resolve").columns(&["name", "kind", "subjectId as id"])
    .example(
        r#"{"subjects": [{"name": "ada@acme.example"}, {"name": "Engineering", "kind": "group"}]}"#,
    )
    .rate(RateClass::Resolve)
    .errors(&[400, 401, 403, 404])
    .sensitive()
    .says(
        "Resolve names to active users, groups and service accounts",
        "Exact names, upper and lower case alike. A name that no active subject has, or more than one, is absent from the \
         answer; kind and directoryId tell several apart. 404 when the organization has switched the LLM gateway off.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = ResolveBody;
    type Output = Answer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Answer> {
        let asked = &input.body.subjects.0;
        note(ctx, asked);
        if !settings::load(ctx)?.llm_gateway.enabled {
            return Err(Error::new(
                Code::LlmGatewayNotEnabled,
                "the LLM gateway is not enabled in this organization",
            ));
        }
        let keys = keys(asked);
        // PostgreSQL takes no NUL in a text, and no name has one.
        let distinct: HashSet<&str> = keys
            .iter()
            .map(String::as_str)
            .filter(|key| !key.contains('\0'))
            .collect();
        let distinct: Vec<&str> = distinct.into_iter().collect();
        let found = store::named(ctx, &distinct)?;
        Ok(Answer {
            items: resolve(asked, &keys, &found),
        })
    }
}

/// Records how many names were asked for, and each as a keyed hash (SU-4).
fn note(ctx: &mut OperationContext<'_>, asked: &[NameQuery]) {
    let (keys, org) = (&ctx.services().keys, ctx.org().as_bytes());
    let mac = |asked: &NameQuery| {
        let mac = keys.mac(
            MacPurpose::AuditValue,
            &[b"subject-name", org, asked.name.as_str().as_bytes()],
        );
        provost_kernel::audit::hex(&mac[..MAC_BYTES])
    };
    let macs: Vec<String> = asked.iter().map(mac).collect();
    ctx.change(
        "/subjects",
        Value::Null,
        json!({ "count": asked.len(), "nameMacs": macs }),
    );
}
