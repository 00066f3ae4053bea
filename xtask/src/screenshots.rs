//! Takes the pictures of the web console for the documents, with the test that also checks that they can be taken.
use anyhow::Result;

use crate::{
    chromium,
    commands::no_arguments,
    peers,
    run::{cargo, check},
    workspace::Workspace,
};

/// The variable with the folder for the pictures. Also in the test.
const FOLDER_VARIABLE: &str = "TOOLHUB_SCREENSHOTS";
const TEST: &str = "console_screenshots::pictures_of_the_documents";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    chromium::set_up()?;
    peers::set_up_one(workspace, "browser")?;
    let folder = workspace.root.join("docs/images");
    // A single package would be recompiled with other features.
    let mut test = cargo(&workspace.root);
    test.args(["test", "--workspace", "--test", "browser", "--", "--exact", TEST]);
    check(test.env(FOLDER_VARIABLE, &folder))?;
    println!("look at the pictures in `{}` before you commit them", folder.display());
    Ok(())
}
