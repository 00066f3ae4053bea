//! The workspace from `cargo metadata`: its directories, its packages and their dependencies.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use crate::run;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Whether `cargo publish` accepts it.
    pub(crate) published: bool,
    /// Relative to the root.
    pub(crate) manifest: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: EdgeKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EdgeKind {
    Normal,
    Build,
    Dev,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        // `cargo run` sets this variable; the compile-time value is used if the binary is started directly.
        let own_folder = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let mut metadata = run::cargo(&own_folder);
        metadata.args(["metadata", "--format-version", "1", "--no-deps"]);
        Self::parse(&serde_json::from_str(&run::read(&mut metadata)?)?)
            .context("the answer of `cargo metadata` was not understood")
    }

    fn parse(metadata: &Value) -> Result<Self> {
        let root = PathBuf::from(text(metadata, "workspace_root")?);
        let packages = list(metadata, "packages")?.map(|package| Package::parse(package, &root));
        Ok(Self {
            target: PathBuf::from(text(metadata, "target_directory")?),
            packages: packages.collect::<Result<_>>()?,
            root,
        })
    }
}

impl Package {
    fn parse(package: &Value, root: &Path) -> Result<Self> {
        let manifest = Path::new(text(package, "manifest_path")?);
        let dependencies = list(package, "dependencies")?.map(Dependency::parse);
        Ok(Self {
            name: text(package, "name")?.to_owned(),
            version: text(package, "version")?.to_owned(),
            // The allowed registries: an empty list is `publish = false`, `null` allows all.
            published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            manifest: manifest.strip_prefix(root).unwrap_or(manifest).to_owned(),
            dependencies: dependencies.collect::<Result<_>>()?,
        })
    }
}

impl Dependency {
    fn parse(dependency: &Value) -> Result<Self> {
        let kind = match dependency["kind"].as_str() {
            Some("dev") => EdgeKind::Dev,
            Some("build") => EdgeKind::Build,
            _ => EdgeKind::Normal,
        };
        Ok(Self { name: text(dependency, "name")?.to_owned(), kind })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().ok_or_else(|| anyhow!("`{key}` is missing"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<impl Iterator<Item = &'a Value>> {
    Ok(value[key].as_array().ok_or_else(|| anyhow!("`{key}` is missing"))?.iter())
}
