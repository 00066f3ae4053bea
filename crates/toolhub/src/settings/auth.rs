//! `[auth]` of `toolhub.toml`: who may connect, and who may call what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use toolhub_access::{RuleSet, RuleSpec, RuleWarning};
use toolhub_client_config::expand_variables;
use toolhub_core::lang::LocalizedText;
use toolhub_core::principal::PrincipalKind;
use toolhub_core::shell;
use toolhub_core::{Principal, Role, Roles, Secret};
use toolhub_oauth::resource_server::{IntrospectionClient, LoginClient, ResourceServer, TrustedIssuer};
use toolhub_server::StaticKey;

use super::span::DurationSetting;

/// Maximum length of the name of a key.
const MAX_TOKEN_NAME_CHARS: usize = 128;
/// How long a held call waits for a decision by default.
const DEFAULT_HOLD: Duration = Duration::from_secs(3600);

/// `[auth]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "AuthTable")]
pub struct AuthSettings {
    /// The public URL of the gateway, which tokens of identity providers must be issued for.
    pub resource: Option<String>,
    /// The identity providers whose tokens are accepted.
    pub issuers: Vec<IssuerSettings>,
    /// The accepted keys. Revoked ones are not among them, so that no code can accept one by mistake.
    pub tokens: Vec<TokenSettings>,
    /// The names of revoked keys, which no other key may have: data is stored under the name of a key.
    pub revoked: Vec<RevokedKey>,
    /// The rules that decide who may see and call what.
    pub rules: Vec<RuleSpec>,
    /// How long a held call waits for a decision.
    pub hold: Option<DurationSetting>,
}

/// `[auth]` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AuthTable {
    resource: Option<String>,
    issuers: Vec<IssuerSettings>,
    tokens: Vec<TokenTable>,
    rules: Vec<RuleSpec>,
    hold: Option<DurationSetting>,
}

/// An entry of `[auth] tokens` as it is written: a key, or what is left of a revoked one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    name: String,
    /// Missing in the entry of a revoked key. A key without it is reported like one with an invalid hash.
    #[serde(default)]
    sha256: String,
    roles: Option<Vec<String>>,
    profiles: Option<Vec<String>>,
    expires: Option<String>,
    per_day: Option<u64>,
    revoked: Option<String>,
}

impl From<AuthTable> for AuthSettings {
    fn from(table: AuthTable) -> Self {
        let AuthTable { resource, issuers, tokens: entries, rules, hold } = table;
        let (mut tokens, mut revoked) = (Vec::new(), Vec::new());
        for entry in entries {
            let TokenTable { name, sha256, roles, profiles, expires, per_day, revoked: revoked_at } = entry;
            match revoked_at {
                Some(at) => revoked.push(RevokedKey { name, at }),
                None => tokens.push(TokenSettings { name, sha256, roles, profiles, expires, per_day }),
            }
        }
        Self { resource, issuers, tokens, revoked, rules, hold }
    }
}

/// An entry of `[auth] tokens` with `revoked`: the name of a key that is not accepted any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedKey {
    /// The name of its principal.
    pub name: String,
    /// The date or time of the revocation.
    pub at: String,
}

/// An entry of `[auth] tokens`: a static key.
#[derive(Debug, Clone)]
pub struct TokenSettings {
    /// The name of its principal.
    pub name: String,
    /// The SHA-256 hash of the key.
    pub sha256: String,
    /// The roles of its principal; `caller` if absent.
    pub roles: Option<Vec<String>>,
    /// The profiles that it opens; all if absent.
    pub profiles: Option<Vec<String>>,
    /// The date or time from which it is refused.
    pub expires: Option<String>,
    /// The maximum number of calls per day (UTC).
    pub per_day: Option<u64>,
}

