//! Finds suspicious contents of a workspace, for its owner to review before trusting it.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_engine::definition_scan::{FindingKind, escape_invisible};
use url::{Host, Url};

use super::{FolderReview, ReviewedAddress, ReviewedProgram};
use crate::skills::{scan_text, split_text};
use crate::trust::files;
use crate::trust::launch::tree::INSTALLED;
use crate::trust::launch_form::LaunchScope;
use crate::trust::launch_form::loader_variables::is_loader;
use crate::trust::scan::{FolderScan, WorkspacePart};

/// The maximum number of findings in texts of skills and in files. Those of programs and addresses are all shown.
const MAX_FINDINGS: usize = 40;
const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell"];
const INTERPRETERS: [&str; 7] = ["python", "node", "perl", "ruby", "deno", "bun", "php"];
/// Programs that compile and run the sources of the folder.
const BUILDERS: [&str; 4] = ["cargo", "go", "dotnet", "swift"];
/// Parts of names of variables that contain secrets.
const SECRETS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];
/// Extensions of texts that are searched for instructions to a model.
const PROSE: [&str; 4] = ["md", "txt", "rst", "markdown"];

pub(super) fn find_suspicious(scan: &FolderScan, review: &FolderReview) -> Vec<LocalizedText> {
    let mut found = Vec::new();
    for program in &review.programs {
        check_program(scan, program, &mut found);
    }
    for address in &review.addresses {
        check_address(address, &mut found);
    }
    for (name, bytes) in &scan.configs {
        check_text(name, &String::from_utf8_lossy(bytes), &mut found);
    }
    let mut in_files = Vec::new();
    check_files(scan, &mut in_files);
    let mut seen = std::collections::HashSet::new();
    found.retain(|text| seen.insert(text.localize(Lang::En)));
    in_files.retain(|text| seen.insert(text.localize(Lang::En)));
    // The longer list comes first, so that the other one is next to the question.
    if let more @ 1.. = in_files.len().saturating_sub(MAX_FINDINGS) {
        in_files.truncate(MAX_FINDINGS);
        in_files.push(LocalizedText::new(
            format!("{more} more findings in files and skills are not listed"),
            format!("文件和技能中另有 {more} 项发现未列出"),
        ));
    }
    in_files.append(&mut found);
    in_files
}

