//! Before anything is sent again: is the effect of an unanswered request there, or not, or in part?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::model::{Account, Intent, Model, Token, TokenState, is_current};

/// How much of an effect a restarted server shows.
#[derive(Debug, PartialEq, Eq)]
pub enum Presence {
    Absent,
    Whole,
    /// With what is there, or missing.
    Partial(String),
    /// The accounts do not show it: others act on the same record, or it changes nothing.
    Unknown,
}

/// Compares the server's accounts (by id) with the belief before and after the request.
pub fn presence(intent: &Intent, model: &Model, shown: &BTreeMap<String, Value>) -> Presence {
    let id = match intent {
        Intent::Create { name, .. } => return presence_of_creation(intent, name, shown),
        Intent::RotateShared { .. } | Intent::LimitLifetime { .. } => return Presence::Unknown,
        Intent::Rotate { account, .. }
        | Intent::Update { account, .. }
        | Intent::Disable { account }
        | Intent::Enable { account }
        | Intent::Revoke { account, .. }
        | Intent::Delete { account } => account,
    };
    let Some(before) = model.accounts.get(id) else {
        return Presence::Unknown;
    };
    let Some(record) = shown.get(id) else {
        if matches!(intent, Intent::Delete { .. }) {
            return Presence::Whole;
        }
        return Presence::Partial("the account is gone".into());
    };
    let unchanged = before.differences(record);
    let changed = after(intent, before, record).map(|after| after.differences(record));
    match (unchanged.is_empty(), changed) {
        (true, Some(changed)) if changed.is_empty() => Presence::Unknown,
        (true, _) => Presence::Absent,
        (false, Some(changed)) if changed.is_empty() => Presence::Whole,
        (false, _) => Presence::Partial(unchanged.join(", ")),
    }
}

fn presence_of_creation(intent: &Intent, name: &str, shown: &BTreeMap<String, Value>) -> Presence {
    let mut created = shown.values().filter(|account| account["name"] == json!(name));
    let Some(account) = created.next() else {
        return Presence::Absent;
    };
    let tokens = account["tokens"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let whole = tokens.len() == 1 && tokens.iter().all(is_current) && account["status"] == json!("active");
    if whole && created.next().is_none() {
        return Presence::Whole;
    }
    Presence::Partial(format!("{intent:?} left {account}"))
}

/// The account after the request; none where the request would leave no account.
fn after(intent: &Intent, before: &Account, record: &Value) -> Option<Account> {
    let mut account = before.clone();
    match intent {
        Intent::Rotate { .. } => {
            let tokens = record["tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
            let id_of = |token: &Value| token["id"].as_str().unwrap_or_default().to_owned();
            let new = tokens
                .iter()
                .map(id_of)
                .find(|id| before.tokens.iter().all(|known| known.id != *id))?;
            account
                .tokens
                .iter_mut()
                .for_each(|token| token.state = TokenState::Ended);
            account.tokens.push(Token {
                id: new,
                secret: String::new(),
                state: TokenState::Current,
            });
        }
        Intent::Update {
            name, description, ..
        } => {
            account.name = name.clone().unwrap_or(account.name);
            account.description = description.clone().unwrap_or(account.description);
        }
        Intent::Disable { .. } => account.disabled = true,
        Intent::Enable { .. } => account.disabled = false,
        Intent::Revoke { token, .. } => {
            let revoked = account.tokens.iter_mut().filter(|known| known.id == *token);
            revoked.for_each(|token| token.state = TokenState::Ended);
        }
        _ => return None,
    }
    Some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let token = Token {
            id: "1".into(),
            secret: String::new(),
            state: TokenState::Current,
        };
        let account = Account {
            name: "a".into(),
            role: "viewer".into(),
            description: Value::Null,
            disabled: false,
            tokens: vec![token],
        };
        Model {
            accounts: BTreeMap::from([("sa_1".into(), account)]),
            ..Model::default()
        }
    }

    fn shown(tokens: &Value) -> BTreeMap<String, Value> {
        let account = json!({"name": "a", "permissionRole": "viewer", "status": "active", "tokens": tokens});
        BTreeMap::from([("sa_1".into(), account)])
    }

    #[test]
    fn a_rotation_is_there_or_not_or_half() {
        let rotate = Intent::Rotate {
            account: "sa_1".into(),
            by_itself: false,
        };
        let judge = |tokens: Value| presence(&rotate, &model(), &shown(&tokens));
        assert_eq!(judge(json!([{"id": "1"}])), Presence::Absent);
        assert_eq!(
            judge(json!([{"id": "2"}, {"id": "1", "revokedAt": "t"}])),
            Presence::Whole
        );
        // The old token ended and no new one, two current ones, or a new one in place of the old one.
        for half in [
            json!([{"id": "1", "revokedAt": "t"}]),
            json!([{"id": "2"}, {"id": "1"}]),
            json!([{"id": "2"}]),
        ] {
            assert!(matches!(judge(half), Presence::Partial(_)));
        }
    }

    #[test]
    fn a_creation_without_its_token_is_half() {
        let create = Intent::Create {
            name: "a".into(),
            role: "viewer",
        };
        let judge = |tokens: Value| presence(&create, &Model::default(), &shown(&tokens));
        assert_eq!(judge(json!([{"id": "1"}])), Presence::Whole);
        assert!(matches!(judge(json!([])), Presence::Partial(_)));
        assert_eq!(
            presence(&create, &Model::default(), &BTreeMap::new()),
            Presence::Absent
        );
    }

    #[test]
    fn a_deletion_removes_the_account_and_nothing_else_does() {
        let delete = Intent::Delete {
            account: "sa_1".into(),
        };
        assert_eq!(presence(&delete, &model(), &BTreeMap::new()), Presence::Whole);
        assert_eq!(
            presence(&delete, &model(), &shown(&json!([{"id": "1"}]))),
            Presence::Absent
        );
        assert!(matches!(
            presence(&delete, &model(), &shown(&json!([{"id": "1", "revokedAt": "t"}]))),
            Presence::Partial(_)
        ));
        let disable = Intent::Disable {
            account: "sa_1".into(),
        };
        assert!(matches!(
            presence(&disable, &model(), &BTreeMap::new()),
            Presence::Partial(_)
        ));
    }

    #[test]
    fn a_change_of_nothing_cannot_be_seen() {
        let update = Intent::Update {
            account: "sa_1".into(),
            name: None,
            description: Some(Value::Null),
        };
        assert_eq!(
            presence(&update, &model(), &shown(&json!([{"id": "1"}]))),
            Presence::Unknown
        );
    }
}
