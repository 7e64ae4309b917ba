//! What should be: accounts, their tokens and one setting, as the audit log in its order made them.

use std::collections::BTreeMap;

/// What a request of the model asks for. Accounts go by their ids.
#[derive(Clone, Debug)]
pub enum Act {
    Create {
        hours: i64,
    },
    Patch(String),
    Disable(String),
    Enable(String),
    Delete(String),
    Rotate {
        account: String,
        grace: Option<i64>,
        hours: i64,
    },
    Revoke {
        account: String,
        token: String,
    },
    /// How long the grace of a rotation is that does not say it. Units: seconds.
    Grace(i64),
    /// An operation that the model does not know.
    Other,
}

impl Act {
    /// Returns the account that this is about.
    pub fn account(&self) -> Option<&str> {
        match self {
            Self::Patch(account)
            | Self::Disable(account)
            | Self::Enable(account)
            | Self::Delete(account)
            | Self::Rotate { account, .. }
            | Self::Revoke { account, .. } => Some(account),
            Self::Create { .. } | Self::Grace(_) | Self::Other => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Token {
    /// The request that issued it.
    pub tag: String,
    /// Known once its answer came.
    pub secret: Option<String>,
    pub id: Option<String>,
    pub expires: i64,
    revoked: bool,
    superseded: bool,
}

impl Token {
    fn new(tag: &str, now: i64, life: i64) -> Self {
        Self {
            tag: tag.to_owned(),
            secret: None,
            id: None,
            expires: now + life,
            revoked: false,
            superseded: false,
        }
    }

    pub fn is_superseded(&self) -> bool {
        self.superseded
    }

    fn usable(&self, now: i64) -> bool {
        !self.revoked && now < self.expires
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    pub id: String,
    pub enabled: bool,
    pub deleted: bool,
    pub description: Option<String>,
    pub tokens: Vec<Token>,
    /// How often it changed.
    pub changes: u64,
}

/// The statuses with which a token is answered.
pub type Answer = (u16, &'static str);

const LIVE: Answer = (200, "");

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub accounts: BTreeMap<String, Account>,
    pub grace: i64,
}

impl Model {
    /// Says with which status an act has to be refused at this place of the log; `None` when it has to be done.
    pub fn refusal(&self, act: &Act) -> Option<u16> {
        let account = self.accounts.get(act.account()?)?;
        match act {
            _ if account.deleted => Some(404),
            Act::Rotate { .. } if !account.enabled => Some(409),
            _ => None,
        }
    }

    /// Does an act that the log says was done at `now`, on this target.
    pub fn perform(&mut self, act: &Act, tag: &str, target: Option<&str>, now: i64) {
        if let Act::Create { hours } = act {
            let id = target.unwrap().to_owned();
            let account = Account {
                id: id.clone(),
                enabled: true,
                deleted: false,
                description: None,
                tokens: vec![Token::new(tag, now, hours * 3_600_000)],
                changes: 0,
            };
            assert!(
                self.accounts.insert(id, account).is_none(),
                "an account was made twice"
            );
            return;
        }
        if let Act::Grace(secs) = act {
            self.grace = *secs;
            return;
        }
        let default_grace = self.grace;
        let Some(account) = act.account().and_then(|id| self.accounts.get_mut(id)) else {
            return;
        };
        account.changes += 1;
        match act {
            Act::Patch(_) => account.description = Some(tag.to_owned()),
            Act::Disable(_) => account.enabled = false,
            Act::Enable(_) => account.enabled = true,
            Act::Delete(_) => account.deleted = true,
            Act::Revoke { token, .. } => {
                let is_meant = |known: &&mut Token| known.id.as_deref() == Some(token);
                account.tokens.iter_mut().find(is_meant).unwrap().revoked = true;
            }
            Act::Rotate { grace, hours, .. } => {
                let grace = grace.unwrap_or(default_grace);
                rotate(account, tag, grace, *hours, now);
            }
            Act::Create { .. } | Act::Grace(_) | Act::Other => {}
        }
    }

    /// Returns the account and the token of a secret.
    pub fn find(&self, secret: &str) -> Option<(&Account, &Token)> {
        self.accounts.values().find_map(|account| {
            let token = account
                .tokens
                .iter()
                .find(|t| t.secret.as_deref() == Some(secret))?;
            Some((account, token))
        })
    }

    /// Returns with what a token is answered, and how often its account changed so far.
    pub fn answer(&self, secret: &str, now: i64) -> Option<(Answer, u64)> {
        let (account, token) = self.find(secret)?;
        let answer = if account.deleted {
            (401, "unauthenticated")
        } else if token.revoked {
            (401, "token_revoked")
        } else if now >= token.expires {
            (401, "token_expired")
        } else if account.enabled {
            LIVE
        } else {
            (401, "unauthenticated")
        };
        Some((answer, account.changes))
    }

    /// Returns the token that a request issued.
    pub fn issued(&mut self, tag: &str) -> Option<&mut Token> {
        self.accounts
            .values_mut()
            .flat_map(|account| account.tokens.iter_mut())
            .find(|token| token.tag == tag)
    }

    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.accounts
            .values()
            .flat_map(|account| account.tokens.iter().filter_map(|token| token.secret.as_ref()))
    }
}

fn rotate(account: &mut Account, tag: &str, grace: i64, hours: i64, now: i64) {
    for token in account.tokens.iter_mut().filter(|token| token.usable(now)) {
        if token.superseded || grace == 0 {
            token.revoked = true;
        } else {
            token.expires = token.expires.min(now + grace * 1000);
        }
        token.superseded = true;
    }
    account.tokens.push(Token::new(tag, now, hours * 3_600_000));
}
