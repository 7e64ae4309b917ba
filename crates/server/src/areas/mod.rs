//! The areas: a folder each, and the list of them.
//!
//! A new area is a folder in the crate of its layer with an [`Area`] in its `mod.rs`, and its name in that crate's `lib.rs` and
//! here. Everything else that has to know of it reads [`ALL`].

use provost_kernel::area::{Area, Areas};

pub mod installation;
mod planned;
pub mod restore;

pub use provost_areas_access::{mcp_sessions, oauth, resource_credentials, resources, workload_trusts};
pub use provost_areas_catalog::{assignments, managed_config, skill_registry};
pub use provost_areas_fleet::{fleet, inventory};
pub use provost_areas_identity::{directory, service_accounts, subjects, words};
pub use provost_areas_platform::{audit, capabilities, events, settings};
pub use provost_areas_policy::{
    approvals, backtests, decisions, device_judging, history, otlp, policies, violations,
};

/// Every area of the product, in the order in which their operations are listed and their work is done.
pub static ALL: Areas = Areas::of(LIST).answering(include_str!("../../../../openapi/examples.json"));

static LIST: &[&Area] = &[
    &installation::AREA,
    &service_accounts::AREA,
    &audit::AREA,
    &events::AREA,
    &settings::AREA,
    &directory::AREA,
    &subjects::AREA,
    &words::AREA,
    &history::AREA,
    &otlp::AREA,
    &violations::AREA,
    &managed_config::AREA,
    &skill_registry::AREA,
    &resources::AREA,
    &resource_credentials::AREA,
    &policies::AREA,
    &approvals::AREA,
    &decisions::AREA,
    &backtests::AREA,
    &mcp_sessions::AREA,
    &oauth::AREA,
    &workload_trusts::AREA,
    &fleet::AREA,
    &inventory::AREA,
    &assignments::AREA,
    &device_judging::AREA,
    &restore::AREA,
    &capabilities::AREA,
    &planned::AREA,
];

#[cfg(test)]
mod tests {
    use super::{ALL, oauth, service_accounts};
    use provost_areas_access::resources::announcements::{ProtocolChanges, ResourceGoes};
    use provost_areas_identity::directory::RoleGiven;
    use provost_areas_platform::announcements::{
        AccountNarrowed, AccountRotatesItself, PrincipalEnded, UserNarrowed,
    };
    use provost_areas_platform::settings::ActsOfTwoChanged;
    use provost_kernel::Code;
    use provost_kernel::area::{Areas, Check, Ends};
    use provost_kernel::auth::{ScopeSet, toolsets};
    use provost_kernel::operation::Access;
    use provost_kernel::second_person::{CallOfTwo, NamedWords, WaitingCall};
    use std::collections::BTreeSet;

    #[test]
    fn each_area_is_checked_or_says_why_not() {
        let mut names = BTreeSet::new();
        for area in ALL.iter() {
            assert!(names.insert(area.name), "{} stands in the list twice", area.name);
            assert!(
                !area.says.is_empty() && !area.says.ends_with('.'),
                "{}",
                area.name
            );
            match area.check {
                Check::Find(_) => {}
                Check::Nothing(why) => assert!(why.len() > 10, "{}", area.name),
                Check::Unsaid => panic!("{} has neither a check nor a reason why it needs none", area.name),
            }
        }
    }

    #[test]
    fn each_operation_is_of_a_toolset_and_needs_scopes_that_areas_declare() {
        ALL.install_scopes().unwrap();
        for entry in ALL.registry().entries() {
            let meta = entry.meta;
            assert!(
                toolsets().iter().any(|toolset| toolset.name == meta.toolset),
                "{}",
                meta.id
            );
            let [scope, other] = match meta.access {
                Access::Authenticated | Access::OfKind { .. } => continue,
                Access::Scoped { scope, .. } => [scope, scope],
                Access::ScopedEither { scope, other, .. } | Access::ScopedBoth { scope, other, .. } => {
                    [scope, other]
                }
                Access::ScopedOrSelf {
                    scope, self_scope, ..
                } => [scope, self_scope],
            };
            let to_perform = meta.performance.map_or(scope, |performance| performance.scope);
            for scope in [scope, other, to_perform] {
                assert!(ScopeSet::is_known(scope), "{}: {scope}", meta.id);
            }
        }
    }

    static TWICE: Areas = Areas::of(&[&service_accounts::AREA, &service_accounts::AREA]);
    static TWO_SESSIONS: Areas = Areas::of(&[&oauth::AREA, &oauth::AREA]);
    static ALONE: Areas = Areas::of(&[&service_accounts::AREA]);

    #[test]
    fn kinds_of_tokens_are_told_apart_and_sessions_are_one_areas() {
        ALL.check_schemes().unwrap();
        assert!(!ALL.schemes().own.is_empty() && ALL.schemes().delegated.is_some());
        for areas in [&TWICE, &TWO_SESSIONS] {
            assert_eq!(areas.check_schemes().unwrap_err().code(), Code::Internal);
        }
    }

    #[test]
    fn whoever_decides_about_an_announcement_is_there() {
        assert!(ALL.has_listener::<AccountRotatesItself>() && ALL.has_listener::<RoleGiven>());
        assert!(
            ALL.has_listener::<NamedWords>()
                && ALL.has_listener::<CallOfTwo>()
                && ALL.has_listener::<WaitingCall>()
                && ALL.has_listener::<ActsOfTwoChanged>()
        );
        assert!(
            ALL.has_listener::<ResourceGoes>()
                && ALL.has_listener::<ProtocolChanges>()
                && ALL.has_listener::<PrincipalEnded>()
                && ALL.has_listener::<AccountNarrowed>()
                && ALL.has_listener::<UserNarrowed>()
        );
        assert!(!ALONE.has_listener::<PrincipalEnded>());
    }

    /// Proves EN-3.
    #[test]
    fn a_table_that_takes_nothing_away_says_why() {
        for right in ALL.iter().flat_map(|area| area.rights) {
            if let Ends::Never(why) = right.ends {
                assert!(why.len() > 10, "{}", right.table.table);
            }
        }
    }

    /// Proves EN-3.
    #[test]
    fn no_word_has_two_ways_of_being_taken_away_again() {
        let words: Vec<&str> = ALL.retakings().map(|retaking| retaking.what).collect();
        let unique: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(words.len(), unique.len());
    }
}
