//! How people and their machines are shown to others (F5.2): what is kept today, and nothing else.
//!
//! Refused by its name, because nothing would read it: what is done with machines that people enrol themselves (ADR 0120).

use provost_kernel::error::{Code, Error, Result};
use provost_kernel::patch::RequiredChange;
use provost_kernel::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

word! {
    /// How people are shown in answers about machines and about what is on them.
    pub enum People {
        /// By their ids of the directory.
        Directory = "directory",
        /// By a name that nobody can compute and that is another one in the next quarter; to themselves by their ids.
        Pseudonymous = "pseudonymous",
    }
}

word! {
    /// Whether names of machines are shown.
    pub enum HostNames {
        /// To whoever sees the machine.
        Show = "show",
        /// To the owner alone.
        Hide = "hide",
    }
}

word! {
    /// Whether names of projects are collected and shown.
    pub enum ProjectNames {
        /// A fingerprint.
        Hide = "hide",
        /// The folder's name.
        Show = "show",
    }
}

word! {
    /// What machines tell of the prompts that they judged.
    pub enum Prompts {
        /// None.
        Off = "off",
        /// All.
        Full = "full",
    }
}

word! {
    /// What machines tell of the arguments and the results of the tools whose calls they judged.
    pub enum ToolArguments {
        /// None.
        Nothing = "none",
        /// All.
        Full = "full",
    }
}

/// How people and their machines are shown to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["people", "hostNames", "projectNames", "prompts", "toolArguments"]))]
pub struct Privacy {
    /// How people are shown in answers about machines and about what is on them.
    pub people: People,
    /// Whether names of machines, and of the tokens by which they enrolled, are shown to others than their owners.
    pub host_names: HostNames,
    /// Whether machines say what folders of projects are called, and others see it.
    pub project_names: ProjectNames,
    /// What machines tell of the prompts that they judged. What a hook asks the server is told in whole.
    pub prompts: Prompts,
    /// What machines tell of the arguments and the results of the tools whose calls they judged. What a hook asks the server is told in whole.
    pub tool_arguments: ToolArguments,
}

impl Default for Privacy {
    fn default() -> Self {
        Self {
            people: People::Directory,
            host_names: HostNames::Show,
            project_names: ProjectNames::Hide,
            // F5.2, ADR 0137
            prompts: Prompts::Off,
            tool_arguments: ToolArguments::Nothing,
        }
    }
}

impl Privacy {
    /// Says whether people are shown by pseudonyms.
    pub fn is_pseudonymous(self) -> bool {
        self.people == People::Pseudonymous
    }

    /// Says whether names of machines are hidden.
    pub fn hides_names(self) -> bool {
        self.host_names == HostNames::Hide
    }

    /// Says whether names of projects are collected and shown.
    pub fn shows_projects(self) -> bool {
        self.project_names == ProjectNames::Show
    }

