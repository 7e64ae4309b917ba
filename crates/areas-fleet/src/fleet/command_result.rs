//! `POST …/devices/{deviceId}/commands/{commandId}/result`

use super::command::{Command, CommandId, OneCommand, Outcome};
use super::model::DeviceId;
use super::sight::Sight;
use super::{command_store, credentials, fences, store};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation, RateClass};
use provost_kernel::{OperationContext, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

pub struct ReportResult;

/// The path of a command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CommandPath {
    /// The device.
    device_id: DeviceId,
    /// The command.
    command_id: CommandId,
}

/// LIMIT: characters of a word of a device. Ours.
const LONGEST: usize = 64;

/// A word of a device's own list: nothing in which a path, a name or a text of a person could stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct ResultCode(String);

impl ResultCode {
    /// Returns it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ResultCode {
    type Error = &'static str;
    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let fits = text.len() <= LONGEST
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && text.bytes().all(is_word);
        if fits {
            return Ok(Self(text));
        }
        Err("must have 1 to 64 characters of a to z, 0 to 9 and _ and begin with a letter")
    }
}

impl JsonSchema for ResultCode {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ResultCode".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$" })
    }
}

/// What came of a command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ResultBody {
    /// Whether the device did it.
    outcome: Outcome,
    /// Why it failed, in a word of the device's own list.
    code: Option<ResultCode>,
}

impl Operation for ReportResult {
    const META: Meta = Meta::write(
        "reportHeadlessDeviceCommandResult",
        Method::Post,
        "/devices/{deviceId}/commands/{commandId}/result",
        "fleet",
    )
    .rule(Access::OfKind {
        kind: credentials::DEVICE,
        parameter: "deviceId",
    })
    .rate(RateClass::Machine)
    .consents_in_headers()
    .errors(&[400, 401, 403])
    .example(r#"{"outcome": "succeeded"}"#)
    .says(
        "Say what came of a command",
        "A device calls this for itself. What is said first counts: the same again changes nothing, and something else is 409. A \
         change of the key that did not happen is 409, and the command waits on; of one that did the server says so by itself.",
    );
    type Path = CommandPath;
    type Query = Empty;
    type Body = ResultBody;
    type Output = OneCommand;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneCommand> {
        let CommandPath {
            device_id,
            command_id,
        } = &input.path;
        ctx.target(&fences::DEVICE, device_id.as_str());
        let now = ctx.now();
        let mut command = command_store::get(ctx, device_id, command_id)?.at(now);
        let code = input.body.code.as_ref().map(ResultCode::as_str);
        if code.is_some() && input.body.outcome == Outcome::Succeeded {
            let message = "says why a command failed; this one succeeded";
            return Err(Error::unfit("/code", message));
        }
        if input.body.outcome == Outcome::Succeeded && command.waits() {
            has_another_key(ctx, &command)?;
        }
        finish(ctx, &mut command, input.body.outcome, code)?;
        let command = command.seen(&Sight::load(ctx)?);
        Ok(OneCommand { command })
    }
}

/// Refuses to believe that the key of a device was changed which it has still: a copy that hears of the command first would say so.
///
/// Keeps FL-11.
///
/// Errors: `Conflict`.
fn has_another_key(ctx: &mut OperationContext<'_>, command: &Command) -> Result<()> {
    let Some(former) = &command.key_thumbprint else {
        return Ok(());
    };
    if store::get(ctx, &command.device_id)?.key_thumbprint != *former {
        return Ok(());
    }
    let message = "the device has the key that it had when it was told to change it; the command waits on";
    Err(Error::new(Code::Conflict, message))
}

/// Keeps what came of a command, and tells of it where that is news.
///
/// Errors: `Conflict` where it ended otherwise.
pub fn finish(
    ctx: &mut OperationContext<'_>,
    command: &mut Command,
    outcome: Outcome,
    code: Option<&str>,
) -> Result<()> {
    let before = command.state;
    if !command.finish(outcome, code, ctx.now())? {
        return Ok(());
    }
    command_store::finish(ctx, command)?;
    ctx.change("/command", before.as_str(), command.state.as_str());
    let of = fences::OfCommand {
        device_id: command.device_id.clone(),
        command_id: command.id.clone(),
        state: command.state.as_str(),
    };
    ctx.emit(&fences::COMMAND_FINISHED, &of);
    Ok(())
}
