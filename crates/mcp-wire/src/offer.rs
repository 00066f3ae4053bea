//! The lists of a server beside its tools: their methods and members.

/// Lists of a server other than its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Resources.
    Resources,
    /// Resource templates.
    ResourceTemplates,
    /// Prompts.
    Prompts,
}

impl Offer {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Resources, Self::ResourceTemplates, Self::Prompts];

    /// The member of the result that holds the list.
    pub fn key(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The method that requests the list.
    pub fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }
}
