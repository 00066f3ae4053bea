//! `[cluster]` of `toolhub.toml`: several hubs that share a store.

use serde::Deserialize;
use toolhub_client_config::expand;
use toolhub_core::Secret;
use toolhub_core::lang::LocalizedText;
use toolhub_mcp_gateway::SessionKey;

/// Maximum number of session keys.
const MAX_SESSION_KEYS: usize = 8;

/// `[cluster]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClusterSettings {
    /// The keys of session ids: 256 bits each, in base64; `${VAR}` is expanded from the environment. The first seals, all open.
    pub session_keys: Vec<Secret>,
}

impl ClusterSettings {
    /// The keys of session ids. `${VAR}` is expanded by `lookup`.
    pub fn session_keys(
        &self,
        lookup: &impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<SessionKey>, LocalizedText> {
        if self.session_keys.len() > MAX_SESSION_KEYS {
            return Err(LocalizedText::new(
                format!(
                    "`session_keys` in `[cluster]` has at most {MAX_SESSION_KEYS} keys: remove the oldest"
                ),
                format!("`[cluster]` 的 `session_keys` 最多 {MAX_SESSION_KEYS} 个密钥：请移除最旧的"),
            ));
        }
        let key = |(index, text): (usize, &Secret)| {
            let number = index + 1;
            let expanded = expand(text.expose(), lookup).map_err(|name| {
                LocalizedText::new(
                    format!(
                        "key {number} of `session_keys` in `[cluster]` uses ${{{name}}}, which is not set"
                    ),
                    format!("`[cluster]` 的 `session_keys` 第 {number} 个密钥使用了未设置的 ${{{name}}}"),
                )
            })?;
            SessionKey::parse(&Secret::new(expanded)).ok_or_else(|| {
                LocalizedText::new(
                    format!(
                        "key {number} of `session_keys` in `[cluster]` is not 256 bits in base64: make one with `openssl rand -base64 32`"
                    ),
                    format!(
                        "`[cluster]` 的 `session_keys` 第 {number} 个密钥不是 base64 编码的 256 位：可用 `openssl rand -base64 32` 生成"
                    ),
                )
            })
        };
        self.session_keys.iter().enumerate().map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn read(keys: &[&str]) -> Result<Vec<SessionKey>, LocalizedText> {
        let session_keys = keys.iter().map(|key| Secret::new((*key).to_owned())).collect();
        let lookup = |name: &str| (name == "KEY").then(|| KEY.to_owned());
        ClusterSettings { session_keys }.session_keys(&lookup)
    }

    #[test]
    fn reads_keys_and_expands_variables() {
        assert_eq!(read(&[]).unwrap(), []);
        let keys = read(&["${KEY}", KEY]).unwrap();
        assert_eq!(keys[0], keys[1]);
        for wrong in ["", "short", "${MISSING}", "AAAA"] {
            let error = read(&[KEY, wrong]).unwrap_err();
            assert!(error.localize(Lang::En).starts_with("key 2 of `session_keys`"), "{error:?}");
        }
        assert!(read(&[KEY; 9]).is_err());
    }
}
