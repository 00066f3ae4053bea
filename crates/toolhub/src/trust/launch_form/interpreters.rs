//! How interpreters are started with a script: the options allowed before it. Options that take code, tasks or configuration
//! files are not allowed, and neither are interpreters that read files of their working directory.

use super::words::{LaunchContext, are_plain};

/// The arguments before the script of an interpreter.
pub(super) struct Form {
    /// The names of the interpreters, without versions.
    names: &'static [&'static str],
    /// Single-letter options without a value, which may be combined.
    letters: &'static str,
    /// Other options without a value.
    flags: &'static [&'static str],
    /// Prefixes of options that contain their value.
    prefixes: &'static [&'static str],
    /// Options whose value is the next argument.
    valued: &'static [&'static str],
    /// The option that is followed by an archive or script.
    file: Option<&'static str>,
    /// The option that is followed by a module.
    module: Option<&'static str>,
    /// Whether an argument that is not an option is a script.
    takes_script: bool,
    /// An option without which the interpreter loads files of its working directory.
    required: Option<&'static str>,
}

const NO_OPTIONS: Form = Form {
    names: &["lua", "luajit"],
    letters: "",
    flags: &[],
    prefixes: &[],
    valued: &[],
    file: None,
    module: None,
    takes_script: true,
    required: None,
};
static FORMS: [Form; 10] = [
    Form {
        names: &["python", "pythonw", "pypy", "py"],
        letters: "uBsSEIOqvbdP",
        flags: &["-Wignore", "-Xutf8", "-Xdev"],
        module: Some("-m"),
        ..NO_OPTIONS
    },
    Form {
        names: &["node", "nodejs"],
        flags: &[
            "--enable-source-maps",
            "--experimental-json-modules",
            "--experimental-sqlite",
            "--experimental-strip-types",
            "--experimental-transform-types",
            "--experimental-vm-modules",
            "--expose-gc",
            "--no-deprecation",
            "--no-experimental-fetch",
            "--no-warnings",
            "--preserve-symlinks",
            "--preserve-symlinks-main",
            "--throw-deprecation",
            "--trace-deprecation",
            "--trace-uncaught",
            "--trace-warnings",
            "--use-bundled-ca",
            "--use-openssl-ca",
            "--use-system-ca",
        ],
        prefixes: &[
            "--conditions=",
            "--disable-warning=",
            "--dns-result-order=",
            "--import=",
            "--loader=",
            "--max-old-space-size=",
            "--require=",
            "--stack-size=",
            "--unhandled-rejections=",
        ],
        valued: &["--import", "--require", "-r", "--loader", "--conditions", "-C"],
        ..NO_OPTIONS
    },
    Form { names: &["tsx"], flags: &["--no-warnings", "--no-cache"], ..NO_OPTIONS },
    Form { names: &["perl"], letters: "wWT", prefixes: &["-I"], valued: &["-I"], ..NO_OPTIONS },
    Form { names: &["ruby"], letters: "wW", prefixes: &["-I"], valued: &["-I"], ..NO_OPTIONS },
    Form { names: &["php"], letters: "qn", file: Some("-f"), ..NO_OPTIONS },
    // R runs `.Rprofile` of its working directory, which sources further files.
    Form { names: &["Rscript"], flags: &["--vanilla"], required: Some("--vanilla"), ..NO_OPTIONS },
    Form {
        names: &["java"],
        flags: &["-server", "--enable-preview"],
        prefixes: &["-Xmx", "-Xms", "-Xss", "-D"],
        file: Some("-jar"),
        takes_script: false,
        ..NO_OPTIONS
    },
    Form {
        names: &["deno"],
        flags: &["-A", "-q", "--quiet", "--no-check", "--no-prompt", "--no-config", "--cached-only"],
        prefixes: &["--allow-", "--deny-"],
        ..NO_OPTIONS
    },
    NO_OPTIONS,
];
/// Options of Python that remove the working directory from the folders in which modules are found.
const ISOLATED: [char; 2] = ['I', 'P'];
/// Extensions of scripts: other words are names of tasks to `deno` and `bun`.
const SCRIPTS: [&str; 9] = ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "py"];

/// Looks up an interpreter by its name without a version.
pub(super) fn form_of(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.names.contains(&name))
}

/// Whether a word is a file with an extension of scripts.
pub(super) fn is_script(word: &str) -> bool {
    !word.contains("://")
        && !word.starts_with('-')
        && word.rsplit_once('.').is_some_and(|(name, ending)| !name.is_empty() && SCRIPTS.contains(&ending))
}

/// Whether the value of `NODE_OPTIONS` consists of options that are allowed before a script.
pub(super) fn are_node_options(value: &str, context: &LaunchContext<'_>) -> bool {
    let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
    are_plain(&words, context) && form_of("node").is_some_and(|form| form.are_options(&words, context))
}

impl Form {
    /// Whether the arguments are allowed options followed by a script or module of the project, or a script elsewhere.
    pub(super) fn accepts(&self, rest: &[String], context: &LaunchContext<'_>) -> bool {
        let mut words = rest.iter().map(String::as_str);
        let mut is_isolated = false;
        let mut missing = self.required;
        while let Some(word) = words.next() {
            let letters = word.strip_prefix('-').filter(|rest| !rest.is_empty());
            let in_letters = letters.is_some_and(|rest| rest.chars().all(|c| self.letters.contains(c)));
            let has_prefix = || self.prefixes.iter().any(|head| word.starts_with(head));
            if self.module == Some(word) {
                let module = words.next().unwrap_or_default();
                // A module elsewhere imports others, also of the standard library, from the working directory first.
                return is_module(module) && (is_isolated || context.has_module(module));
            }
            if self.file == Some(word) {
                return words.next().is_some_and(|file| is_file(file, context));
            }
            if self.valued.contains(&word) {
                // The value is a plain argument; the file that it names is bound.
                if words.next().is_none_or(|value| value.starts_with('-')) {
                    return false;
                }
            } else if !word.starts_with(['-', '+', '@']) {
                return self.takes_script
                    && missing.is_none()
                    && (is_file(word, context) || self.names.contains(&"deno"));
            } else if in_letters {
                is_isolated |= word.contains(ISOLATED);
            } else if !(self.flags.contains(&word) || has_prefix()) {
                return false;
            }
            missing = missing.filter(|required| *required != word);
        }
        // Without a script the interpreter reads standard input, which is controlled by the client.
        missing.is_none()
    }

    /// Whether all words are options that are allowed before a script.
    pub(super) fn are_options(&self, words: &[String], context: &LaunchContext<'_>) -> bool {
        let mut script = words.to_vec();
        script.push("script".to_owned());
        words.iter().all(|word| word != "-m")
            && self.accepts(&script, context)
            && words.iter().enumerate().all(|(at, word)| {
                word.starts_with('-')
                    || at
                        .checked_sub(1)
                        .and_then(|at| words.get(at))
                        .is_some_and(|word| self.valued.contains(&word.as_str()))
            })
    }
}

/// Whether a word is a script of the project. A script elsewhere is a program that is not known.
fn is_file(word: &str, context: &LaunchContext<'_>) -> bool {
    !word.is_empty() && !word.starts_with(['-', '+', '@']) && context.is_script_of_project(word)
}

fn is_module(module: &str) -> bool {
    !module.is_empty() && module.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}
