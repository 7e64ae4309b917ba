//! What the access summary counts, each organization's for itself and those of strangers apart.
//!
//! Somebody without a token chooses the networks that he comes from, and somebody with one the organization whose token
//! it is. So what one of them makes us remember never takes the room of another's.
//!
//! ```text
//! organization a   reads ≤ 10 000 · known tokens ≤ 10 000      beyond: the operation or the code, of `other`
//! organization b   reads ≤ 10 000 · known tokens ≤ 10 000
//! strangers        networks ≤ 10 000
//! ```
//!
//! INVARIANT LE-1: every read is counted in its organization's summary, whatever strangers and other organizations
//! do; beyond the bound its operation is counted, though not whose it is.

use super::AccessKind;
use crate::auth::OrganizationId;
use std::collections::{BTreeMap, HashMap};

/// LIMIT: distinct counts of a kind in one minute, for each organization and for all strangers.
pub(super) const MAX_COUNTS: usize = 10_000;
/// Stands for everything that is beyond the bound.
pub(super) const OTHER: &str = "other";

/// How often what happened, by who did it and by what it was: operations and codes, of which there are few.
#[derive(Default)]
struct Counts(BTreeMap<(String, &'static str), u64>);

impl Counts {
    fn add(&mut self, who: &str, what: &'static str, times: u64) {
        let key = (who.to_owned(), what);
        if let Some(count) = self.0.get_mut(&key) {
            *count += times;
            return;
        }
        let key = if self.0.len() < MAX_COUNTS {
            key
        } else {
            (OTHER.to_owned(), what)
        };
        *self.0.entry(key).or_default() += times;
    }
}

/// The counts of one organization.
#[derive(Default)]
struct OfOrganization {
    reads: Counts,
    known: Counts,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Counter {
    organizations: HashMap<OrganizationId, OfOrganization>,
    strangers: Counts,
}

impl Counter {
    /// Counts something that happened so often.
    pub fn add(&mut self, what: AccessKind, times: u64) {
        match what {
            AccessKind::Read {
                organization,
                principal,
                operation,
            } => self.of(organization).reads.add(&principal, operation, times),
            AccessKind::KnownToken {
                organization,
                token_id,
                code,
            } => self.of(organization).known.add(&token_id, code, times),
            AccessKind::Stranger { code, network } => self.strangers.add(&network, code, times),
        }
    }

    // Only organizations that exist are counted for: a token names them.
    fn of(&mut self, organization: OrganizationId) -> &mut OfOrganization {
        self.organizations.entry(organization).or_default()
    }

    /// Takes everything, the organizations' counts first.
    pub fn take(&mut self) -> Vec<(AccessKind, u64)> {
        let Self {
            organizations,
            strangers,
        } = std::mem::take(self);
        let mut all = Vec::new();
        for (organization, of) in organizations {
            all.extend(of.reads.0.into_iter().map(|((principal, operation), count)| {
                let organization = organization.clone();
                (
                    AccessKind::Read {
                        organization,
                        principal,
                        operation,
                    },
                    count,
                )
            }));
            all.extend(of.known.0.into_iter().map(|((token_id, code), count)| {
                let organization = organization.clone();
                (
                    AccessKind::KnownToken {
                        organization,
                        token_id,
                        code,
                    },
                    count,
                )
            }));
        }
        all.extend(
            strangers
                .0
                .into_iter()
                .map(|((network, code), count)| (AccessKind::Stranger { code, network }, count)),
        );
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(organization: &str, principal: usize, operation: &'static str) -> AccessKind {
        AccessKind::Read {
            organization: OrganizationId::parse(organization).unwrap(),
            principal: format!("sa_{principal}"),
            operation,
        }
    }

    fn count_of(all: &[(AccessKind, u64)], what: &AccessKind) -> Option<u64> {
        all.iter().find(|(one, _)| one == what).map(|(_, count)| *count)
    }

    /// Proves LE-1.
    #[test]
    fn networks_of_strangers_take_no_room_of_reads() {
        let mut counter = Counter::default();
        for n in 0..2 * MAX_COUNTS {
            let network = format!("192.0.2.{n}");
            counter.add(
                AccessKind::Stranger {
                    code: "invalid_token",
                    network,
                },
                1,
            );
        }
        counter.add(read("acme", 1, "listHeadlessPolicies"), 1);
        counter.add(read("acme", 1, "listHeadlessPolicies"), 2);
        let all = counter.take();
        assert_eq!(count_of(&all, &read("acme", 1, "listHeadlessPolicies")), Some(3));
        let strangers: Vec<_> = all
            .iter()
            .filter(|(what, _)| matches!(what, AccessKind::Stranger { .. }))
            .collect();
        assert_eq!(strangers.len(), MAX_COUNTS + 1);
        assert_eq!(
            strangers.iter().map(|(_, count)| count).sum::<u64>(),
            2 * MAX_COUNTS as u64
        );
        assert!(counter.take().is_empty());
    }

    /// Proves LE-1.
    #[test]
    fn an_organization_takes_no_room_of_another_and_keeps_its_operations() {
        let mut counter = Counter::default();
        for n in 0..MAX_COUNTS + 5 {
            counter.add(read("acme", n, "listHeadlessPolicies"), 1);
            let token = AccessKind::KnownToken {
                organization: OrganizationId::parse("acme").unwrap(),
                token_id: format!("sat_{n}"),
                code: "token_revoked",
            };
            counter.add(token, 1);
        }
        counter.add(read("acme", 1, "getHeadlessPolicy"), 1);
        counter.add(read("globex", 1, "getHeadlessPolicy"), 1);
        let all = counter.take();
        let other = |operation| AccessKind::Read {
            organization: OrganizationId::parse("acme").unwrap(),
            principal: OTHER.to_owned(),
            operation,
        };
        assert_eq!(count_of(&all, &other("listHeadlessPolicies")), Some(5));
        assert_eq!(count_of(&all, &other("getHeadlessPolicy")), Some(1));
        assert_eq!(count_of(&all, &read("globex", 1, "getHeadlessPolicy")), Some(1));
        let reads: u64 = all
            .iter()
            .filter(|(what, _)| matches!(what, AccessKind::Read { .. }))
            .map(|(_, count)| count)
            .sum();
        assert_eq!(reads, MAX_COUNTS as u64 + 7);
    }
}