fn check_program(scan: &FolderScan, program: &ReviewedProgram, found: &mut Vec<LocalizedText>) {
    let id = &program.purpose;
    let mut add = |en: &str, zh: &str| {
        found.push(LocalizedText::new(format!("`{id}` {en}"), format!("`{id}` {zh}")));
    };
    let name = program.command.first().map(|command| stem(command)).unwrap_or_default();
    let flags = program.command.get(1..).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|arg| arg == flag);
    let inline_shell = SHELLS.contains(&name.as_str()) && flags.iter().any(|arg| is_inline(arg));
    let interpreter = INTERPRETERS.iter().any(|word| name.starts_with(word));
    if inline_shell || (interpreter && ["-c", "-e", "--eval", "-p", "-r"].iter().any(|flag| has(flag))) {
        add("runs code that is written in its arguments", "运行写在参数中的代码");
    }
    match program.scope {
        LaunchScope::Named => {}
        LaunchScope::Tasks => {
            let omitted = INSTALLED.join("`, `");
            add(
                &format!(
                    "runs tasks of the project: all its files are covered by your trust, but not those in `{omitted}`"
                ),
                &format!("运行项目定义的任务：信任涵盖项目的全部文件，但不包括 `{omitted}` 中的文件"),
            );
        }
        LaunchScope::Project => add(
            "may load any file of the project: after a change of any of them you are asked again",
            "可能加载项目的任何文件：其中任何文件有改动后会再次询问",
        ),
    }
    if BUILDERS.contains(&name.as_str()) {
        add("builds the project first", "会先构建项目");
    }
    let all = program.command.join(" ").to_lowercase();
    let fetches = ["curl", "wget", "iwr ", "invoke-webrequest"].iter().any(|word| all.contains(word));
    let pipes = ["| sh", "|sh", "| bash", "|bash", "| python", "|python", "| node", "|node", "iex"];
    if fetches && pipes.iter().any(|word| all.contains(word)) {
        add("downloads code and runs it", "下载代码并运行");
    } else if fetches {
        add("downloads or sends something with its arguments", "通过参数下载或发送数据");
    }
    if all.contains("base64") || all.contains("atob(") || all.contains("frombase64") {
        add("decodes hidden text (base64)", "解码隐藏的文本（base64）");
    }
    if all.contains("/dev/tcp/") || all.contains(" nc ") || all.contains("netcat") {
        add("opens a network connection from a shell", "在 shell 中打开网络连接");
    }
    for name in program.reads.iter().filter(|name| is_secret(name)) {
        add(&format!("would see your `{name}`"), &format!("会看到你的 `{name}`"));
    }
    for (name, _) in program.sets.iter().filter(|(name, _)| is_loader(name)) {
        add(
            &format!("sets `{name}`, which can load other code or redirect connections"),
            &format!("设置 `{name}`，可能加载其他代码或改变连接目标"),
        );
    }
    for (name, value) in program.sets.iter().filter(|(_, value)| !is_local(value)) {
        if Url::parse(value).is_ok_and(|url| url.has_host()) {
            add(&format!("is directed to `{value}` by `{name}`"), &format!("被 `{name}` 指向 `{value}`"));
        }
    }
    let downloads = ["npx", "bunx", "pnpx", "uvx", "pipx"].contains(&name.as_str());
    let package = flags.iter().find(|arg| !arg.starts_with('-'));
    if let Some(package) = package.filter(|package| downloads && !is_pinned(package)) {
        add(
            &format!("downloads the newest `{package}` at each start: name a version to pin it"),
            &format!("每次启动都会下载最新的 `{package}`：可写明版本以固定"),
        );
    }
    if program.resolved.as_ref().is_some_and(|file| file.starts_with(&scan.location.project)) {
        add("starts a program of this folder itself", "启动的是此目录自带的程序");
    }
}

fn check_address(address: &ReviewedAddress, found: &mut Vec<LocalizedText>) {
    let (purpose, url) = (&address.purpose, &address.url);
    let off_machine = !is_local(url);
    if off_machine && url.to_lowercase().starts_with("http://") {
        found.push(LocalizedText::new(
            format!("{purpose} is contacted without encryption: `{url}`"),
            format!("{purpose} 的连接未加密：`{url}`"),
        ));
    }
    if is_link_local(url) {
        found.push(LocalizedText::new(
            format!("{purpose} leads to `{url}`, where clouds give out credentials of this machine"),
            format!("{purpose} 指向 `{url}`，云主机在此提供本机凭据"),
        ));
    }
    if off_machine && purpose.starts_with('[') {
        found.push(LocalizedText::new(
            format!("{purpose} sends your requests or data to `{url}`"),
            format!("{purpose} 会把你的请求或数据发送到 `{url}`"),
        ));
    }
    for name in address.reads.iter().filter(|name| is_secret(name) || off_machine) {
        found.push(LocalizedText::new(
            format!("{purpose} sends your `{name}` to `{url}`"),
            format!("{purpose} 会把你的 `{name}` 发送到 `{url}`"),
        ));
    }
}

/// Finds characters that are invisible or misleading to a reader.
fn check_text(name: &str, text: &str, found: &mut Vec<LocalizedText>) {
    let hidden =
        |line: &&str| line.split('\t').any(|part| escape_invisible(part.trim_end_matches('\r')) != part);
    if let Some((at, _)) = text.lines().enumerate().find(|(_, line)| hidden(line)) {
        let line = at + 1;
        found.push(LocalizedText::new(
            format!("`{name}`, line {line} has hidden or misleading characters"),
            format!("`{name}` 第 {line} 行含有隐藏或误导性的字符"),
        ));
    }
}

