//! Functions that fend lacks, and functions with several arguments.

/// Functions of one argument: fend's, and those implemented here.
const SINGLE: &str = "abs acos acosh arg asin asinh atan atanh cbrt ceil conjugate cos cosh exp factorial fib fibonacci \
     floor imag ln log10 log2 not real sin sinh sqrt tan tanh";

/// Functions with comma-separated arguments.
const SEVERAL: &str = "average avg binomial comb gcd hypot lcm log max mean min mod ncr npr perm pow power prod product \
     round sum";

/// The names of all functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SINGLE.split_whitespace().chain(SEVERAL.split_whitespace())
}

/// The canonical name of a function.
pub(super) fn known(word: &str) -> Option<&'static str> {
    let word = match word {
        "arcsin" => "asin",
        "arccos" => "acos",
        "arctan" => "atan",
        "ceiling" => "ceil",
        "lg" => "log10",
        "re" => "real",
        "im" => "imag",
        "平均" => "avg",
        "choose" => "comb",
        "permute" => "perm",
        other => other,
    };
    names().find(|name| *name == word)
}

/// Whether commas separate the function's arguments.
pub(super) fn takes_several(name: &str) -> bool {
    SEVERAL.split_whitespace().any(|several| several == name)
}

/// Whether a function may precede its argument without parentheses, as in `sqrt 2`. `min` is a minute then.
pub(super) fn is_prefix(word: &str) -> bool {
    known(word).is_some_and(|name| !takes_several(name) || name == "log") && word != "factorial"
}
