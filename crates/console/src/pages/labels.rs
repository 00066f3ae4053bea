//! Names of states, strategies, protocol versions and audit records, in words for people. Programs get the names of the API.

use toolhub_core::Lang;
use toolhub_core::audit::{AuditKind, HeldCallDecision};

/// How several sources serve one call.
pub(super) fn strategy(name: &str, candidates: usize, lang: Lang) -> &'static str {
    match (name, candidates) {
        ("race", _) => lang.choose(
            "asks several sources at once and takes the first success",
            "同时请求多个来源，采用最先成功的结果",
        ),
        ("merge", _) => {
            lang.choose("asks several sources at once and combines the results", "同时请求多个来源，合并结果")
        }
        (_, 0 | 1) => lang.choose("one source", "仅有一个来源"),
        _ => lang.choose("tries one source after another until one succeeds", "依次尝试各来源，直到成功"),
    }
}

/// The version of MCP that a server speaks: the negotiated one, or what is known from an earlier connection.
pub(super) fn protocol_version(version: Option<&str>, era: Option<&str>, lang: Lang) -> String {
    match (version, era) {
        (Some(version), _) => version.to_owned(),
        (None, Some("legacy")) => lang.choose("2025-11-25 or earlier", "2025-11-25 或更早").to_owned(),
        (None, Some("modern")) => lang.choose("2026-07-28 or later", "2026-07-28 或更新").to_owned(),
        _ => "–".to_owned(),
    }
}

/// The state of a server.
pub(super) fn server_state(name: &str, lang: Lang) -> &'static str {
    match name {
        "connected" => lang.choose("connected", "已连接"),
        "ready" => lang.choose("ready", "就绪"),
        "failed" => lang.choose("failed", "失败"),
        "circuit_open" => lang.choose("paused after failures", "连续失败，暂停调用"),
        "slow" => lang.choose("slow", "响应慢"),
        "disabled" => lang.choose("disabled", "已停用"),
        _ => lang.choose("not connected yet", "未连接过"),
    }
}

/// Whose credentials calls of gateway clients use.
pub(super) fn credentials(name: &str, lang: Lang) -> &'static str {
    match name {
        "caller" => lang.choose("each caller has its own login", "各调用方使用自己的登录"),
        "exchange" => lang.choose(
            "the token of the caller is exchanged for one of the server",
            "用调用方的令牌换取服务器的令牌",
        ),
        _ => lang.choose("shared by all callers", "所有调用方共用"),
    }
}

/// The status of a call or an attempt.
pub(super) fn call_status(name: &str, lang: Lang) -> &'static str {
    match name {
        "running" => lang.choose("running", "执行中"),
        "succeeded" => lang.choose("succeeded", "成功"),
        "failed" => lang.choose("failed", "失败"),
        "cancelled" => lang.choose("cancelled", "已取消"),
        _ => lang.choose("unknown", "结果未知"),
    }
}

/// A kind of audit records.
pub(super) fn audit_kind(name: &str, lang: Lang) -> &'static str {
    match AuditKind::from_name(name) {
        Some(AuditKind::Login) => lang.choose("login", "登录"),
        Some(AuditKind::Refusal) => lang.choose("refusal", "拒绝访问"),
        Some(AuditKind::Call) => lang.choose("call", "调用"),
        Some(AuditKind::HeldCall) => lang.choose("held call", "待审批的调用"),
        Some(AuditKind::KeyChange) => lang.choose("change of a key", "密钥变更"),
        Some(AuditKind::RuleChange) => lang.choose("change of a rule", "规则变更"),
        Some(AuditKind::ConfigChange) => lang.choose("change of the configuration", "配置变更"),
        Some(AuditKind::ServerChange) => lang.choose("change of a server", "服务器变更"),
        Some(AuditKind::Use) => lang.choose("use", "使用"),
        None => lang.choose("other", "其他"),
    }
}

/// What an audit record says happened. The log is written in English: its fixed parts are translated, and what others wrote
/// stays as it is.
pub(super) fn audit_state(state: &str, lang: Lang) -> String {
    if lang == Lang::En {
        return state.to_owned();
    }
    if state == HeldCallDecision::Withdrawn.name() {
        return "已撤回：脚本已结束".to_owned();
    }
    if let Some(operation) = state.strip_suffix(" refused") {
        return format!("已拒绝：{}", audit_operation(operation));
    }
    let (first, detail) =
        state.split_once(": ").map_or((state, None), |(first, detail)| (first, Some(detail)));
    let first = match first {
        "accepted" => "已接受",
        "refused" => "已拒绝",
        "held" => "等待审批",
        "approved" => "已批准",
        "denied" => "已驳回",
        "expired" => "已过期",
        "created" => "新建",
        "updated" => "修改",
        "deleted" => "删除",
        "running" | "succeeded" | "failed" | "cancelled" | "unknown" => call_status(first, lang),
        other => other,
    };
    detail.map_or_else(|| first.to_owned(), |detail| format!("{first}：{}", audit_detail(detail)))
}

