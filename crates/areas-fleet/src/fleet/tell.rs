//! `GET`, `POST …/devices/{deviceId}/commands`

use super::command::{Command, CommandKind, CommandState, LIFE_SECS, MOST_WAITING, OneCommand};
use super::model::Status;
use super::sight::Sight;
use super::view::DevicePath;
use super::{command_store, fences, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub struct CreateCommand;
pub struct ListCommands;

/// What a device is told to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// What.
    kind: CommandKind,
    /// Its life, in seconds; a day when absent.
    expires_in_seconds: Option<IntegerBetween<3600, 604_800>>,
}

impl Operation for CreateCommand {
    const META: Meta = Meta::write(
        "createHeadlessDeviceCommand",
        Method::Post,
        "/devices/{deviceId}/commands",
        "fleet",
    )
    .access("fleet:write", &[Admin, Operator])
    .command("devices", "tell")
    .example(r#"{"kind": "rescan"}"#)
    .status(202)
    .says(
        "Tell a device to do something",
        "It hears of it at its next heartbeat, and at each one after that until it says what came of it. At most eight wait at a \
         time, for a device that is active or quarantined.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneCommand;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneCommand> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let device = store::get(ctx, id)?;
        if !matches!(device.status, Status::Active | Status::Quarantined) {
            let status = device.status.as_str();
            let message =
                format!("the device is {status}; only one that is active or quarantined is told anything");
            return Err(Error::new(Code::Conflict, message).with("status", status));
        }
        if command_store::waiting(ctx, id)?.len() >= MOST_WAITING {
            let message = "eight commands wait for this device; it has to say first what came of one";
            return Err(Error::new(Code::Conflict, message));
        }
        let life = input
            .body
            .expires_in_seconds
            .map_or(LIFE_SECS, IntegerBetween::get);
        // What the device says of a change of its key is compared with this.
        let key_thumbprint = (input.body.kind == CommandKind::RotateKey).then_some(device.key_thumbprint);
        let command = Command {
            id: ctx.new_id(),
            device_id: id.clone(),
            seq: 0,
            kind: input.body.kind,
            state: CommandState::Queued,
            created_by: ctx.actor().id.clone(),
            created_at: ctx.now(),
            expires_at: ctx.now().plus_secs(life),
            delivered_at: None,
            finished_at: None,
            code: None,
            key_thumbprint,
        };
        command_store::insert(ctx, &command)?;
        ctx.change("/command", Value::Null, command.kind.as_str());
        Ok(OneCommand { command })
    }
}

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page of commands.
    pub struct CommandPage {
        /// The commands, the newest first.
        commands: Command,
    }
}

const LIST: &str = "listHeadlessDeviceCommands";

impl Operation for ListCommands {
    const META: Meta = Meta::read(LIST, "/devices/{deviceId}/commands", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor])
        .command("devices", "commands")
        .columns(&[
            "kind",
            "state",
            "createdAt as given",
            "finishedAt as finished",
            "code as why",
            "id",
            "createdBy as by",
            "deliveredAt as told",
            "expiresAt as expires",
            "deviceId as device",
        ])
        .says(
            "List the commands to a device",
            "Newest first. Of those that the device answered the last sixty-four are kept, and of all those of the last thirty days.",
        );
    type Path = DevicePath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = CommandPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CommandPage> {
        let (id, query) = (&input.path.device_id, &input.query);
        store::get(ctx, id)?;
        let list = format!("{LIST}|{}", id.as_str());
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = command_store::list(ctx, id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |command| command.seq);
        let (now, sight) = (ctx.now(), Sight::load(ctx)?);
        Ok(CommandPage {
            commands: found
                .into_iter()
                .map(|command| command.at(now).seen(&sight))
                .collect(),
            next_cursor,
        })
    }
}