/// An entry of `[auth] issuers`: an identity provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSettings {
    /// The issuer URL, as in the claim `iss`.
    pub url: String,
    /// The id of the hub at the provider, for the login at the console.
    pub client_id: Option<String>,
    /// Its secret; `${VAR}` is expanded from the environment. A public client has none.
    pub client_secret: Option<Secret>,
    /// Which tokens get which role: `"*"`, `"groups:NAME"`, `"scope:NAME"`, or a list of those.
    #[serde(default)]
    pub roles: BTreeMap<String, OneOrMany>,
    /// The claim that lists the groups.
    pub groups_claim: Option<String>,
    /// The accepted values of the header `typ`.
    pub typ: Option<Vec<String>>,
    /// Further accepted audiences.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// Whether the URLs in its metadata may be in a private network.
    #[serde(default)]
    pub private_network: bool,
    /// How opaque tokens are checked (RFC 7662).
    pub introspection: Option<IntrospectionSettings>,
}

/// `introspection` of an issuer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntrospectionSettings {
    /// The id of the hub at the provider.
    pub client_id: String,
    /// Its secret; `${VAR}` is expanded from the environment.
    pub client_secret: Secret,
    /// The introspection endpoint; that of the issuer's metadata if absent.
    pub endpoint: Option<String>,
}

/// One text or a list of texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One text.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The texts.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
        .iter()
        .map(String::as_str)
    }
}

