//! Optional compile-time features: which of them this build has, and the error for a configuration that requires a missing one.
//! For PostgreSQL the store itself rejects the URL.

use toolhub_core::lang::LocalizedText;

#[cfg(not(feature = "postgres"))]
use crate::cluster_status::{ClusterError, ClusterStatus};

/// All optional features, and whether this build has them.
const PARTS: [(&str, bool); 2] =
    [("encoder", cfg!(feature = "encoder")), ("postgres", cfg!(feature = "postgres"))];

/// The optional features of this build.
pub fn included() -> impl Iterator<Item = &'static str> {
    PARTS.iter().filter(|(_, included)| *included).map(|(name, _)| *name)
}

/// The note for a configuration with `[search] model`, if this build has no sentence encoders.
pub(crate) fn missing_encoder() -> Option<LocalizedText> {
    (!cfg!(feature = "encoder")).then(without_encoder)
}

/// The error for `[cluster]`, if this build has no PostgreSQL.
#[cfg_attr(feature = "postgres", expect(dead_code, reason = "for builds without PostgreSQL"))]
pub(crate) fn missing_cluster() -> LocalizedText {
    LocalizedText::new(
        "`[cluster]` needs PostgreSQL, which this toolhub was built without: install a package, which has it, or build with \
         `--features postgres`",
        "`[cluster]` 需要 PostgreSQL，而本 toolhub 编译时未包含它：请安装软件包版本（已包含），或用 `--features postgres` 重新编译",
    )
}

/// A replica of a cluster. In builds without PostgreSQL this type has no values.
#[cfg(not(feature = "postgres"))]
pub(crate) struct Replica(std::convert::Infallible);

#[cfg(not(feature = "postgres"))]
impl Replica {
    pub(crate) fn servers(&self) -> std::sync::Arc<dyn toolhub_mcp_client::remote::RemoteServers> {
        match self.0 {}
    }

    pub(crate) fn script_hosts(
        &self,
        _: u32,
        _: bool,
    ) -> std::sync::Arc<dyn toolhub_core::script_host::ScriptHosts> {
        match self.0 {}
    }

    pub(crate) fn skill_workers(
        &self,
        _: bool,
    ) -> std::sync::Arc<dyn toolhub_core::skill_jobs::SkillWorkers> {
        match self.0 {}
    }

    pub(crate) fn problems(&self) -> Vec<LocalizedText> {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "as with PostgreSQL")]
    pub(crate) async fn leave(self) {
        match self.0 {}
    }
}

fn without_encoder() -> LocalizedText {
    LocalizedText::new(
        "`[search] model` is not used, tools are found by their words alone: this toolhub was built without sentence encoders; \
         install a package, which has them, or build with `--features encoder`",
        "未使用 `[search] model`，仅按词查找工具：本 toolhub 编译时未包含句子编码器；请安装软件包版本（已包含），或用 `--features encoder` 重新编译",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::lang::{Lang, Localize as _};

    /// Tests run with the features of the released packages; a feature that is missing here would be tested nowhere.
    #[test]
    fn tests_run_with_all_features() {
        let parts = PARTS.iter().map(|(name, _)| *name);
        assert_eq!(included().collect::<Vec<_>>(), parts.collect::<Vec<_>>());
    }

    #[test]
    fn missing_encoder_error_names_cargo_feature() {
        for lang in [Lang::En, Lang::Zh] {
            let text = without_encoder().localize(lang);
            assert!(text.contains("--features encoder") && text.contains("[search] model"), "{text}");
        }
    }
}

/// Is never called: there is no replica.
#[cfg(not(feature = "postgres"))]
pub(crate) fn replica_status(replica: &Replica) -> std::future::Ready<Result<ClusterStatus, ClusterError>> {
    match replica.0 {}
}
