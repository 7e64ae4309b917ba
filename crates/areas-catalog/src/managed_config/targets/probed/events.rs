//! Hooks of all events, by what was seen of one: the probes are about a single event.

use super::{Member, UNKNOWN};

/// The event of hooks that the probes are about.
const PROBED_EVENT: &str = "PreToolUse";

/// Lets the other events have what is known of the probed one.
pub(super) fn share(client: &str, enforced: &mut Member, defaults: Option<&mut Member>) {
    if client != "codex" {
        enforced.share_names_of_hooks();
        return;
    }
    enforced.share_events();
    if let (Some(defaults), Some(hooks)) = (defaults, enforced.named.get("hooks")) {
        let own = defaults.named.entry("hooks".to_owned()).or_default();
        let events = hooks
            .named
            .iter()
            .filter(|(name, _)| hooks.names.contains_key(*name));
        events.for_each(|(name, event)| own.named.entry(name.clone()).or_default().learn(event));
    }
}

impl Member {
    /// Judges every event of hooks by what was seen of the one that was probed: Codex reads all of them in one form.
    fn share_events(&mut self) {
        let Some(hooks) = self.named.get_mut("hooks") else {
            return;
        };
        let Some(probed) = hooks.named.get(PROBED_EVENT).cloned() else {
            return;
        };
        let events: Vec<String> = hooks
            .names
            .keys()
            .filter(|name| *name != UNKNOWN)
            .cloned()
            .collect();
        for event in events {
            hooks.named.entry(event).or_insert_with(|| probed.clone());
        }
    }

    /// Lets every event of hooks have the names of the one that was probed, and nothing else of it: Claude Code refuses there
    /// what it leaves out elsewhere.
    fn share_names_of_hooks(&mut self) {
        let Some(hooks) = self.named.get_mut("hooks") else {
            return;
        };
        let Some(probed) = hooks.named.get(PROBED_EVENT).cloned() else {
            return;
        };
        hooks.any.get_or_insert_default().learn_names(&probed);
    }

    /// Takes over what is known of another place and not of this one.
    fn learn(&mut self, other: &Self) {
        for (name, member) in &other.named {
            self.named.entry(name.clone()).or_default().learn(member);
        }
        if let Some(member) = &other.any {
            self.any.get_or_insert_default().learn(member);
        }
        if let Some(member) = &other.item {
            self.item.get_or_insert_default().learn(member);
        }
        for (mine, others) in [
            (&mut self.types, &other.types),
            (&mut self.words, &other.words),
            (&mut self.forms, &other.forms),
            (&mut self.names, &other.names),
        ] {
            for (tried, verdict) in others {
                mine.entry(tried.clone()).or_insert(*verdict);
            }
        }
    }

    fn learn_names(&mut self, other: &Self) {
        for (name, member) in &other.named {
            self.named.entry(name.clone()).or_default().learn_names(member);
        }
        if let Some(member) = &other.any {
            self.any.get_or_insert_default().learn_names(member);
        }
        if let Some(member) = &other.item {
            self.item.get_or_insert_default().learn_names(member);
        }
    }
}
