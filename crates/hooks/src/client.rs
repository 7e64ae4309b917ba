//! The clients, by the words of the command line.

/// A client that asks its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Gemini];

    /// Returns the word of the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the client of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.word() == word)
    }

    /// Returns the name that people know.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Returns the word of the inventory and of coverage.
    pub const fn inventory(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::Gemini => "gemini_cli",
        }
    }

    /// Returns what policies call the product (`product.id`).
    pub const fn product(self) -> &'static str {
        match self {
            Self::ClaudeCode => "anthropic/claude-code",
            Self::Codex => "openai/codex",
            Self::Gemini => "google/gemini-cli",
        }
    }
}

/// What becomes of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is obeyed, and where there is none, nothing runs.
    Enforce,
    /// It is recorded, and everything runs.
    Monitor,
}

impl Mode {
    /// Returns the word of the command line and of a request for decisions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Monitor => "monitor",
        }
    }

    /// Returns the mode of a word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Enforce, Self::Monitor]
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}
