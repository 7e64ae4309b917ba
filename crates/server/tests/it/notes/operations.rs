//! The five operations.

use super::NOTE;
use super::store::{self, Note, NoteId};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::{IntegerBetween, LongName};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What a note says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct NoteBody {
    text: LongName,
    /// For how long it is kept; for ever if left out.
    keep_secs: Option<IntegerBetween<1, 31_536_000>>,
}

/// The path of one note.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct NotePath {
    note_id: NoteId,
}

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    #[serde(default)]
    limit: Limit,
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct NotePage {
        notes: Note,
    }
}

pub struct ListNotes;

impl Operation for ListNotes {
    const META: Meta = Meta::read("listHeadlessNotes", "/notes", "operations")
        .access("operations:read", &[Admin, Operator, Auditor])
        .command("notes", "list")
        .columns(&["text", "expiresAt as expires", "id", "createdAt as created"])
        .says("List notes, the oldest first", "");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = NotePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NotePage> {
        let query = &input.query;
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let mut notes = store::list(ctx, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut notes, |last| last.seq);
        Ok(NotePage { notes, next_cursor })
    }
}

pub struct CreateNote;

impl Operation for CreateNote {
    const META: Meta = Meta::write("createHeadlessNote", Method::Post, "/notes", "operations")
        .access("operations:write", &[Admin])
        .command("notes", "create")
        .status(201)
        .says("Write a note", "");
    type Path = Empty;
    type Query = Empty;
    type Body = NoteBody;
    type Output = Note;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Note> {
        let id: NoteId = ctx.new_id();
        ctx.target(&NOTE, id.as_str());
        let expires_at = input.body.keep_secs.map(|secs| ctx.now().plus_secs(secs.get()));
        store::insert(ctx, &id, input.body.text.as_str(), expires_at)?;
        ctx.change("/text", Value::Null, input.body.text.as_str());
        store::get(ctx, &id)
    }
}

pub struct GetNote;

impl Operation for GetNote {
    const META: Meta = Meta::read("getHeadlessNote", "/notes/{noteId}", "operations")
        .access("operations:read", &[Admin, Operator, Auditor])
        .command("notes", "show")
        .says("Read a note", "");
    type Path = NotePath;
    type Query = Empty;
    type Body = Empty;
    type Output = Note;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Note> {
        store::get(ctx, &input.path.note_id)
    }
}

pub struct UpdateNote;

impl Operation for UpdateNote {
    const META: Meta = Meta::write("updateHeadlessNote", Method::Put, "/notes/{noteId}", "operations")
        .access("operations:write", &[Admin])
        .command("notes", "update")
        .says("Write a note anew", "It is kept as long as before.");
    type Path = NotePath;
    type Query = Empty;
    type Body = NoteBody;
    type Output = Note;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Note> {
        let id = &input.path.note_id;
        ctx.target(&NOTE, id.as_str());
        let before = store::get(ctx, id)?;
        store::update(ctx, id, input.body.text.as_str())?;
        ctx.change("/text", before.text, input.body.text.as_str());
        store::get(ctx, id)
    }
}

pub struct DeleteNote;

impl Operation for DeleteNote {
    const META: Meta = Meta::write(
        "deleteHeadlessNote",
        Method::Delete,
        "/notes/{noteId}",
        "operations",
    )
    .access("operations:write", &[Admin])
    .command("notes", "delete")
    .confirmed()
    .status(204)
    .says("Delete a note", "");
    type Path = NotePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let note = store::get(ctx, &input.path.note_id)?;
        ctx.target(&NOTE, note.id.as_str());
        store::delete(ctx, &note.id)?;
        ctx.change("/text", note.text, Value::Null);
        Ok(NoContent {})
    }
}
