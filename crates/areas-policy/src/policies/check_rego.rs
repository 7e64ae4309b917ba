//! `POST …/policy-code/rego/validate`

use super::inputs::Text;
use crate::modules::{self, Runs};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::{Kernel, OperationContext, Result};
use provost_policy::rego::{self, Failure, MODULE_LIMIT_CHARS, Module};
use provost_policy::{Family, contract, sha256_hex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct CheckRego;

/// A family that has modules.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RegoFamily {
    /// Package `forge.content`.
    Content,
    /// Package `forge.access`.
    Access,
    /// Package `forge.resource`.
    Resource,
}

impl From<RegoFamily> for Family {
    fn from(family: RegoFamily) -> Self {
        match family {
            RegoFamily::Content => Self::Content,
            RegoFamily::Access => Self::Access,
            RegoFamily::Resource => Self::Resource,
        }
    }
}

/// A stage of a content policy.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Stage {
    /// A prompt.
    Prompt,
    /// A tool call.
    PreTool,
    /// A tool's result.
    PostTool,
    /// A response.
    Response,
}

/// A module, and something to ask it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct RegoBody {
    /// The family whose package the module is.
    family: RegoFamily,
    /// The module.
    module: Text<1, MODULE_LIMIT_CHARS>,
    /// When the policy would be asked; a module compiles alike for every stage.
    #[serde(default)]
    #[expect(dead_code, reason = "read to be judged")]
    evaluate_on: Option<Vec<Stage>>,
    /// What the module is asked, as the nested form of the attributes' names.
    input: Option<Value>,
}

/// What a compiler says.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Diagnostic {
    /// The line, from 1; 0 when the whole module is meant.
    line: u32,
    /// The column, from 1; 0 when the whole line is meant.
    column: u32,
    /// What is wrong.
    message: String,
}

impl From<rego::Diagnostic> for Diagnostic {
    fn from(found: rego::Diagnostic) -> Self {
        Self {
            line: found.line,
            column: found.column,
            message: found.message,
        }
    }
}

/// What the module says of the input.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Verdict {
    /// Whether the policy would match.
    matched: bool,
    /// Why, in the author's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<String>,
    /// The module gave no answer, so the policy would count as matched; the diagnostics say why.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    evaluation_failed: bool,
}

/// The answer.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RegoCheck {
    /// Whether the module compiles.
    valid: bool,
    language_version: &'static str,
    /// The version of OPA whose language is spoken.
    opa_version: &'static str,
    /// The SHA-256 of the module's UTF-8 bytes.
    source_sha256: String,
    compiler_fingerprint: String,
    /// What tells the compiled module from every other.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_fingerprint: Option<String>,
    diagnostics: Vec<Diagnostic>,
    /// Texts that the module compares with the id of a record, each with the member that holds the record's words. Until they
    /// are changed, the module is also asked with each word in place of the id, and matches if it does for one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Diagnostic>,
    /// What the module says of the input, if one was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Verdict>,
}

impl Operation for CheckRego {
    const META: Meta = Meta::query(
        "validateHeadlessPolicyRego",
        "/policy-code/rego/validate",
        "policies",
    )
    .access("policies:write", &[Admin])
    .command("policies", "check-rego")
    .example(
        r#"{"family": "content",
           "module": "package forge.content\n\nmatch := {\"matched\": true} if input.tool.id == \"Bash\"\n",
           "input": {"tool": {"id": "Bash"}}}"#,
    )
    .reads_up_to(2 << 20, 64)
    .rate(RateClass::Resolve)
    .says(
        "Compile a Rego module and, with an input, ask it",
        "A module that does not compile is answered with valid: false and the places, to a caller with both manager headers \
         with 422. One that is stopped, contradicts \
         itself, gives no answer, or whose built-in or reference refuses what it is given outside of not and of rules \
         with a default, counts as matched, as it would in a decision; the diagnostic names the place and the operand. A text \
         that is compared with the id of a record is a warning: until it is changed, the module is also asked with each of \
         the words beside the id (identity.user_words and the like), here and in decisions.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = RegoBody;
    type Output = RegoCheck;

    /// INVARIANT DE-8: nothing of it is done on a reader: others wait for those.
    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RegoCheck> {
        let kernel = Kernel::behind(ctx.services())?;
        let organization = ctx.organization().clone();
        let asked = PendingCheck {
            refuses: input.manager.is_some(),
            family: input.body.family.into(),
            module: input.body.module.as_str().to_owned(),
            input: input.body.input.clone(),
        };
        Ok(ctx.later(async move {
            let core = modules::core(&kernel, &organization).await?;
            let worker = kernel.clone();
            let work = move || {
                let _core = core;
                asked.check(&worker)
            };
            kernel.blocking(work).await?
        }))
    }
}

