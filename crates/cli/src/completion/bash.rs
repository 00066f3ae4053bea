//! Dynamic completion for bash. Bash splits words at `=` and `:`, so that `key=value` is passed as three words: the script joins
//! them again, and removes from each candidate the prefix that bash does not replace.

use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap_complete::env::{Bash as ClapBash, EnvCompleter};

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
    local IFS=$'\013'
    COMPREPLY=( $(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$cword" COMPLETE="bash" COMPLETER -- "${words[@]}" 2> /dev/null) )
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
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        ClapBash.write_complete(cmd, args, current_dir, buf)
    }
}