fn check_files(scan: &FolderScan, found: &mut Vec<LocalizedText>) {
    let me = files::current_user();
    for ((part, file), state) in &scan.parts {
        let path = scan.relative(file);
        let path = path.display();
        if state.owner != me && state.owner != Some(0) {
            let uid = state.owner.unwrap_or_default();
            found.push(LocalizedText::new(
                format!("`{path}` belongs to another user (uid {uid})"),
                format!("`{path}` 属于其他用户（uid {uid}）"),
            ));
        }
        if state.shared {
            found.push(LocalizedText::new(
                format!("every user of this machine can change `{path}`"),
                format!("本机任何用户都能改动 `{path}`"),
            ));
        }
        if let Some(target) =
            state.target.as_ref().filter(|target| !target.starts_with(&scan.location.project))
        {
            let target = target.display();
            found.push(LocalizedText::new(
                format!("`{path}` is a link that leads out of the project, to `{target}`"),
                format!("`{path}` 是指向项目之外的链接：`{target}`"),
            ));
        }
        let prose = file.extension().and_then(|end| end.to_str()).is_some_and(|end| PROSE.contains(&end));
        if *part == WorkspacePart::Skill && prose {
            check_skill_text(&path.to_string(), file, &state.sha256, found);
        }
    }
}

fn check_skill_text(path: &str, file: &Path, sha256: &[u8; 32], found: &mut Vec<LocalizedText>) {
    let Ok(Some((bytes, _))) = files::read(file) else { return };
    if Sha256::digest(&bytes).as_slice() != sha256 {
        return;
    }
    let text = String::from_utf8_lossy(&bytes);
    for finding in split_text(text.trim_start_matches('\u{feff}')).into_iter().flat_map(scan_text) {
        if matches!(
            finding.kind,
            FindingKind::Invisible | FindingKind::Control | FindingKind::Instruction | FindingKind::Secret
        ) {
            let (en, zh) = (finding.why.localize(Lang::En), finding.why.localize(Lang::Zh));
            found.push(LocalizedText::new(format!("`{path}`: {en}"), format!("`{path}`：{zh}")));
        }
    }
}

fn stem(command: &str) -> String {
    let name = Path::new(command).file_stem().map(|name| name.to_string_lossy().to_lowercase());
    name.unwrap_or_default()
}

/// Whether a flag of a shell is followed by code: `-c`, `-lc`, `/c`.
fn is_inline(flag: &str) -> bool {
    let letters = flag.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    letters.is_some_and(|letters| letters.contains('c')) || flag.eq_ignore_ascii_case("/c")
}

/// Whether a package has a pinned version: `name@1.2.3`, `name==1.2.3`.
fn is_pinned(package: &str) -> bool {
    let version = package.rsplit_once('@').filter(|(name, _)| !name.is_empty()).map(|(_, version)| version);
    let version = version.or_else(|| package.split_once("==").map(|(_, version)| version));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the host of a URL is a link-local address (169.254.0.0/16, fe80::/10).
fn is_link_local(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Ipv4(address)) => address.is_link_local(),
        Some(Host::Ipv6(address)) => {
            address.is_unicast_link_local() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_link_local())
        }
        _ => false,
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRETS.iter().any(|word| name.contains(word))
}

/// Whether the host of a URL is loopback or `localhost`.
fn is_local(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_local_addresses() {
        for (url, local) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1@evil.example", false),
            ("postgres://u:p@db.example/x", false),
            ("${URL}", false),
        ] {
            assert_eq!(is_local(url), local, "{url}");
        }
        assert!(
            is_link_local("http://169.254.169.254/latest") && is_link_local("http://[::ffff:a9fe:a9fe]/")
        );
        for (package, pinned) in
            [("a@1.2.3", true), ("@s/a", false), ("@s/a@2.0.0", true), ("a@latest", false), ("a==1.0", true)]
        {
            assert_eq!(is_pinned(package), pinned, "{package}");
        }
        assert!(is_inline("-lc") && is_inline("/C") && !is_inline("--color") && !is_inline("-l"));
        assert!(is_secret("OPENAI_API_KEY") && !is_secret("LANG"));
    }
}
