//! Skills through the gateway: those of the hub and of a server behind it, each file with its digest and size. A file that
//! differs from its listing is not forwarded. The conformance suite checks all of it.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use serde_json::{Value, json};
use toolhub_core::hex;
use toolhub_testkit::CommandLine;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient};
use crate::serving::{Serving, fixture, hub};

fn put(folder: &Path, name: &str, files: &[(&str, &[u8])]) {
    let own = folder.join("skills").join(name);
    for (path, bytes) in files {
        let file = own.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}

/// Approves the skills of the folder, which counts as a project.
fn approve(cli: &CommandLine) {
    assert_eq!(cli.run(&["skills", "approve", "--all", "--yes"]).code, Some(0));
}

fn manifest(name: &str) -> String {
    format!("---\nname: {name}\ndescription: How to {name}\nmetadata:\n  level: 3\n---\nDo {name}.\n")
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::sha256(bytes))
}

#[tokio::test]
async fn lists_and_reads_own_skills_within_their_directory() {
    let cli = hub("");
    let text = manifest("weed");
    put(
        cli.folder(),
        "weed",
        &[
            ("SKILL.md", text.as_bytes()),
            ("references/my plants.md", "玫瑰\n".as_bytes()),
            ("assets/rose.png", b"\x89PNG\xff\xfe"),
        ],
    );
    // A skill that a strict YAML parser would read differently is not served, but is still used locally.
    put(
        cli.folder(),
        "mended",
        &[("SKILL.md", b"---\nname: mended\ndescription: Use it: now\n---\nText.\n")],
    );
    fs::write(cli.folder().join("secret"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../../secret", cli.folder().join("skills/weed/link")).unwrap();
    approve(&cli);
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    let listed = ask(&client, "skills/list", json!({})).await;
    let skills = listed["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 1, "{listed}");
    assert_eq!(
        skills[0]["frontmatter"],
        json!({"name": "weed", "description": "How to weed", "metadata": {"level": 3}})
    );
    let files = skills[0]["resources"].as_array().unwrap();
    let uris: Vec<&str> = files.iter().map(|file| file["uri"].as_str().unwrap()).collect();
    assert_eq!(
        uris,
        ["skill://weed/SKILL.md", "skill://weed/assets/rose.png", "skill://weed/references/my%20plants.md"]
    );
    for file in files {
        let read = ask(&client, "resources/read", json!({"uri": file["uri"]})).await;
        let content = &read["contents"][0];
        let bytes = match content["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => {
                base64::engine::general_purpose::STANDARD.decode(content["blob"].as_str().unwrap()).unwrap()
            }
        };
        assert_eq!(
            (file["digest"].as_str(), file["size"].as_u64()),
            (Some(digest(&bytes).as_str()), Some(bytes.len() as u64))
        );
    }
    let one = ask(&client, "skills/get", json!({"uri": "skill://weed/SKILL.md"})).await;
    assert_eq!(one["skill"], skills[0]);
    for uri in [
        "skill://weed/link",
        "skill://weed/../../secret",
        "skill://weed/%2e%2e/%2e%2e/secret",
        "skill://nothing/SKILL.md",
    ] {
        assert_eq!(refusal(&client, "resources/read", json!({"uri": uri})).await["code"], -32602, "{uri}");
    }
    let folder = ask(&client, "resources/directory/read", json!({"uri": "skill://weed"})).await;
    let kinds: Vec<&str> =
        folder["resources"].as_array().unwrap().iter().map(|one| one["mimeType"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text/markdown", "inode/directory", "inode/directory"]);
    assert_eq!(
        refusal(&client, "resources/directory/read", json!({"uri": "skill://weed/SKILL.md"})).await["code"],
        -32602
    );
    assert_eq!(refusal(&client, "skills/get", json!({"uri": "skill://weed"})).await["code"], -32602);
    let used = client.call("use_skill", r#"{"skill": "mended"}"#).await;
    assert_eq!(used.text(), "Text.");
}

const HELP: &str = "Help.\n";

/// A server with a skill of two files. It lists one text as its `SKILL.md`, and answers every read with the given file.
fn server(skill: &str, listed: &str, path: &str, served: &str) -> Script {
    let root = format!("skill://{skill}");
    let entry = json!({
        "uri": format!("{root}/SKILL.md"),
        "frontmatter": {"name": skill, "description": format!("How to {skill}"), "metadata": {"level": 3}},
        "resources": [
            {"uri": format!("{root}/SKILL.md"), "digest": digest(listed.as_bytes()), "size": listed.len()},
            {"uri": format!("{root}/help.md"), "digest": digest(HELP.as_bytes()), "size": HELP.len()},
        ],
    });
    let content = json!({"uri": format!("{root}/{path}"), "mimeType": "text/markdown", "text": served});
    Script::legacy()
        .plain_tool("anything")
        .set(
            "capabilities",
            json!({"tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}}),
        )
        .on("skills/list", json!([{"reply": {"skills": [entry]}}]))
        .on("skills/get", json!([{"reply": {"skill": entry}}]))
        .on("resources/read", json!([{"reply": {"contents": [content]}}]))
}

#[tokio::test]
async fn server_skills_never_replace_other_skills() {
    let mut cli = hub("");
    let text = manifest("weed");
    put(cli.folder(), "weed", &[("SKILL.md", manifest("weed").as_bytes())]);
    approve(&cli);
    cli.server("garden", &server("weed", &text, "help.md", HELP));
    cli.server("yard", &server("mow", &manifest("mow"), "SKILL.md", &manifest("mow")));
    let serving = Serving::start(cli);
    let client = RawClient::connect(&serving.url(), Era::Modern).await;
    // After `tools/list` all servers are connected.
    ask(&client, "tools/list", json!({})).await;
    let listed = ask(&client, "skills/list", json!({})).await;
    let uris: Vec<&str> =
        listed["skills"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["skill://weed/SKILL.md", "skill://garden/weed/SKILL.md", "skill://mow/SKILL.md"]);
    let theirs = ask(&client, "resources/read", json!({"uri": "skill://garden/weed/help.md"})).await;
    assert_eq!(
        theirs["contents"][0],
        json!({"uri": "skill://garden/weed/help.md", "mimeType": "text/markdown", "text": "Help.\n"})
    );
    let plain = ask(&client, "resources/read", json!({"uri": "skill://mow/SKILL.md"})).await;
    assert_eq!(plain["contents"][0]["text"], manifest("mow"));
    assert_eq!(
        refusal(&client, "resources/read", json!({"uri": "skill://mow/other.md"})).await["code"],
        -32602
    );
    let one = ask(&client, "skills/get", json!({"uri": "skill://garden/weed/SKILL.md"})).await;
    assert_eq!(one["skill"]["resources"][1]["uri"], "skill://garden/weed/help.md");
}

#[tokio::test]
async fn rejects_skill_files_that_differ_from_listed_digest() {
    let text = manifest("mow");
    let other = text.replace("Do mow.", "Do ill.");
    let front = text.replace("How to mow", "How to rob");
    for (served, listed, why) in [
        (other.clone(), text.clone(), "its digest differs"),
        (format!("{text}more"), text.clone(), "bytes where"),
        (front.clone(), front.clone(), "the frontmatter of"),
    ] {
        let mut cli = hub("");
        cli.server("yard", &server("mow", &listed, "SKILL.md", &served));
        let serving = Serving::start(cli);
        let client = RawClient::connect(&serving.url(), Era::Modern).await;
        ask(&client, "tools/list", json!({})).await;
        let refused = refusal(&client, "resources/read", json!({"uri": "skill://mow/SKILL.md"})).await;
        assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    }
}

/// The scenarios of the extension, selected by name: no revision requires them.
#[cfg(target_arch = "x86_64")]
#[test]
fn skills_conformance_scenarios_pass() {
    use toolhub_testkit::conformance::suite::ServerReport;
    use toolhub_testkit::conformance::table::{Side, compare};
    let own = || {
        let cli = hub("");
        put(
            cli.folder(),
            "weed",
            &[("SKILL.md", manifest("weed").as_bytes()), ("references/plants.md", b"Roses.\n")],
        );
        approve(&cli);
        Serving::start(cli)
    };
    let theirs = || {
        let mut cli = hub("[profiles.default]\nservers = [\"fixture\"]\nexpose = \"all\"\n");
        cli.entry("fixture", fixture());
        Serving::start(cli)
    };
    for serving in [own(), theirs()] {
        for scenario in
            ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"]
        {
            let report = ServerReport::of(&serving.url(), "0.2.0-alpha.12", &["--scenario", scenario]);
            assert!(
                report.content && report.wrong.is_empty(),
                "{scenario}: {:#?}\n{}",
                report.wrong,
                report.words
            );
            assert!(report.skipped.is_empty(), "{scenario}: {:?}\n{}", report.skipped, report.words);
            assert_eq!(compare(&report, Side::Gateway), Ok(()), "{scenario}:\n{}", report.words);
        }
    }
}

/// The result of a request.
async fn ask(client: &RawClient, method: &str, params: Value) -> Value {
    serde_json::from_str(client.ask("1", method, inside(&params)).await.result()).unwrap()
}

/// The error of a request.
async fn refusal(client: &RawClient, method: &str, params: Value) -> Value {
    let answer = client.ask("1", method, inside(&params)).await;
    answer.last().error.clone().unwrap_or_else(|| panic!("no error: {answer:?}"))
}

/// The members of an object, as text without the braces.
fn inside(params: &Value) -> &'static str {
    let text = params.to_string();
    let inside = text.trim_start_matches('{').strip_suffix('}').unwrap();
    inside.to_owned().leak()
}

/// A denied skill is refused by every method that could read it.
#[tokio::test]
async fn denied_skills_are_not_served() {
    let settings = "[profiles.p]\nservers = [\"skill\", \"native\"]\ndeny = [\"secret*\"]\nexpose = \"all\"\n\
                    [profiles.r]\ntools = [\"calculate\"]\ndeny = [\"secret*\"]\nexpose = \"all\"\n";
    let mut cli = hub(settings);
    for name in ["secret-plan", "open-plan"] {
        put(cli.folder(), name, &[("SKILL.md", manifest(name).as_bytes())]);
    }
    cli.server("fin", &server("secret-vault", &manifest("secret-vault"), "help.md", HELP));
    approve(&cli);
    let serving = Serving::start(cli);
    for (profile, open) in [("p", true), ("r", false)] {
        let client = RawClient::connect(&format!("{}/mcp/{profile}", serving.root), Era::Modern).await;
        for method in ["tools/list", "skills/list", "resources/list"] {
            let listed = ask(&client, method, json!({})).await.to_string();
            assert!(!listed.contains("secret"), "{profile} {method}: {listed}");
            assert_eq!(listed.contains("open-plan"), open, "{profile} {method}: {listed}");
        }
        for uri in ["skill://secret-plan/SKILL.md", "skill://secret-vault/SKILL.md"] {
            for method in ["skills/get", "resources/read"] {
                refusal(&client, method, json!({"uri": uri})).await;
            }
        }
        let used = client.call("use_skill", r#"{"skill":"secret-plan"}"#).await;
        let refused = used.last().error.is_some() || used.result().contains("\"isError\":true");
        assert!(refused, "{used:?}");
        let used = client.call("use_skill", r#"{"skill":"open-plan"}"#).await;
        assert_eq!(used.last().error.is_none(), open, "the control: {used:?}");
    }
}