/// What is checked, once the snapshot is released.
struct PendingCheck {
    /// Whether a module that does not compile is refused.
    refuses: bool,
    family: Family,
    module: String,
    input: Option<Value>,
}

impl PendingCheck {
    fn check(&self, kernel: &Kernel) -> Result<RegoCheck> {
        let source = self.module.as_str();
        let mut answer = RegoCheck {
            valid: false,
            language_version: contract::REGO_LANGUAGE_VERSION,
            opa_version: rego::OPA_VERSION,
            source_sha256: sha256_hex(source.as_bytes()),
            compiler_fingerprint: rego::compiler_fingerprint(),
            artifact_fingerprint: None,
            diagnostics: Vec::new(),
            warnings: Vec::new(),
            result: None,
        };
        match Module::compile(self.family, source) {
            Ok(module) => {
                answer.valid = true;
                answer.artifact_fingerprint = Some(module.artifact_fingerprint());
                answer.warnings = module.warnings().into_iter().map(Diagnostic::from).collect();
                if let Some(input) = &self.input {
                    let runs = Runs::live(kernel);
                    let (verdict, diagnostic) = ask(&module, &runs, input);
                    if runs.is_unavailable() {
                        return Err(Error::unavailable(
                            "no process for modules can be started, so that nothing can be asked; the server's log says why",
                        ));
                    }
                    answer.result = Some(verdict);
                    answer.diagnostics.extend(diagnostic);
                }
            }
            Err(found) if self.refuses => return Err(broken(&found)),
            Err(found) => {
                answer.diagnostics.extend(found.into_iter().map(Diagnostic::from));
            }
        }
        Ok(answer)
    }
}

/// Returns what Terraform shows of a module that does not compile: it shows no diagnostics (client contract §3.10).
fn broken(found: &[rego::Diagnostic]) -> Error {
    let told: Vec<String> = found
        .iter()
        .map(|found| format!("line {}, column {}: {}", found.line, found.column, found.message))
        .collect();
    let first = told.first().map_or("", String::as_str);
    let error = Error::new(
        Code::InvalidDefinition,
        format!("the module does not compile: {first}"),
    );
    told.iter()
        .fold(error, |error, told| error.and_field("/module", told.clone()))
}

fn ask(module: &Module, runs: &Runs<'_>, input: &Value) -> (Verdict, Option<Diagnostic>) {
    let failure = match module.evaluate_by(runs, input) {
        Ok(answer) => {
            let verdict = Verdict {
                matched: answer.matched,
                reason_code: answer.reason_code,
                evaluation_failed: false,
            };
            return (verdict, None);
        }
        Err(failure) => failure,
    };
    let whole = |message: &str| rego::Diagnostic {
        line: 0,
        column: 0,
        message: message.to_owned(),
    };
    let found = match failure {
        Failure::Stopped => whole(
            "the module was stopped: it takes too many steps, builds or compares values that are too large, or takes too much time",
        ),
        Failure::Ended => {
            whole("the module was ended with its process: it takes too long or too much memory")
        }
        Failure::Failed => whole("the module failed: the evaluation gave up"),
        Failure::NoAnswer => {
            whole("match is not an object with a boolean matched and, if there, a text reasonCode")
        }
        Failure::Disagreement(place) | Failure::Refused(place) => place,
    };
    let verdict = Verdict {
        matched: true,
        reason_code: None,
        evaluation_failed: true,
    };
    (verdict, Some(found.into()))
}
