//! The errors of the macro. Its expansion is tested in `toolhub-native`, where it can be compiled.

use proc_macro2::TokenStream;

use crate::expand::expand;

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap()
}

#[test]
fn rejects_invalid_tools_with_messages() {
    #[track_caller]
    fn check(options: &str, item: &str, expect: &[&str]) {
        let error = expand(tokens(options), tokens(item)).unwrap_err();
        let messages: Vec<String> = error.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(messages, expect, "{options} {item}");
    }
    let fine = "async fn f() {}";
    let known =
        "there are `name`, `title`, `read_only`, `destructive`, `idempotent`, `open_world` and `crate`";
    check("readonly", fine, &[&format!("unknown option `readonly`: {known}")]);
    check("read_only, read_only = false", fine, &["`read_only` is given twice"]);
    check("read_only = \"yes\"", fine, &["write `read_only` or `read_only = false`"]);
    check("name", fine, &["write `name = \"…\"`"]);
    let name_rule = "a tool's name has 1 to 64 of the characters `A-Z a-z 0-9 _ - .`";
    check("name = \"\"", fine, &[name_rule]);
    check("name = \"天气\"", fine, &[name_rule]);
    check("title = true", fine, &["write `title = \"…\"`"]);
    check("crate = \"x\"", fine, &["write `crate = path::to::module`"]);

    check("", "fn f() {}", &["a tool is an async function: write `async fn f`"]);
    check("", "struct F;", &["`#[tool]` needs an async function"]);
    check("", "async fn f<T>(a: T) {}", &["a tool has no generics: its schema needs one type"]);
    check("", "async fn f(a: impl Into<u8>) {}", &["a tool has no generics: its schema needs one type"]);
    check("", "async unsafe fn f() {}", &["a tool is safe to call: put the `unsafe` block inside"]);
    let receiver = "a tool has no `self`: give it what it needs with `#[state] name: &T`";
    check("", "async fn f(&self) {}", &[receiver]);
    let pattern = "a parameter of a tool is a plain name: it is what callers write";
    check("", "async fn f((a, b): (u8, u8)) {}", &[pattern]);
    check("", "async fn f(_: u8) {}", &[pattern]);
    check("", "async fn f(ref a: u8) {}", &[pattern]);
    let borrow = "an argument must own its data: write `String` for `&str`, or mark the parameter `#[state]`";
    check("", "async fn f(a: &str) {}", &[borrow]);
    check("", "async fn f(c: CallContext) {}", &["the context is borrowed: write `&CallContext`"]);
    check("", "async fn f(#[state] a: u8) {}", &["`#[state]` needs a type of the form `&T`"]);
    check("", "async fn f(#[state] a: &mut u8) {}", &["`#[state]` needs a type of the form `&T`"]);
    let both = "a tool has one state: put both in one struct";
    check("", "async fn f(#[state] a: &u8, #[state] b: &u8) {}", &[both]);
    let meaning = "state is not an argument: this has no meaning here";
    check("", "async fn f(#[state] #[default(1)] a: &u8) {}", &[meaning]);
    let value = "write the value in parentheses: `#[default(10)]`";
    check("", "async fn f(#[default] a: u8) {}", &[value]);
    check("", "async fn f(#[default(1, 2)] a: u8) {}", &["`#[default(…)]` takes one value"]);
    let attribute =
        "unknown attribute: a parameter takes `#[doc]`, `#[default(…)]`, `#[state]` and `#[schemars(…)]`";
    check("", "async fn f(#[defualt(1)] a: u8) {}", &[attribute]);
    check(
        "",
        "async fn f(#[doc = include_str!(\"x\")] a: u8) {}",
        &["write the text here: `#[tool]` must see it"],
    );
    // All errors are reported at once.
    let not_async = "a tool is an async function: write `async fn f`";
    check("", "fn f(&self, _: u8) {}", &[not_async, receiver, pattern]);
}

#[test]
fn expansion_parses_as_rust() {
    let check = |options: &str, item: &str, expect: &[&str]| {
        let written = expand(tokens(options), tokens(item)).unwrap();
        let text = written.to_string();
        assert!(syn::parse2::<syn::File>(written).is_ok(), "{text}");
        for part in expect {
            assert!(text.contains(&tokens(part).to_string()), "`{part}` is not in {text}");
        }
    };
    check(
        "",
        "pub async fn f() {}",
        &["pub struct f ;", "pub async fn run ( ) { }", "::toolhub::__private::core"],
    );
    check("crate = crate::own", "async fn f() {}", &["crate::own::core::NativeTool for f"]);
    check(
        "",
        "pub(crate) async fn f(#[state] s: &S) {}",
        &["pub(crate) struct f (pub(crate) ::std::sync::Arc<S>);", "f::run(&self.0)"],
    );
    check(
        "",
        "#[cfg(unix)] #[must_use] async fn f(mut r#type: u8) -> u8 { 1 }",
        &["#[cfg(unix)] const _", "#[must_use]", "run(mut r#type: u8) -> u8"],
    );
}
