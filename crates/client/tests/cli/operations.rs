//! Operations of every shape that a command can have.

use provost_client::cli::Api;
use provost_kernel::auth::Role;
use provost_kernel::expose::openapi;
use provost_kernel::operation::{Empty, Entry, Input, Meta, Method, NoContent, Operation, Registry};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::text::{Description, IntegerBetween, Name};
use provost_kernel::{Error, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const ALL: &[Role] = &[Role::Admin, Role::Operator];

/// Returns the commands of these operations.
pub fn api() -> Api {
    let entries = vec![
        Entry::of::<List>(),
        Entry::of::<Create>(),
        Entry::of::<Update>(),
        Entry::of::<Delete>(),
        Entry::of::<Scrap>(),
        Entry::of::<Export>(),
        Entry::of::<Log>(),
        Entry::of::<Notices>(),
        Entry::of::<Feed>(),
        Entry::of::<Hook>(),
        Entry::of::<Revert>(),
        Entry::of::<Upload>(),
        Entry::of::<Download>(),
        Entry::of::<Forget>(),
        Entry::of::<Resolve>(),
        Entry::of::<DropThing>(),
        Entry::of::<RenameThing>(),
    ];
    Api::parse(&openapi::document(&Registry::default().with(entries))).expect("a document with commands")
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Turns.
    Active,
    /// Stands still.
    Disabled,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Widget {
    id: String,
    name: Name,
    status: Status,
    scopes: Vec<String>,
    parts: Option<Vec<Part>>,
    owner: Option<Owner>,
    description: Option<String>,
    created_at: Option<Timestamp>,
    weight: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Part {
    expires_at: Timestamp,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Owner {
    display_name: String,
}

const COLUMNS: &[&str] = &[
    "name",
    "status",
    "parts",
    "owner.displayName as owner",
    "createdAt",
    "id",
    "scopes",
    "description",
];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "the document is made of the declaration; the server of the test acts"
)]
struct ListQuery {
    /// Only widgets of this status.
    status: Option<Status>,
    #[serde(default)]
    limit: Limit,
    #[serde(default)]
    offset: Offset,
}

#[derive(Serialize, JsonSchema)]
struct Page {
    widgets: Vec<Widget>,
    total: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct CreateBody {
    /// What it is called.
    name: Name,
    scopes: Vec<String>,
    weight: Option<IntegerBetween<0, 604_800>>,
    tokens: Option<Tokens>,
    visible: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct Tokens {
    secret_replay_seconds: Option<IntegerBetween<0, 86_400>>,
}

#[derive(Serialize, JsonSchema)]
struct CreationAnswer {
    widget: Widget,
    token: IssueAnswer,
}

#[derive(Serialize, JsonSchema)]
struct IssueAnswer {
    id: String,
    token: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct WidgetPath {
    widget_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct UpdateBody {
    name: Option<Name>,
    /// What it is for; `null` clears it.
    description: Option<Description>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct AfterQuery {
    after: Option<String>,
    limit: Option<Limit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct CursorQuery {
    from: Option<String>,
    to: Option<String>,
    cursor: Option<String>,
    limit: Option<Limit>,
    /// The other way to page, as the list of service accounts has it.
    #[serde(default)]
    offset: Offset,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LogPage {
    entries: Vec<Widget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// What a page may have beside its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Widget>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<Vec<Widget>>,
}

/// A page whose items have the name of what other pages have beside theirs.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NoticePage {
    warnings: Vec<Widget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Members with the names of flags that every command has.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct HookBody {
    url: String,
    token: Option<String>,
    output: Option<String>,
    items: Option<Vec<WidgetPath>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct RevertBody {
    source_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct UploadQuery {
    version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct ResolveBody {
    names: Vec<String>,
}

/// Read from the content by the operation.
#[derive(Deserialize, JsonSchema)]
struct UploadAnswer {
    #[serde(skip)]
    #[expect(dead_code, reason = "see ListQuery")]
    bytes: Vec<u8>,
}

#[derive(Serialize, JsonSchema)]
struct Items {
    items: Vec<Widget>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct FeedQuery {
    after: Option<String>,
    epoch: Option<String>,
    limit: Option<Limit>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FeedPage {
    events: Vec<Widget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
    epoch: String,
}

macro_rules! declared {
    ($($name:ident $meta:expr, $path:ty, $query:ty, $body:ty => $output:ty;)*) => {$(
        struct $name;

        impl Operation for $name {
            const META: Meta = $meta;
            type Path = $path;
            type Query = $query;
            type Body = $body;
            type Output = $output;

            fn call(_: &mut OperationContext<'_>, _: &Input<Self>) -> Result<$output> {
                Err(Error::unavailable("the server of the test answers"))
            }
        }
    )*};
}

const fn read(id: &'static str, path: &'static str) -> Meta {
    Meta::read(id, path, "settings").access("widgets:read", ALL)
}

const fn write(id: &'static str, method: Method, path: &'static str) -> Meta {
    Meta::write(id, method, path, "settings").access("widgets:write", ALL)
}

/// An id that may hold slashes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "see ListQuery")]
struct ThingPath {
    thing_id: String,
}

declared! {
    DropThing write("dropThing", Method::Delete, "/things/{*thingId}").command("things", "drop").status(204)
        .says("Drops a thing", ""), ThingPath, UploadQuery, Empty => NoContent;
    RenameThing write("renameThing", Method::Put, "/things/{*thingId}").command("things", "rename")
        .says("Renames a thing", ""), ThingPath, Empty, RevertBody => Items;
    List read("listWidgets", "/widgets").command("widgets", "list").says("Lists widgets", "").columns(COLUMNS),
        Empty, ListQuery, Empty => Page;
    Create write("createWidget", Method::Post, "/widgets").command("widgets", "create").status(201).reveals_secret()
        .says("Creates a widget", "It has a token."), Empty, Empty, CreateBody => CreationAnswer;
    Update write("updateWidget", Method::Patch, "/widgets/{widgetId}").command("widgets", "update")
        .says("Changes a widget", ""), WidgetPath, Empty, UpdateBody => Widget;
    Delete write("deleteWidget", Method::Delete, "/widgets/{widgetId}").command("widgets", "delete").status(204)
        .confirmed().says("Deletes a widget", ""), WidgetPath, Empty, Empty => NoContent;
    Scrap write("scrapWidget", Method::Delete, "/widgets/{widgetId}/parts").command("widgets", "scrap").status(204)
        .weighed().says("Scraps the parts of a widget", ""), WidgetPath, Empty, Empty => NoContent;
    Export read("exportLog", "/log/export").command("log", "export").produces("application/jsonl")
        .says("Exports the log", ""), Empty, AfterQuery, Empty => NoContent;
    Log read("listLog", "/log").command("log", "list").says("Lists the log", "").columns(&["name"]), Empty, CursorQuery, Empty => LogPage;
    Notices read("listNotices", "/notices").command("notices", "list").says("Lists notices", "").columns(&["name"]), Empty, CursorQuery, Empty => NoticePage;
    Feed read("listFeed", "/feed").command("feed", "list").says("Lists the feed", "").columns(&["name"]), Empty, FeedQuery, Empty => FeedPage;
    Hook write("createHook", Method::Post, "/hooks").command("hooks", "create").says("Creates a hook", ""),
        Empty, Empty, HookBody => Widget;
    Revert write("revertWidget", Method::Post, "/widgets/{widgetId}/revert").command("widgets", "revert")
        .says("Reverts a widget", "").previews("widgets:revert", &[Role::Admin]),
        WidgetPath, Empty, RevertBody => Widget;
    Upload write("uploadPackage", Method::Post, "/packages").command("packages", "upload").status(201)
        .says("Uploads a package", "").consumes(&["application/gzip", "application/zip"], 1024, 10),
        Empty, UploadQuery, UploadAnswer => Widget;
    Download read("downloadPackage", "/packages/{widgetId}/content").command("packages", "download")
        .produces("application/gzip").says("Downloads a package", ""), WidgetPath, Empty, Empty => NoContent;
    Forget write("forgetPackage", Method::Post, "/packages/{widgetId}/forget").command("packages", "forget")
        .says("Forgets a package", "").consents_in_headers(), WidgetPath, Empty, Empty => Widget;
    Resolve Meta::query("resolveWidgets", "/widgets/resolve", "settings").access("widgets:read", ALL)
        .command("widgets", "resolve").says("Resolves names", "").columns(&["name"]), Empty, Empty, ResolveBody => Items;
}
