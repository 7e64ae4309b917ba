//! Where an attribute is sent, and by whom, as things are: what the reference of the language says, and what tells a policy that
//! waits for something that nobody sends there.
//!
//! Whoever asks `policies/decisions` may send any attribute of the catalogue at any occasion, and a decision takes what is sent. The
//! table here is about the hooks, gateways and receivers that this repository has or describes.

use crate::catalogue::Field;
use crate::family::{Family, Occasion};

/// Who sends an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// The hook of an agent (Claude Code, Codex, Gemini CLI) that asks before something happens.
    Hook,
    /// Telemetry of Claude Code.
    ClaudeCode,
    /// Telemetry of Codex.
    Codex,
    /// Telemetry of an SDK that follows OpenTelemetry's conventions for generative AI.
    GenAi,
    /// A gateway that asks with the scope `policies:decide`, or with a skill's gateway token.
    Gateway,
    /// A service of your own: a classifier, an endpoint agent, a provider's export.
    Own,
}

impl Sender {
    /// Returns the words of the reference.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hook => "hooks",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::GenAi => "OpenTelemetry",
            Self::Gateway => "gateways",
            Self::Own => "services of your own",
        }
    }
}

use Occasion::{PostTool, PreTool, Prompt, Resource, Response, Skill};
use Sender::{ClaudeCode, Codex, Gateway, GenAi, Hook, Own};

const CONTENT: &[Occasion] = &[Prompt, PreTool, PostTool, Response];
const CALLS: &[Occasion] = &[PreTool, PostTool];
const ACCESS: &[Occasion] = &[Occasion::InlineHook, Occasion::EndpointRoute, Occasion::Provider];

impl Field {
    /// Returns the occasions of a family at which somebody sends the attribute; none where the family does not have it.
    pub fn occasions(self, family: Family) -> impl Iterator<Item = Occasion> {
        let (content, _) = self.usual();
        let all: &[Occasion] = match family {
            Family::Content => content,
            Family::Access => ACCESS,
            Family::Resource => &[Resource],
            Family::SkillAcl => &[Skill],
        };
        let is_there = self.is_in(family) || self.is_of_scopes(family);
        all.iter().copied().filter(move |_| is_there)
    }

    /// Returns who sends the attribute in events of a family.
    pub fn senders(self, family: Family) -> &'static [Sender] {
        match family {
            Family::Content => self.usual().1,
            Family::Access => &[Gateway, Own],
            Family::Resource | Family::SkillAcl => &[Gateway],
        }
    }

    /// Returns whether somebody sends the attribute at one of these occasions (bits of `Occasion`).
    pub(crate) fn is_sent_at(self, family: Family, occasions: u16) -> bool {
        self.occasions(family)
            .any(|occasion| occasion.bit() & occasions != 0)
    }

    fn is_of_scopes(self, family: Family) -> bool {
        match self {
            Self::SKILL | Self::USER | Self::GROUPS => family == Family::SkillAcl,
            Self::AGENT | Self::PRODUCT => family == Family::Content,
            _ => false,
        }
    }

    /// Where it is sent in events of content, and by whom.
    fn usual(self) -> (&'static [Occasion], &'static [Sender]) {
        let name = self.name();
        match name {
            "request.prompt" => (&[Prompt], &[Hook, ClaudeCode, Codex, GenAi, Gateway]),
            "response.content" => (&[Response], &[ClaudeCode, Codex, GenAi, Gateway]),
            "tool.result" => (&[PostTool], &[Hook, ClaudeCode, Codex, GenAi, Gateway]),
            "tool.id" | "tool.input" | "mcp.server_id" | "mcp.tool_id" => {
                (CALLS, &[Hook, ClaudeCode, Codex, GenAi, Gateway])
            }
            // They follow from the input, whoever sends it.
            _ if self.member_of_input().is_some() => (CALLS, &[Hook, ClaudeCode, Codex, GenAi, Gateway]),
            "mcp.remote_url" => (CALLS, &[Codex, Gateway]),
            "llm.model" | "llm.provider" => (CONTENT, &[ClaudeCode, Codex, GenAi, Gateway]),
            "llm.input_tokens" | "llm.output_tokens" => (&[Response], &[ClaudeCode, Codex, GenAi, Gateway]),
            "identity.user_id" => (CONTENT, &[Hook, ClaudeCode, Codex, GenAi, Gateway]),
            "identity.group_ids" => (CONTENT, &[Own]),
            "identity.service_account_id" | "agent.id" | "product.id" => (CONTENT, &[Hook, Gateway]),
            _ if name.starts_with("tool.") => (CALLS, &[Hook, Gateway]),
            _ if name.starts_with("mcp.") => (CALLS, &[Gateway]),
            _ => (CONTENT, &[Own]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_of_a_family_is_sent_somewhere_by_somebody() {
        for field in Field::all() {
            for family in Family::ALL.into_iter().filter(|family| field.is_in(*family)) {
                assert!(field.occasions(family).next().is_some(), "{}", field.name());
                assert!(!field.senders(family).is_empty(), "{}", field.name());
                assert!(
                    field
                        .occasions(family)
                        .all(|occasion| occasion.family() == family)
                );
            }
        }
    }
}
