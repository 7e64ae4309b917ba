//! What kinds of policies and of judged requests there are.
//!
//! An occasion is the place where a request is judged; it belongs to one family, and a policy of another
//! family never sees it.

use serde::{Deserialize, Serialize};

/// A family of policies. Source: client contract §3.5 to §3.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Prompts, tool calls, tool results, responses.
    Content,
    /// Use of an AI product or provider at all.
    Access,
    /// Requests to databases and HTTP resources behind a gateway.
    Resource,
    /// Who may use a skill.
    SkillAcl,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Content, Self::Access, Self::Resource, Self::SkillAcl];

    /// Returns the family's word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Access => "access",
            Self::Resource => "resource",
            Self::SkillAcl => "skill_acl",
        }
    }

    /// Returns the bit that stands for the family in a set of families.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the occasions at which the family judges.
    pub(crate) fn occasions(self) -> u16 {
        let bits = Occasion::ALL.iter().filter(|o| o.family() == self);
        bits.fold(0, |bits, o| bits | o.bit())
    }
}

/// The place where a request is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// Content: a prompt, before the model sees it.
    Prompt,
    /// Content: a tool call, before the tool runs.
    PreTool,
    /// Content: a tool's result, before the model sees it.
    PostTool,
    /// Content: the model's response.
    Response,
    /// Access: a hook inside the product.
    InlineHook,
    /// Access: the route of an endpoint's traffic.
    EndpointRoute,
    /// Access: the provider's own control.
    Provider,
    /// Resource: a request through a resource gateway.
    Resource,
    /// Skill ACL: the use of a skill.
    Skill,
}

impl Occasion {
    /// Every occasion.
    pub const ALL: [Self; 9] = [
        Self::Prompt,
        Self::PreTool,
        Self::PostTool,
        Self::Response,
        Self::InlineHook,
        Self::EndpointRoute,
        Self::Provider,
        Self::Resource,
        Self::Skill,
    ];

    /// Returns the occasion's word: those of `evaluateOn` and `enforcementSurfaces`, `resource`, `skill`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::PreTool => "pre_tool",
            Self::PostTool => "post_tool",
            Self::Response => "response",
            Self::InlineHook => "inline_hook",
            Self::EndpointRoute => "endpoint_route",
            Self::Provider => "provider",
            Self::Resource => "resource",
            Self::Skill => "skill",
        }
    }

    /// Returns the occasion of a family that has this word.
    pub fn named(family: Family, word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|o| o.family() == family && o.word() == word)
    }

    /// Returns the family that judges here.
    pub const fn family(self) -> Family {
        match self {
            Self::Prompt | Self::PreTool | Self::PostTool | Self::Response => Family::Content,
            Self::InlineHook | Self::EndpointRoute | Self::Provider => Family::Access,
            Self::Resource => Family::Resource,
            Self::Skill => Family::SkillAcl,
        }
    }

    /// Returns the bit that stands for the occasion in a set of occasions.
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }
}