/// An invalid setting: a word of the file near it, and the error.
type Problem = (&'static str, LocalizedText);

impl AuthSettings {
    /// Whether anything is configured: then a token is required.
    pub fn is_required(&self) -> bool {
        !self.tokens.is_empty() || !self.issuers.is_empty()
    }

    /// How long a held call waits for a decision.
    pub fn hold(&self) -> Duration {
        self.hold.map_or(DEFAULT_HOLD, |span| span.0)
    }

    /// The first invalid setting.
    pub(super) fn problem(&self) -> Option<Problem> {
        self.token_problem().or_else(|| self.revoked_problem()).or_else(|| self.issuer_problem())
    }

    /// When the key of this name was revoked, if it was.
    pub fn revoked_at(&self, name: &str) -> Option<&str> {
        self.revoked.iter().find(|key| key.name == name).map(|key| key.at.as_str())
    }

    fn revoked_problem(&self) -> Option<Problem> {
        for (index, key) in self.revoked.iter().enumerate() {
            let RevokedKey { name, at } = key;
            if parse_time(at).is_none() {
                return Some(("revoked", no_date(at)));
            }
            if self.tokens.iter().any(|token| token.name == *name) {
                let what = LocalizedText::new(
                    format!(
                        "a key `{name}` was revoked, and its calls, responses and approvals are stored under that name: \
                         give the new key another name, or remove the entry with `revoked` if it is for the same person"
                    ),
                    format!(
                        "密钥 `{name}` 已被吊销，其调用、响应和批准都存于该名称下：请为新密钥换一个名称；\
                         如仍供同一人使用，请删除带 `revoked` 的条目"
                    ),
                );
                return Some(("revoked", what));
            }
            if name.trim().is_empty() || self.revoked[..index].iter().any(|other| other.name == *name) {
                let what = LocalizedText::new(
                    format!("each revoked key needs a name of its own; `{name}` is not"),
                    format!("每个已吊销的密钥需要各自的名称；`{name}` 不行"),
                );
                return Some(("revoked", what));
            }
        }
        None
    }

    fn token_problem(&self) -> Option<Problem> {
        for (index, token) in self.tokens.iter().enumerate() {
            let name = &token.name;
            if token.sha256.len() != 64 || !token.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let what = LocalizedText::new(
                    format!(
                        "`sha256` of token `{name}` is no hash of 64 hexadecimal digits: `toolhub keys new {}` makes one",
                        shell::shell_quote(name)
                    ),
                    format!(
                        "令牌 `{name}` 的 `sha256` 不是 64 位十六进制哈希：可用 `toolhub keys new {}` 生成",
                        shell::shell_quote(name)
                    ),
                );
                return Some(("sha256", what));
            }
            let is_duplicate = self.tokens[..index].iter().any(|other| other.name == *name);
            if name.trim().is_empty() || is_duplicate {
                let what = LocalizedText::new(
                    format!("each token needs a name of its own; `{name}` is not"),
                    format!("每个令牌需要各自的名称；`{name}` 不行"),
                );
                return Some(("tokens", what));
            }
            if name.chars().count() > MAX_TOKEN_NAME_CHARS || name.chars().any(char::is_control) {
                let what = LocalizedText::new(
                    format!(
                        "the name of a token has at most {MAX_TOKEN_NAME_CHARS} characters, and no control characters"
                    ),
                    format!("令牌名称最多 {MAX_TOKEN_NAME_CHARS} 个字符，且不能含控制字符"),
                );
                return Some(("tokens", what));
            }
            let has_same_hash = |other: &TokenSettings| other.sha256.eq_ignore_ascii_case(&token.sha256);
            if let Some(other) = self.tokens[..index].iter().find(|other| has_same_hash(other)) {
                let other = &other.name;
                let what = LocalizedText::new(
                    format!(
                        "the tokens `{other}` and `{name}` have the same `sha256`: a key belongs to one name"
                    ),
                    format!("令牌 `{other}` 与 `{name}` 的 `sha256` 相同：一个密钥只能属于一个名称"),
                );
                return Some(("sha256", what));
            }
            if let Some(unknown) = token.roles.iter().flatten().find(|role| Role::from_name(role).is_none()) {
                return Some(("roles", unknown_role(unknown)));
            }
            if let Some(expires) = &token.expires
                && parse_time(expires).is_none()
            {
                return Some(("expires", no_date(expires)));
            }
            if token.per_day == Some(0) {
                let what = LocalizedText::new(
                    "`per_day` of 0 would refuse every call: leave it out, or name a number",
                    "`per_day` 为 0 会拒绝所有调用：请去掉，或写一个数",
                );
                return Some(("per_day", what));
            }
        }
        None
    }

    fn issuer_problem(&self) -> Option<Problem> {
        if !self.issuers.is_empty() && self.resource.is_none() {
            let what = LocalizedText::new(
                "`[[auth.issuers]]` needs `resource`, the public URL of this gateway: its tokens must be issued for it",
                "`[[auth.issuers]]` 需要 `resource`（网关的公开 URL）：令牌必须为它签发",
            );
            return Some(("issuers", what));
        }
        let is_url = |text: &str| {
            url::Url::parse(text).is_ok_and(|url| {
                matches!(url.scheme(), "https" | "http") && url.fragment().is_none() && url.query().is_none()
            })
        };
        let no_url = |text: &str| {
            LocalizedText::new(
                format!("`{text}` is no URL: write it like `https://hub.example`"),
                format!("`{text}` 不是 URL：请写成 `https://hub.example` 的形式"),
            )
        };
        if let Some(resource) = self.resource.as_deref().filter(|resource| !is_url(resource)) {
            return Some(("resource", no_url(resource)));
        }
        for (index, issuer) in self.issuers.iter().enumerate() {
            if !is_url(&issuer.url) {
                return Some(("url", no_url(&issuer.url)));
            }
            if self.issuers[..index].iter().any(|other| other.url == issuer.url) {
                let url = &issuer.url;
                let what = LocalizedText::new(
                    format!("the issuer `{url}` is listed twice"),
                    format!("签发方 `{url}` 出现了两次"),
                );
                return Some(("issuers", what));
            }
            for (role, selectors) in &issuer.roles {
                if Role::from_name(role).is_none() {
                    return Some(("roles", unknown_role(role)));
                }
                let is_known_selector = |text: &&str| {
                    *text == "*"
                        || ["groups:", "scope:"]
                            .iter()
                            .any(|kind| text.strip_prefix(kind).is_some_and(|name| !name.is_empty()))
                };
                if let Some(other) = selectors.iter().find(|text| !is_known_selector(text)) {
                    let what = LocalizedText::new(
                        format!("`{other}` selects nothing: write `*`, `groups:NAME` or `scope:NAME`"),
                        format!("`{other}` 无法匹配：请写 `*`、`groups:名称` 或 `scope:名称`"),
                    );
                    return Some(("roles", what));
                }
            }
        }
        None
    }

    /// Compiles the rules. Returns their warnings, or the position of an invalid rule in the list and the error.
    pub(super) fn check_rules(&self) -> Result<Vec<RuleWarning>, (usize, LocalizedText)> {
        let rules = RuleSet::compile(self.rules.clone());
        rules.map(|rules| rules.warnings()).map_err(|error| (error.index, error.text))
    }

    /// The identity providers and the URL that their tokens must be issued for; `None` without identity providers.
    /// `${VAR}` in the secret of an introspection client is expanded by `lookup`.
    pub fn resource_server(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<ResourceServer>, LocalizedText> {
        if self.issuers.is_empty() {
            return Ok(None);
        }
        let issuers = self.issuers.iter().map(|issuer| issuer.trusted_issuer(lookup));
        let issuers = issuers.collect::<Result<_, LocalizedText>>()?;
        Ok(Some(ResourceServer { resource: self.resource.clone().unwrap_or_default(), issuers }))
    }

    /// The keys, each with its principal.
    pub fn keys(&self) -> Vec<StaticKey> {
        self.tokens.iter().map(TokenSettings::key).collect()
    }
}

impl IssuerSettings {
    fn trusted_issuer(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<TrustedIssuer, LocalizedText> {
        let mut issuer = TrustedIssuer::new(self.url.clone());
        for (role, selectors) in &self.roles {
            let role = Role::from_name(role).ok_or_else(|| unknown_role(role))?;
            let conditions = selectors.iter().map(str::parse).collect::<Result<Vec<_>, _>>()?;
            issuer.roles.insert(role, conditions);
        }
        if let Some(claim) = &self.groups_claim {
            issuer.groups_claim.clone_from(claim);
        }
        if let Some(typ) = &self.typ {
            issuer.typ.clone_from(typ);
        }
        issuer.audiences.clone_from(&self.audiences);
        issuer.private_network = self.private_network;
        let expanded = |setting: &str, secret: &Secret| {
            expand_variables(secret.expose(), lookup).map(Secret::new).map_err(|name| {
                LocalizedText::new(
                    format!("`{setting}` uses ${{{name}}}, which is not set"),
                    format!("`{setting}` 用到了未设置的 ${{{name}}}"),
                )
            })
        };
        if let Some(client_id) = self.client_id.clone() {
            let secret = self.client_secret.as_ref().map(|secret| expanded("client_secret", secret));
            issuer.login = Some(LoginClient { client_id, client_secret: secret.transpose()? });
        }
        if let Some(client) = &self.introspection {
            let (client_id, endpoint) = (client.client_id.clone(), client.endpoint.clone());
            let client_secret = expanded("introspection", &client.client_secret)?;
            issuer.introspection = Some(IntrospectionClient { client_id, client_secret, endpoint });
        }
        Ok(issuer)
    }
}

impl TokenSettings {
    /// The key with its principal.
    pub fn key(&self) -> StaticKey {
        let mut principal = Principal::of_key(&self.name);
        principal.kind = PrincipalKind::Program;
        principal.roles = match &self.roles {
            None => Role::Caller.into(),
            Some(names) => names.iter().filter_map(|name| Role::from_name(name)).collect::<Roles>(),
        };
        principal.profiles.clone_from(&self.profiles);
        let sha256 = self.sha256.to_ascii_lowercase();
        principal.key_sha256 = Some(Arc::from(sha256.as_str()));
        StaticKey {
            sha256,
            principal: Arc::new(principal),
            // An invalid date is refused when the file is read; here it means expired.
            expires: self.expires.as_deref().map(|text| parse_time(text).unwrap_or(SystemTime::UNIX_EPOCH)),
        }
    }
}

fn no_date(text: &str) -> LocalizedText {
    LocalizedText::new(
        format!("`{text}` is no date: write `2027-01-31` or `2027-01-31T12:00:00Z`"),
        format!("`{text}` 不是日期：请写成 `2027-01-31` 或 `2027-01-31T12:00:00Z`"),
    )
}

fn unknown_role(name: &str) -> LocalizedText {
    let names: Vec<&str> = Role::ALL.into_iter().map(Role::name).collect();
    let names = names.join(", ");
    LocalizedText::new(
        format!("there is no role `{name}`; there are: {names}"),
        format!("没有角色 `{name}`；现有：{names}"),
    )
}

/// Parses a date (its start, UTC) or a time.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.into());
    }
    let date = text.parse::<jiff::civil::Date>().ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().into())
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    fn problem(text: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            auth: AuthSettings,
        }
        let file: File = toml_edit::de::from_str(text).unwrap();
        file.auth.problem().map(|(_, what)| what.localize(Lang::En))
    }

    #[test]
    fn reports_invalid_keys_issuers_and_rules() {
        let hash = "0".repeat(64);
        let token = |more: &str| format!("[[auth.tokens]]\nname = \"ann\"\nsha256 = \"{hash}\"\n{more}\n");
        let check = |text: &str, expect: Option<&str>| {
            let found = problem(text);
            assert_eq!(found.is_some(), expect.is_some(), "{text}: {found:?}");
            assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()), "{text}");
        };
        check("", None);
        check(&token(""), None);
        check(
            &token("roles = [\"viewer\"]\nprofiles = [\"a\"]\nexpires = \"2027-01-01\"\nper_day = 5"),
            None,
        );
        check(&token("roles = [\"admin\"]"), Some("no role `admin`"));
        check(&token("expires = \"soon\""), Some("no date"));
        check(&token("per_day = 0"), Some("refuse every call"));
        check(&format!("{}{}", token(""), token("")), Some("name of its own"));
        check("[[auth.tokens]]\nname = \"ann\"\nsha256 = \"abc\"\n", Some("64 hexadecimal"));
        check("[[auth.tokens]]\nname = \"ann\"\n", Some("64 hexadecimal"));
        let revoked = |at: &str| format!("[[auth.tokens]]\nname = \"ann\"\nrevoked = \"{at}\"\n");
        check(&revoked("2026-11-18T20:00:00Z"), None);
        check(&revoked("yesterday"), Some("no date"));
        check(&format!("{}{}", revoked("2026-11-18"), revoked("2026-11-19")), Some("name of its own"));
        check(&format!("{}{}", revoked("2026-11-18"), token("")), Some("was revoked"));
        let issuer = |more: &str| {
            format!(
                "[auth]\nresource = \"https://hub.example\"\n[[auth.issuers]]\nurl = \"https://idp.example\"\n{more}\n"
            )
        };
        check(&issuer(""), None);
        check(
            &issuer("roles = { operator = \"groups:ops\", caller = [\"*\"], auditor = \"scope:audit\" }"),
            None,
        );
        check(&issuer("roles = { boss = \"*\" }"), Some("no role `boss`"));
        check(&issuer("roles = { caller = \"everyone\" }"), Some("selects nothing"));
        check("[[auth.issuers]]\nurl = \"https://idp.example\"\n", Some("needs `resource`"));
        check("[auth]\nresource = \"hub\"\n", Some("no URL"));
    }

    #[test]
    fn revoked_entry_is_no_key_even_with_a_hash() {
        let hash = "0".repeat(64);
        let text = format!("[[tokens]]\nname = \"ann\"\nsha256 = \"{hash}\"\nrevoked = \"2026-11-18\"\n");
        let auth: AuthSettings = toml_edit::de::from_str(&text).unwrap();
        assert!(auth.tokens.is_empty() && auth.keys().is_empty() && !auth.is_required());
        assert_eq!((auth.revoked_at("ann"), auth.revoked_at("bob")), (Some("2026-11-18"), None));
    }

    #[test]
    fn key_without_roles_is_a_caller() {
        let token = |roles: Option<Vec<String>>| TokenSettings {
            name: "ci".to_owned(),
            sha256: "A".repeat(64),
            roles,
            profiles: None,
            expires: None,
            per_day: None,
        };
        let key = token(None).key();
        assert_eq!(key.principal.roles, Role::Caller.into());
        assert_eq!(key.sha256, "a".repeat(64));
        assert!(token(Some(Vec::new())).key().principal.roles.is_empty());
    }

    #[test]
    fn parses_dates_and_times() {
        let day = parse_time("2027-01-01").unwrap();
        assert_eq!(parse_time("2027-01-01T00:00:00Z"), Some(day));
        assert_eq!(parse_time("2027-01-01T08:00:00+08:00"), Some(day));
        assert_eq!(parse_time("tomorrow"), None);
    }
}
