//! The clients and systems whose files are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program in which people use AI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code with Copilot, and Copilot's command line.
    Vscode,
    /// Windsurf.
    Windsurf,
    /// Gemini CLI.
    GeminiCli,
    /// Zed.
    Zed,
    /// Goose.
    Goose,
    /// `OpenCode`.
    Opencode,
    /// Continue.
    Continue,
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 11] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::Vscode,
        Self::Windsurf,
        Self::GeminiCli,
        Self::Zed,
        Self::Goose,
        Self::Opencode,
        Self::Continue,
    ];

    /// Returns its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::ClaudeDesktop => "claude_desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
            Self::GeminiCli => "gemini_cli",
            Self::Zed => "zed",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Continue => "continue",
        }
    }

    /// Returns the catalogue key and the name of the product, where events name it: the key is what hooks say (`product.id`).
    pub const fn product(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode => Some(("anthropic/claude-code", "Claude Code")),
            Self::Codex => Some(("openai/codex", "Codex")),
            Self::GeminiCli => Some(("google/gemini-cli", "Gemini CLI")),
            _ => None,
        }
    }
}

/// The system whose paths are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl Platform {
    /// The system that this was built for.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::Macos
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };

    /// Returns the folder below a home in which programs keep their settings.
    pub(crate) const fn settings(self) -> &'static str {
        match self {
            Self::Linux => ".config",
            Self::Macos => "Library/Application Support",
            Self::Windows => "AppData/Roaming",
        }
    }
}
