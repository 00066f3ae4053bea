//! The one-line notices of which parts of a folder are not used, why, and the command that changes it.

use std::path::Path;

use toolhub_core::lang::{Lang, Localize as _, LocalizedText};

use super::scan::{AGENT_SKILLS, CONFIG, SERVERS};
use super::{Folder, TrustStatus, Workspace, files};

/// The maximum number of changed files in the notice.
const MAX_NAMED: usize = 3;

impl Folder {
    /// The notice of the unused parts of the folder; `None` if everything is used.
    pub(super) fn notice(&self, explicit: Option<&Path>) -> Option<LocalizedText> {
        if self.status.is_trusted() {
            return None;
        }
        let folder_path = &self.scan.location.folder;
        let mut names = self.scan.names();
        if explicit.is_some_and(|file| file == folder_path.join(CONFIG)) {
            names.retain(|name| *name != CONFIG && *name != SERVERS);
        }
        if !self.is_here {
            names.retain(|name| AGENT_SKILLS.contains(&name.as_str()));
        }
        let display = folder_path.display();
        if let TrustStatus::Unreadable(why) = &self.status {
            let (en, zh) = (why.localize(Lang::En), why.localize(Lang::Zh));
            return Some(LocalizedText::new(
                format!("nothing that `{display}` brings is used, as it cannot be checked: {en}"),
                format!("`{display}` 带有的内容无法检查，不会使用：{zh}"),
            ));
        }
        let (en_list, zh_list) = (listed(&names, ", ", " and ")?, listed(&names, "、", " 和 ")?);
        let one = matches!(&names[..], [name] if self.scan.configs.contains_key(name.as_str()));
        let (is, it) = if one { ("is", "it") } else { ("are", "they") };
        let (en_here, zh_here) = match self.is_here {
            true => ("this folder".to_owned(), "此目录".to_owned()),
            false => (format!("the folder `{display}`"), format!("目录 `{display}` ")),
        };
        let them = if one { "it" } else { "them" };
        Some(match &self.status {
            TrustStatus::Changed if !self.changes.is_empty() => {
                let named = |suffix: &dyn Fn(usize) -> String| {
                    let first =
                        self.changes.iter().take(MAX_NAMED).map(|change| format!("`{}`", change.file));
                    let mut names: Vec<String> = first.collect();
                    let more = self.changes.len().saturating_sub(MAX_NAMED);
                    names.extend((more > 0).then(|| suffix(more)));
                    names
                };
                let en = listed(&named(&|more| format!("{more} more")), ", ", " and ")?;
                let zh = listed(&named(&|more| format!("另外 {more} 个文件")), "、", " 和 ")?;
                LocalizedText::new(
                    format!(
                        "{en} changed since you trusted {en_here}, so {en_list} {is} not used: run \"toolhub trust\" to see what {it} would run now"
                    ),
                    format!(
                        "信任{zh_here}之后，{zh} 有改动，因此 {zh_list} 不会使用：运行 “toolhub trust” 查看现在会运行什么"
                    ),
                )
            }
            TrustStatus::Changed => LocalizedText::new(
                format!(
                    "{en_list} of {en_here} changed since you trusted {them} and {is} not used: run \"toolhub trust\" to see what {it} would run now"
                ),
                format!(
                    "{zh_here}中的 {zh_list} 在你信任之后有改动，不会使用：运行 “toolhub trust” 查看现在会运行什么"
                ),
            ),
            TrustStatus::ForeignOwner(uid) => LocalizedText::new(
                format!(
                    "{en_here} brings {en_list}, which {is} not used: another user (uid {uid}) owns files there"
                ),
                format!("{zh_here}带有 {zh_list}，不会使用：其中有文件属于其他用户（uid {uid}）"),
            ),
            _ => LocalizedText::new(
                format!(
                    "{en_here} brings {en_list}, which {is} not used until you trust {them}: run \"toolhub trust\" to see what {it} would run"
                ),
                format!(
                    "{zh_here}带有 {zh_list}，在你信任之前不会使用：运行 “toolhub trust” 查看它们会运行什么"
                ),
            ),
        })
    }
}

impl Workspace {
    /// Why a gateway must not be started here silently: the folder's settings contain access rules and are not used.
    pub fn unused_access_rules(&self) -> Option<LocalizedText> {
        let here = self.folders.iter().find(|folder| folder.is_here && !folder.status.is_trusted());
        let rules = here.is_some_and(|here| match files::read(&here.scan.location.folder.join(CONFIG)) {
            Ok(None) => false,
            // An unreadable file may contain access rules.
            Err(_) => true,
            Ok(Some((bytes, _))) => {
                let text = String::from_utf8_lossy(&bytes);
                text.parse::<toml_edit::DocumentMut>().map_or(true, |document| {
                    ["auth", "profiles"].iter().any(|table| document.contains_key(table))
                })
            }
        });
        if self.changed_here && !rules {
            return Some(LocalizedText::new(
                "not started: `toolhub.toml` of this folder is not used, since it changed after you trusted it: run `toolhub trust`, or name a config with `--config`",
                "未启动：此目录的 `toolhub.toml` 在受信任之后有改动，因此未被使用：请运行 `toolhub trust`，或用 `--config` 指定配置",
            ));
        }
        rules.then(|| {
            LocalizedText::new(
                "not started: `toolhub.toml` of this folder says who may call, and it is not used, so that everybody on this machine could: run `toolhub trust`, or name a config with `--config`",
                "未启动：此目录的 `toolhub.toml` 规定了谁可以调用，但它未被使用，本机任何人都能调用：请运行 `toolhub trust`，或用 `--config` 指定配置",
            )
        })
    }
}

fn listed(names: &[String], comma: &str, and: &str) -> Option<String> {
    let (last, rest) = names.split_last()?;
    Some(if rest.is_empty() { last.clone() } else { format!("{}{and}{last}", rest.join(comma)) })
}
