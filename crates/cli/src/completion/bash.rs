//! Completion for bash. Bash inserts a candidate of a function as it is, so that a file name could contain a command: every
//! candidate is quoted here. Bash splits words at `=` and `:`, so that `key=value` is passed as three words: the script joins
//! them again, and removes from each candidate the prefix that bash does not replace.

use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap_complete::env::{Bash as ClapBash, EnvCompleter};

use crate::completion::values::is_plain_character;

/// The registration script. `COMPLETER` is replaced by the quoted program.
const SCRIPT: &str = r#"
_toolhub_complete() {
    local line=$COMP_LINE rest word i cword=0
    local words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        rest=${line#"${line%%[![:space:]]*}"}
        if ((i > 0)) && [[ $rest == "$line" ]]; then
            words[cword]+=$word
        else
            ((i > 0)) && ((++cword))
            words[cword]=$word
        fi
        line=${rest#"$word"}
    done
    local replaced=${COMP_WORDS[COMP_CWORD]}
    [[ $replaced == [=:]* ]] && replaced=
    local prefix=${words[cword]%"$replaced"}
    local found
    found=$(_CLAP_IFS=$'\013' _CLAP_COMPLETE_INDEX="$cword" COMPLETE="bash" COMPLETER -- "${words[@]}" 2> /dev/null)
    # `read` splits the candidates without expanding patterns in them.
    COMPREPLY=()
    [[ -n $found ]] && IFS=$'\013\n' read -r -d '' -a COMPREPLY <<< "$found"
    COMPREPLY=( "${COMPREPLY[@]#"$prefix"}" )
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} != *[=/:] ]]; then
        compopt +o nospace 2> /dev/null
    fi
}
complete -o nospace -o bashdefault -F _toolhub_complete BIN
"#;

pub(crate) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        _var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let completer = format!("'{}'", completer.replace('\'', r"'\''"));
        let script = SCRIPT.replace("BIN", bin).replace("COMPLETER", &completer);
        buf.write_all(script.trim_start().as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        mut args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let index = variable("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse::<usize>().ok());
        let mut in_home = false;
        if let Some(word) = index.and_then(|index| args.get_mut(index)) {
            in_home = word.to_str().is_some_and(|word| word.starts_with("~/"));
            if let Some(text) = word.to_str().and_then(unquoted) {
                *word = text.into();
            }
        }
        let separator = variable("_CLAP_IFS").unwrap_or_else(|| "\n".to_owned());
        let mut written = Vec::new();
        ClapBash.write_complete(cmd, args, current_dir, &mut written)?;
        let written = String::from_utf8_lossy(&written);
        let quoted: Vec<String> =
            written.split(separator.as_str()).map(|candidate| quoted(candidate, in_home)).collect();
        buf.write_all(quoted.join(&separator).as_bytes())
    }
}

/// A word that bash reads as this text. Contains no control characters. `in_home` keeps a `~/` at its beginning.
fn quoted(text: &str, in_home: bool) -> String {
    let (kept, rest) = match text.strip_prefix("~/") {
        Some(rest) if in_home => ("~/", rest),
        _ => ("", text),
    };
    let mut word = kept.to_owned();
    for character in rest.chars() {
        if !is_plain_character(character) {
            word.push('\\');
        }
        word.push(character);
    }
    word
}

/// The text of a word that was completed in part, as `quoted` writes it; `None` for words with quotation marks.
fn unquoted(word: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            '"' | '\'' => return None,
            plain => text.push(plain),
        }
    }
    Some(text)
}

/// The static script with the file completion of bash itself, which quotes names, in place of its unquoted lists of files.
pub(crate) fn with_quoted_files(script: &str) -> String {
    script.replace(r#"COMPREPLY=($(compgen -f "${cur}"))"#, "COMPREPLY=()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_every_character_that_bash_interprets() {
        let check = |text: &str, in_home: bool, expect: &str| assert_eq!(quoted(text, in_home), expect);
        check("toolhub.toml", false, "toolhub.toml");
        check("key=值", false, "key=值");
        check("a;id>b", false, r"a\;id\>b");
        check("$(id)`id`", false, r"\$\(id\)\`id\`");
        check("a b'c\"d\\e", false, r#"a\ b\'c\"d\\e"#);
        check("[x]*?{a,b}!#&|<", false, r"\[x\]\*\?\{a,b\}\!\#\&\|\<");
        check("~/my notes", true, r"~/my\ notes");
        check("~/my notes", false, r"\~/my\ notes");
        for text in ["a;id>b", "a b'c\"d\\e", "~", "值", ""] {
            assert_eq!(unquoted(&quoted(text, false)).as_deref(), Some(text));
        }
        assert_eq!((unquoted("\"a b"), unquoted("'a")), (None, None));
    }
}
