//! Maps a word of telemetry to a user.
//!
//! Keeps WD-4.

use super::model::{MOST, Mapping, OneMapping};
use super::store;
use crate::directory;
use crate::directory::model::UserId;
use crate::words::fences;
use crate::words::{Kind, WordQuery, living};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct MapIdentity;

/// Which word, and whom it means.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct MapBody {
    /// What events call the user: an account number, a host's user name, an address that the directory does not know.
    word: LongName,
    /// The user.
    user_id: LongName,
}

impl Operation for MapIdentity {
    const META: Meta = Meta::write(
        "mapHeadlessDirectoryIdentity",
        Method::Post,
        "/directory/identities",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("history", "map-identity")
    .example(r#"{"word": "ada.lovelace", "userId": "usr_01m7w5fpg4ctwq7mvve86yenbr"}"#)
    .status(201)
    .also(200)
    .of_two(&["rights"])
    .says(
        "Map a word of events to a user",
        "From then on events that carry the word are judged as hers, whatever its case and spelling. It lets nobody sign \
         in. A word that is mapped to somebody else moves only with confirm: true; one that another user has for an id, a \
         login name or an address is refused, because it would mean both. Mapping it again to the same user changes \
         nothing and answers 200.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = MapBody;
    type Output = OneMapping;

    /// Whom it is to mean, and whom it means so far.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        let mut shown = directory::standing_of(ctx, &UserId::from_text(input.body.user_id.as_str()))?;
        let mapped = store::of_word(ctx, input.body.word.as_str())?;
        shown["mappedTo"] = json!(mapped.map(|mapping| mapping.user_id));
        Ok(shown)
    }

    /// Policies about whom it means so far hold no longer for whoever sends the word.
    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let mapped = store::of_word(ctx, input.body.word.as_str())?;
        Ok(mapped.map(|mapping| mapping.user_id).into_iter().collect())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneMapping> {
        let word = input.body.word.as_str();
        let user = UserId::from_text(input.body.user_id.as_str());
        let user = user.as_str();
        ctx.target(&directory::fences::USER, user);
        let mut asked = WordQuery::default();
        asked.add(Kind::User, word);
        if asked.is_empty() {
            let message =
                "must have a character that is seen: blanks and invisible ones are left out of a comparison";
            return Err(Error::unfit("/word", message));
        }
        asked.add(Kind::User, user);
        let org = ctx.org();
        let found = living(&mut ctx.tx(), org, &asked)?;
        if !found.of(Kind::User, user).iter().any(|named| named.id == user) {
            return Err(Error::unfit("/userId", "names no user of this organization"));
        }
        let mapped = store::of_word(ctx, word)?;
        let holder = mapped.as_ref().map(|mapping| mapping.user_id.clone());
        for named in found.of(Kind::User, word) {
            if holder.as_ref() != Some(&named.id) {
                let whose = if named.id == user { "this" } else { "another" };
                let message =
                    format!("the word is an id, a login name or an address of {whose} user already");
                return Err(Error::new(Code::AlreadyExists, message).with("userId", named.id.as_str()));
            }
        }
        match mapped {
            Some(mapping) if mapping.user_id == user => {
                ctx.status(200);
                Ok(OneMapping {
                    mapping: mapping.into(),
                })
            }
            Some(mapping) => give(ctx, mapping, user, input.confirm),
            None => make(ctx, word, user),
        }
    }
}

fn make(ctx: &mut OperationContext<'_>, word: &str, user: &str) -> Result<OneMapping> {
    if store::are(ctx, MOST)? {
        let message = format!("an organization maps at most {MOST} words; remove some first");
        return Err(Error::new(Code::Conflict, message));
    }
    let mapping = Mapping {
        id: ctx.new_id(),
        seq: 0,
        word: word.to_owned(),
        user_id: user.to_owned(),
        created_at: ctx.now(),
        updated_at: ctx.now(),
    };
    store::insert(ctx, &mapping)?;
    tell(ctx, &mapping, None);
    Ok(OneMapping {
        mapping: mapping.into(),
    })
}

/// Gives a mapped word to another user, who takes it from the one who had it.
fn give(
    ctx: &mut OperationContext<'_>,
    mut mapping: Mapping,
    user: &str,
    confirmed: bool,
) -> Result<OneMapping> {
    if !confirmed {
        let message = "the word is mapped to another user: say with confirm: true (or the header X-Confirm: true) that \
                       policies about that user no longer hold for it";
        return Err(Error::new(Code::ConfirmationRequired, message).with("userId", mapping.user_id.as_str()));
    }
    let before = std::mem::replace(&mut mapping.user_id, user.to_owned());
    mapping.updated_at = ctx.now().max(mapping.updated_at.plus_ms(1));
    store::save(ctx, &mapping)?;
    tell(ctx, &mapping, Some(&before));
    ctx.status(200);
    Ok(OneMapping {
        mapping: mapping.into(),
    })
}

fn tell(ctx: &mut OperationContext<'_>, mapping: &Mapping, before: Option<&str>) {
    ctx.change("/word", Value::Null, mapping.word.as_str());
    ctx.change("/userId", json!(before), mapping.user_id.as_str());
    ctx.emit(&fences::MAPPED, &fences::OfMapping::of(mapping));
}
