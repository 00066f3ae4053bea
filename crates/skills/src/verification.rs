//! Checks before a skill is used: its approval as of now. The errors say that nothing was run.

use toolhub_core::lang::LocalizedText;
use toolhub_core::{ToolError, shell};

use crate::approval_state::ApprovalState;
use crate::file_set::FileSet;
use crate::registry::{RegisteredSkill, SkillRegistry};

impl SkillRegistry {
    /// Checks that a skill may still be used. Returns its files if the approval covers specific ones.
    pub(crate) fn verify_approval(&self, known: &RegisteredSkill) -> Result<Option<FileSet>, ToolError> {
        let (approval, files) = self.check(&known.skill);
        match approval.may_be_used() {
            true => Ok(files),
            false => Err(not_approved(known, &approval)),
        }
    }
}

pub(crate) fn not_approved(known: &RegisteredSkill, approval: &ApprovalState) -> ToolError {
    use toolhub_core::{Lang, Localize as _};
    let name = &known.skill.name;
    let (en, zh) = (approval.localize(Lang::En), approval.localize(Lang::Zh));
    // An unreadable skill cannot be approved, so the message contains the reason instead of that advice.
    if matches!(approval, ApprovalState::Unreadable(_)) {
        return not_run(LocalizedText::new(
            format!("the skill `{name}` is held back: {en}"),
            format!("技能 `{name}` 已被搁置：{zh}"),
        ));
    }
    not_run(LocalizedText::new(
        format!(
            "the skill `{name}` is held back: {en}; read it with `toolhub skills show {0}`, then `toolhub skills approve {0}`",
            shell::shell_quote(name)
        ),
        format!(
            "技能 `{name}` 已被搁置：{zh}；先用 `toolhub skills show {0}` 查看，再用 `toolhub skills approve {0}` 批准",
            shell::shell_quote(name)
        ),
    ))
}

/// An error for a call that has had no effect.
pub(crate) fn not_run(why: LocalizedText) -> ToolError {
    ToolError::NotStarted { why }
}

/// Runs file operations on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failure) if failure.is_panic() => Err(ToolError::Panicked),
        Err(_) => Err(ToolError::Cancelled),
    }
}
