//! What roles permit. The only table of roles and actions.

use toolhub_core::{Role, Roles};

use crate::request::Action;

/// The roles that decide about held calls and about tools that differ from what was approved. Without owners, a hub with a single
/// principal would have no approver.
pub const DECIDERS: &[Role] = &[Role::Approver, Role::Owner];

/// Whether one of the roles permits [`Action::DecideHeldCalls`].
pub fn may_decide_held_calls(roles: Roles) -> bool {
    Abilities::of(roles).contain(Ability::DecideHeldCalls)
}

/// Whether one of the roles permits [`Action::DecideChangedTools`].
pub fn may_decide_changed_tools(roles: Roles) -> bool {
    Abilities::of(roles).contain(Ability::DecideChangedTools)
}

/// A group of actions that the same roles permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    See,
    Use,
    ViewStates,
    ManageServers,
    ManageKeys,
    ManageOwnKeys,
    ManageRules,
    DecideHeldCalls,
    DecideChangedTools,
    ReadAudit,
    ReadOwnPayloads,
    ReadAllPayloads,
}

impl Ability {
    const ALL: [Self; 12] = [
        Self::See,
        Self::Use,
        Self::ViewStates,
        Self::ManageServers,
        Self::ManageKeys,
        Self::ManageOwnKeys,
        Self::ManageRules,
        Self::DecideHeldCalls,
        Self::DecideChangedTools,
        Self::ReadAudit,
        Self::ReadOwnPayloads,
        Self::ReadAllPayloads,
    ];

    /// The ability that an action needs, regardless of the owner of a payload.
    pub(crate) fn of(action: Action<'_>) -> Self {
        match action {
            Action::See => Self::See,
            Action::Call
            | Action::Read
            | Action::GetPrompt
            | Action::Complete
            | Action::Subscribe
            | Action::UseSkill => Self::Use,
            Action::ViewStates => Self::ViewStates,
            Action::ManageServers => Self::ManageServers,
            Action::ManageKeys => Self::ManageKeys,
            Action::ManageOwnKeys => Self::ManageOwnKeys,
            Action::ManageRules => Self::ManageRules,
            Action::DecideHeldCalls => Self::DecideHeldCalls,
            Action::DecideChangedTools => Self::DecideChangedTools,
            Action::ReadAudit => Self::ReadAudit,
            Action::ReadPayload { .. } => Self::ReadAllPayloads,
        }
    }

    /// The roles of which one is needed.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Self::See | Self::ViewStates | Self::ReadOwnPayloads => &Role::ALL,
            Self::Use | Self::ManageOwnKeys => &[Role::Caller, Role::Owner],
            // Servers are part of the configuration, which owners manage.
            Self::ManageServers => &[Role::Operator, Role::Owner],
            Self::ManageKeys | Self::ManageRules => &[Role::Owner],
            Self::DecideHeldCalls | Self::DecideChangedTools => DECIDERS,
            // Owners do not read what others do, unless they are auditors, too.
            Self::ReadAudit | Self::ReadAllPayloads => &[Role::Auditor],
        }
    }
}

/// What a set of roles permits. Equal for sets of roles that permit the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Abilities(u16);

impl Abilities {
    pub(crate) fn of(roles: Roles) -> Self {
        let permitted = |ability: &Ability| ability.roles().iter().any(|role| roles.contains(*role));
        Self(Ability::ALL.into_iter().filter(permitted).fold(0, |bits, ability| bits | 1 << ability as u16))
    }

    pub(crate) fn contain(self, ability: Ability) -> bool {
        self.0 & 1 << ability as u16 != 0
    }
}