    /// Returns every member with its JSON Pointer.
    pub(super) fn members(self) -> [(&'static str, Value); 5] {
        [
            ("/fleet/privacy/people", self.people.as_str().into()),
            ("/fleet/privacy/hostNames", self.host_names.as_str().into()),
            ("/fleet/privacy/projectNames", self.project_names.as_str().into()),
            ("/fleet/privacy/prompts", self.prompts.as_str().into()),
            (
                "/fleet/privacy/toolArguments",
                self.tool_arguments.as_str().into(),
            ),
        ]
    }

    /// Says whether machines tell more than by others of what they judged.
    fn tells_more_than(self, old: Self) -> bool {
        self.prompts == Prompts::Full && old.prompts == Prompts::Off
            || self.tool_arguments == ToolArguments::Full && old.tool_arguments == ToolArguments::Nothing
    }

    /// Refuses what would promise more than it keeps, and what shows more of people than before and was not confirmed.
    ///
    /// Keeps SE-9.
    ///
    /// Errors: `InvalidDefinition`, `ConfirmationRequired`.
    pub(super) fn admit(self, old: Self, is_confirmed: bool) -> Result<()> {
        if self.is_pseudonymous() && !self.hides_names() {
            let message = "names of machines say whose they are: where people are pseudonymous, hostNames is hide; set both";
            return Err(Error::unfit("/fleet/privacy/hostNames", message));
        }
        if self.is_pseudonymous() && self.shows_projects() {
            let message = "people name folders, and a name may say whose it is: where people are pseudonymous, projectNames is hide; set both";
            return Err(Error::unfit("/fleet/privacy/projectNames", message));
        }
        let shows_more = old.is_pseudonymous() && !self.is_pseudonymous()
            || old.hides_names() && !self.hides_names()
            || !old.shows_projects() && self.shows_projects();
        if shows_more && !is_confirmed {
            let message = "people, names of machines or names of projects will be shown that were not, and every machine tells its person; say \
                           confirm: true";
            return Err(Error::new(Code::ConfirmationRequired, message));
        }
        if self.tells_more_than(old) && !is_confirmed {
            let message = "machines that judge will tell prompts, or arguments and results of tools, that they kept to themselves, and every machine \
                           tells its person; say confirm: true";
            return Err(Error::new(Code::ConfirmationRequired, message));
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct WantedPrivacy {
    /// How people are shown in answers about machines: by their ids, or by a pseudonym of the quarter, which needs `hostNames` to be
    /// `hide`.
    people: RequiredChange<People>,
    /// Whether names of machines and of enrolment tokens are shown to others than their owners.
    host_names: RequiredChange<HostNames>,
    /// Whether machines say what folders of projects are called: `hide`, or `show`, which is refused where people are pseudonymous.
    project_names: RequiredChange<ProjectNames>,
    /// What machines tell of prompts that they judged: `off`: that there was one.
    prompts: RequiredChange<Prompts>,
    /// What machines tell of arguments and results of tools: `none`: that there were some.
    tool_arguments: RequiredChange<ToolArguments>,
}

impl WantedPrivacy {
    /// Returns what `base` becomes with what the body names.
    pub(super) fn applied(&self, base: Privacy) -> Privacy {
        Privacy {
            people: *self.people.get().unwrap_or(&base.people),
            host_names: *self.host_names.get().unwrap_or(&base.host_names),
            project_names: *self.project_names.get().unwrap_or(&base.project_names),
            prompts: *self.prompts.get().unwrap_or(&base.prompts),
            tool_arguments: *self.tool_arguments.get().unwrap_or(&base.tool_arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Privacy = Privacy {
        people: People::Directory,
        host_names: HostNames::Show,
        project_names: ProjectNames::Hide,
        prompts: Prompts::Off,
        tool_arguments: ToolArguments::Nothing,
    };
    const NAMELESS: Privacy = Privacy {
        host_names: HostNames::Hide,
        ..OPEN
    };
    const PRIVATE: Privacy = Privacy {
        people: People::Pseudonymous,
        ..NAMELESS
    };

    /// Proves SE-9.
    #[test]
    fn people_are_shown_again_only_where_that_was_confirmed() {
        let code =
            |new: Privacy, old, is_confirmed| new.admit(old, is_confirmed).map_err(|error| error.code());
        for (new, old) in [(OPEN, NAMELESS), (OPEN, PRIVATE), (NAMELESS, PRIVATE)] {
            assert_eq!(code(new, old, false), Err(Code::ConfirmationRequired));
            assert_eq!(code(new, old, true), Ok(()));
            assert_eq!(code(old, new, false), Ok(()));
        }
        let half = Privacy {
            host_names: HostNames::Show,
            ..PRIVATE
        };
        let telling = Privacy {
            project_names: ProjectNames::Show,
            ..OPEN
        };
        for old in [OPEN, NAMELESS, PRIVATE] {
            assert_eq!(code(telling, old, false), Err(Code::ConfirmationRequired));
            assert_eq!(code(telling, old, true), Ok(()));
            let kept = Privacy {
                project_names: ProjectNames::Show,
                ..old
            };
            if old.is_pseudonymous() {
                assert_eq!(code(kept, telling, true), Err(Code::InvalidDefinition));
            }
        }
        for new in [OPEN, NAMELESS, PRIVATE, telling] {
            assert_eq!(
                code(new, telling, false),
                Ok(()),
                "what is hidden needs no confirm"
            );
        }
        for old in [OPEN, NAMELESS, PRIVATE] {
            assert_eq!(code(half, old, true), Err(Code::InvalidDefinition));
            assert_eq!(code(old, old, false), Ok(()));
        }
    }

    /// Proves SE-9.
    #[test]
    fn machines_tell_more_of_calls_only_where_that_was_confirmed() {
        let of = |prompts, tool_arguments| Privacy {
            prompts,
            tool_arguments,
            ..PRIVATE
        };
        let (off, full) = (Prompts::Off, Prompts::Full);
        let (nothing, all) = (ToolArguments::Nothing, ToolArguments::Full);
        let is_asked = |new: Privacy, old: Privacy| match new.admit(old, false) {
            Ok(()) => false,
            Err(error) => error.code() == Code::ConfirmationRequired,
        };
        let words = [of(off, nothing), of(off, all), of(full, nothing), of(full, all)];
        for new in words {
            for old in words {
                let is_more = new.prompts == full && old.prompts == off
                    || new.tool_arguments == all && old.tool_arguments == nothing;
                assert_eq!(is_asked(new, old), is_more, "{new:?} after {old:?}");
                assert!(new.admit(old, true).is_ok());
            }
        }
        assert_eq!(of(off, nothing), PRIVATE, "the least is the factory value");
        assert_eq!(
            (Privacy::default().prompts, Privacy::default().tool_arguments),
            (off, nothing)
        );
    }
}
