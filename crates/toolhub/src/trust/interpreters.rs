//! How interpreters are started with a script: the options allowed before it. Options that take code are not allowed.

/// Python modules that run code or files given as arguments or found in the folder.
const RUNNING_MODULES: [&str; 16] = [
    "timeit", "pdb", "bdb", "unittest", "pytest", "nose", "runpy", "code", "doctest", "trace", "profile",
    "cProfile", "coverage", "debugpy", "pip", "idlelib",
];
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
    /// The option that is followed by a module or an archive.
    module: Option<&'static str>,
    /// Whether an argument that is not an option is a script.
    takes_script: bool,
}

const NO_OPTIONS: Form = Form {
    names: &[
        "lua",
        "luajit",
        "julia",
        "elixir",
        "groovy",
        "scala",
        "racket",
        "guile",
        "gjs",
        "clojure",
        "tclsh",
        "wish",
        "expect",
        "sbcl",
        "swift",
        "runghc",
        "erl",
        "escript",
        "octave",
        "osascript",
        "ipython",
        "micropython",
    ],
    letters: "",
    flags: &[],
    prefixes: &[],
    valued: &[],
    module: None,
    takes_script: true,
};
static FORMS: [Form; 9] = [
    Form {
        names: &["python", "pythonw", "pypy", "py"],
        letters: "uBsSEIOqvbdP",
        flags: &["-Wignore", "-Xutf8", "-Xdev"],
        module: Some("-m"),
        ..NO_OPTIONS
    },
    Form {
        names: &["node", "nodejs", "tsx", "ts-node"],
        flags: &[
            "--no-warnings",
            "--enable-source-maps",
            "--esm",
            "--transpile-only",
            "--no-deprecation",
            "--expose-gc",
        ],
        prefixes: &[
            "--max-old-space-size=",
            "--experimental-",
            "--trace-",
            "--inspect",
            "--import=",
            "--require=",
            "--loader=",
            "--env-file=",
            "--conditions=",
            "--disable-warning=",
            "--unhandled-rejections=",
            "--dns-result-order=",
            "--stack-size=",
            "--use-",
            "--preserve-symlinks",
            "--tls-",
            "--no-experimental-",
        ],
        valued: &[
            "--import",
            "--require",
            "-r",
            "--loader",
            "--conditions",
            "-C",
            "--env-file",
            "--tsconfig",
            "--project",
        ],
        ..NO_OPTIONS
    },
    Form { names: &["perl"], letters: "wWT", prefixes: &["-I"], valued: &["-I"], ..NO_OPTIONS },
    Form { names: &["ruby"], letters: "wW", prefixes: &["-I"], valued: &["-I"], ..NO_OPTIONS },
    Form { names: &["php"], letters: "qn", valued: &["-c"], module: Some("-f"), ..NO_OPTIONS },
    Form { names: &["Rscript"], flags: &["--vanilla"], prefixes: &["--no-"], ..NO_OPTIONS },
    Form {
        names: &["java"],
        flags: &["-server", "--enable-preview"],
        prefixes: &["-Xmx", "-Xms", "-Xss", "-XX:+", "-XX:-", "-D"],
        module: Some("-jar"),
        takes_script: false,
        ..NO_OPTIONS
    },
    Form {
        names: &["deno", "bun"],
        flags: &["--bun", "--silent", "--smol", "--quiet", "-q", "-A", "--hot", "--watch"],
        prefixes: &["--allow-", "--cwd=", "--config="],
        ..NO_OPTIONS
    },
    NO_OPTIONS,
];
/// Arguments of `deno` and `bun` that take code, at any position.
const DENO_CODE: [&str; 6] = ["eval", "repl", "-e", "--eval", "-p", "--print"];

/// The names of all interpreters.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    FORMS.iter().flat_map(|form| form.names.iter().copied())
}

/// Looks up an interpreter by its name without a version.
pub(super) fn form_of(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.names.contains(&name))
}

impl Form {
    /// Whether the arguments are allowed options followed by a script or module.
    pub(super) fn accepts(&self, rest: &[String]) -> bool {
        if self.names.contains(&"deno") && rest.iter().any(|word| is_deno_code(word)) {
            return false;
        }
        let mut words = rest.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let letters = word.strip_prefix('-').filter(|rest| !rest.is_empty());
            let in_letters = letters.is_some_and(|rest| rest.chars().all(|c| self.letters.contains(c)));
            let has_prefix = || self.prefixes.iter().any(|head| word.starts_with(head));
            if self.module == Some(word) {
                let module = words.next().unwrap_or_default();
                let top = module.split('.').next().unwrap_or_default();
                return !module.starts_with('-') && !module.is_empty() && !RUNNING_MODULES.contains(&top);
            }
            if self.valued.contains(&word) {
                // The value is a plain argument; the file that it names is bound.
                words.next();
            } else if !word.starts_with(['-', '+']) {
                return self.takes_script;
            } else if !(in_letters || self.flags.contains(&word) || has_prefix()) {
                return false;
            }
        }
        // Without a script the interpreter reads standard input, which is controlled by the client.
        true
    }
}

fn is_deno_code(word: &str) -> bool {
    DENO_CODE.contains(&word.split('=').next().unwrap_or(word))
        || (word.starts_with("-e") && !word.starts_with("--"))
}
