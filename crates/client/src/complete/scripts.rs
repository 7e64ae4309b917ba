//! What each shell reads: a few lines that ask the program.

use clap::ValueEnum;

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// Elvish.
    Elvish,
    /// PowerShell.
    #[value(name = "powershell")]
    PowerShell,
}

const BASH: &str = r#"# Completions of provost for bash.
_provost() {
    local word about
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        COMPREPLY+=("$word")
    done < <(provost __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _provost provost
"#;

const ZSH: &str = r#"#compdef provost
# Completions of provost for zsh.
_provost() {
    local -a found
    local line
    for line in "${(@f)$(provost __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#found )); then
        _describe provost found
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_provost" ]; then
    _provost "$@"
else
    compdef _provost provost
fi
"#;

const FISH: &str = r"# Completions of provost for fish.
function __provost_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (provost __complete -- $words[2..] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c provost -f -a '(__provost_complete)'
";

const ELVISH: &str = r#"# Completions of provost for Elvish.
use str
set edit:completion:arg-completer[provost] = {|@words|
    provost __complete -- (all $words[1..]) | from-lines | each {|line|
        var parts = [(str:split "\t" $line)]
        edit:complex-candidate $parts[0] &display=(str:join "  " $parts)
    }
}
"#;

const POWERSHELL: &str = r#"# Completions of provost for PowerShell.
Register-ArgumentCompleter -Native -CommandName provost -ScriptBlock {
    param($word, $ast, $position)
    $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if (-not $word) { $words += '' }
    provost __complete -- @words 2>$null | ForEach-Object {
        $name, $about = $_ -split "`t", 2
        if (-not $about) { $about = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
"#;

/// Returns the script of a shell.
pub fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        Shell::Elvish => ELVISH,
        Shell::PowerShell => POWERSHELL,
    }
}
