//! Answers that come after the snapshot was released ([`OperationContext::later`]), under test operations.

use crate::support::{App, each, with_trio};
use provost_kernel::error::{Code, Error};
use provost_kernel::event::{EventData, EventOf};
use provost_kernel::fence::{Readers, TargetKind};
use provost_kernel::kernel::Settings;
use provost_kernel::operation::{Access, Empty, Entry, Input, Meta, Method, Operation};
use provost_kernel::time::SystemClock;
use provost_kernel::{Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

struct Ingest;
struct LookQuery;
struct Write;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LookWish {
    wish: String,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct LookAnswer {
    given: String,
}

fn fulfil(ctx: &mut OperationContext<'_>, wish: &str) -> LookAnswer {
    let (wish, kernel) = (wish.to_owned(), Kernel::behind(ctx.services()));
    ctx.later(async move {
        // The snapshot is released: the kernel reads and writes anew.
        let count = kernel?
            .read_system(|tx| tx.query(&ONE, &[], |_| Ok(())))
            .await?
            .len();
        match wish.as_str() {
            "panic" => panic!("a future that panics"),
            "refuse" => Err(Error::new(Code::NotFound, "there is no such wish")),
            _ => Ok(LookAnswer {
                given: format!("{wish} {count}"),
            }),
        }
    })
}

provost_kernel::statements! {
    /// A statement that reads nothing.
    ONE = unscoped("reads nothing") "SELECT 1";
}

impl Operation for Ingest {
    const META: Meta = Meta::ingest("ingestInTest", "/wishes", "operations").rule(Access::Authenticated);
    type Path = Empty;
    type Query = Empty;
    type Body = LookWish;
    type Output = LookAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<LookAnswer> {
        if input.body.wish == "bytes" {
            ctx.send_later("application/x-protobuf", async { Ok("raw".into()) });
            return Ok(LookAnswer::default());
        }
        Ok(fulfil(ctx, &input.body.wish))
    }
}

impl Operation for LookQuery {
    const META: Meta = Meta::query("lookInTest", "/wishes/look", "operations")
        .rule(Access::Authenticated)
        .sensitive();
    type Path = Empty;
    type Query = Empty;
    type Body = LookWish;
    type Output = LookAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<LookAnswer> {
        ctx.target(&WISH, input.body.wish.as_str());
        Ok(fulfil(ctx, &input.body.wish))
    }
}

static WISH: TargetKind = TargetKind::new("wish", Readers::Everybody);
static WISHED: EventOf<Wish> = EventOf::new("test.wished", Readers::Everybody, "Somebody wished.");

#[derive(Serialize, JsonSchema)]
struct Wish {}

impl EventData for Wish {
    const EXAMPLE: &'static str = "{}";
}

impl Operation for Write {
    const META: Meta =
        Meta::write("writeInTest", Method::Post, "/wishes/write", "operations").rule(Access::Authenticated);
    type Path = Empty;
    type Query = Empty;
    type Body = LookWish;
    type Output = LookAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<LookAnswer> {
        ctx.emit(&WISHED, &Wish {});
        Ok(fulfil(ctx, &input.body.wish))
    }
}

fn wishing(app: &App) -> App {
    let entries = vec![
        Entry::of::<Ingest>(),
        Entry::of::<LookQuery>(),
        Entry::of::<Write>(),
    ];
    app.beside(
        entries,
        Arc::new(SystemClock::new()),
        Settings::default(),
        app.location(),
    )
}

#[test]
fn an_answer_may_come_after_the_snapshot() {
    each("later", |outer: Arc<App>| async move {
        let app = wishing(&outer);
        let ask =
            |path: &'static str, wish: &str| app.request("POST", path).json(json!({ "wish": wish })).send();
        let reply = ask("/wishes", "rain").await;
        assert_eq!(reply.ok()["given"], "rain 1");
        assert_eq!(reply.header("ratelimit-policy"), "\"decide\";q=4000;w=2");
        ask("/wishes", "refuse").await.refused(404, "not_found");
        ask("/wishes", "panic").await.refused(500, "internal");
        let raw = ask("/wishes", "bytes").await;
        assert_eq!((raw.status.as_u16(), raw.text().as_str()), (200, "raw"));
        assert_eq!(raw.header("content-type"), "application/x-protobuf");
        app.kernel.stop().await;
    });
}

#[test]
fn a_sensitive_read_is_remembered_as_it_came_out() {
    each("later_audit", |outer: Arc<App>| async move {
        let app = wishing(&outer);
        let ask = |wish: &str| {
            app.request("POST", "/wishes/look")
                .json(json!({ "wish": wish }))
                .send()
        };
        ask("rain").await.ok();
        ask("refuse").await.refused(404, "not_found");
        // The writer writes what waits before it ends.
        app.kernel.stop().await;
        let log = outer.get("/audit/events?action=lookInTest").await;
        let entries = log.ok()["events"].as_array().unwrap();
        let seen: Vec<_> = entries
            .iter()
            .map(|entry| {
                (
                    entry["target"]["id"].as_str(),
                    entry["outcome"]["status"].as_i64(),
                )
            })
            .collect();
        assert_eq!(seen, [(Some("refuse"), Some(404)), (Some("rain"), Some(200))]);
    });
}

#[test]
fn a_unit_of_work_answers_at_once_or_not_at_all() {
    each("later_write", |outer: Arc<App>| async move {
        let app = wishing(&outer);
        let body = with_trio(json!({ "wish": "rain" }), "a-key-for-the-later-test");
        app.request("POST", "/wishes/write")
            .json(body)
            .send()
            .await
            .refused(500, "internal");
        assert!(app.events(0).await.iter().all(|(kind, _)| kind != "test.wished"));
        app.kernel.stop().await;
    });
}