/// What was tried when access was refused.
fn audit_operation(name: &str) -> &str {
    match name {
        "call" => "调用",
        "see" | "list" => "查看",
        "read" => "读取",
        "requests" => "请求",
        "describe" => "查看说明",
        "use skill" => "使用技能",
        "get prompt" => "获取提示词",
        "complete" => "补全",
        "call beyond per_day" => "超出每日上限的调用",
        other => other,
    }
}

/// What an audit record is about. That of a login is how the credentials were presented.
pub(super) fn audit_object(kind: &str, object: &str, lang: Lang) -> String {
    match AuditKind::from_name(kind) {
        Some(AuditKind::Login) => match object {
            "key" => lang.choose("with a key", "使用密钥"),
            "token" | "jwt" | "introspection" => lang.choose("with an access token", "使用访问令牌"),
            "oidc" => lang.choose("at an identity provider", "通过身份提供方"),
            "console" => lang.choose("with a link of `toolhub console`", "使用 `toolhub console` 的链接"),
            other => other,
        }
        .to_owned(),
        Some(AuditKind::ConfigChange | AuditKind::RuleChange) if lang == Lang::Zh => {
            audit_configuration(object)
        }
        _ => object.to_owned(),
    }
}

/// The configuration with which a gateway started, or its rules.
fn audit_configuration(object: &str) -> String {
    let rules = |text: &str| {
        let (count, digest) = text.split_once(" rules, digest ")?;
        Some(format!("{count} 条规则，摘要 {digest}"))
    };
    let started = object.strip_prefix("gateway started: keys ").and_then(|rest| {
        let (keys, count) = rest.split_once("; ")?;
        let keys = if keys.is_empty() { "无" } else { keys };
        Some(format!("网关启动：密钥 {keys}；{}", rules(count)?))
    });
    started.or_else(|| rules(object)).unwrap_or_else(|| object.to_owned())
}

fn audit_detail(detail: &str) -> String {
    let (what, place) = match detail.strip_suffix(" in the console") {
        Some(what) => (what, "在控制台"),
        None => (detail, ""),
    };
    let switched = what.strip_prefix("switched `").and_then(|rest| {
        let (tool, state) = rest.rsplit_once("` ")?;
        let verb = if state == "on" { "启用" } else { "停用" };
        Some(format!("{verb}工具 `{tool}`"))
    });
    let what = switched.unwrap_or_else(|| {
        match what {
            "enabled" => "启用",
            "disabled" => "停用",
            "restarted" => "重启",
            "changed" | "updated" => "修改",
            "created" => "添加",
            "deleted" => "移除",
            "unknown or expired key" | "unknown key" => "密钥未知或已过期",
            other => other,
        }
        .to_owned()
    });
    format!("{place}{what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_records_are_translated() {
        for (state, expected) in [
            ("succeeded", "成功"),
            ("call refused", "已拒绝：调用"),
            ("keys.revoke refused", "已拒绝：keys.revoke"),
            ("updated: restarted", "修改：重启"),
            ("updated: switched `a b` off in the console", "修改：在控制台停用工具 `a b`"),
            ("created: created in the console", "新建：在控制台添加"),
            ("refused: unknown or expired key", "已拒绝：密钥未知或已过期"),
            ("refused: other", "已拒绝：other"),
        ] {
            assert_eq!(audit_state(state, Lang::Zh), expected);
            assert_eq!(audit_state(state, Lang::En), state);
        }
        let started = "gateway started: keys a, b; 2 rules, digest 00ff";
        let object = |kind: &str, text: &str| audit_object(kind, text, Lang::Zh);
        assert_eq!(object("config_change", started), "网关启动：密钥 a, b；2 条规则，摘要 00ff");
        assert_eq!(object("rule_change", "2 rules, digest 00ff"), "2 条规则，摘要 00ff");
        assert_eq!(object("call", started), started);
        for kind in AuditKind::ALL {
            assert!(!audit_kind(kind.name(), Lang::Zh).is_ascii(), "{}", kind.name());
            assert!(!audit_kind(kind.name(), Lang::En).contains('_'));
        }
    }

    #[test]
    fn versions_are_named_by_date() {
        assert_eq!(protocol_version(Some("2025-06-18"), Some("legacy"), Lang::En), "2025-06-18");
        assert_eq!(protocol_version(None, Some("legacy"), Lang::Zh), "2025-11-25 或更早");
        assert_eq!(protocol_version(None, None, Lang::En), "–");
    }
}
