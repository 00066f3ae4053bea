//! The files that `toolhub servers import` reads: the default files of a client, a named file, or all existing ones.

use std::path::Path;

use toolhub::settings::{ConfigError, Paths};
use toolhub_client_config as clients;
use toolhub_client_config::{Client, ClientEnvironment, ConfigLocation, FileScope};
use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;

use crate::app::App;
use crate::args::ImportArgs;
use crate::exit::UsageError;

/// The files to read, by client.
pub(crate) fn find(
    app: &App,
    args: &ImportArgs,
    environment: &ClientEnvironment,
    paths: &Paths,
) -> anyhow::Result<Vec<(Client, Vec<ConfigLocation>)>> {
    let lang = app.lang();
    // Files of a project are imported only if they are named or the folder is trusted, since an import makes their servers
    // permanent servers of the user.
    let allowed = |location: &ConfigLocation| match &location.scope {
        FileScope::User => true,
        FileScope::Project(folder) => {
            app.run_trust().covers_run(folder) || paths.workspace.has_trusted(&location.file)
        }
    };
    let present_files = |client: Client| -> Vec<ConfigLocation> {
        let found = clients::config_locations(client, environment)
            .into_iter()
            .filter(|location| location.file.is_file());
        let (used, left): (Vec<ConfigLocation>, Vec<ConfigLocation>) = found.partition(allowed);
        for location in left {
            let file = location.file.file_name().map(Path::new).unwrap_or(&location.file);
            let file = location.file.strip_prefix(&environment.folder).unwrap_or(file).display().to_string();
            app.screen.warn(&lang.choose(
                format!("`{file}` came with this folder and is not imported unless you name it: toolhub servers import {}", shell::shell_quote(&file)),
                format!("`{file}` 来自此目录，除非指明文件，否则不会导入：toolhub servers import {}", shell::shell_quote(&file)),
            ));
        }
        used
    };
    let Some(what) = &args.what else {
        let all = Client::all().map(|client| (client, present_files(client)));
        return Ok(all.filter(|(_, locations)| !locations.is_empty()).collect());
    };
    if let Some(client) = Client::named(what) {
        let found = present_files(client);
        if !found.is_empty() {
            return Ok(vec![(client, found)]);
        }
        let searched = clients::config_locations(client, environment);
        let searched: Vec<String> =
            searched.iter().map(|location| format!("`{}`", location.file.display())).collect();
        let (title, searched) = (client.title(), searched.join(", "));
        return Err(UsageError(lang.choose(
            format!("there is no file of {title}: looked for {searched}"),
            format!("没有找到 {title} 的文件：已查找 {searched}"),
        ))
        .into());
    }
    let file = Path::new(what);
    if !file.is_file() {
        return Err(unknown(app, what).into());
    }
    let text = std::fs::read_to_string(file).map_err(|error| ConfigError::io(file, &error))?;
    match clients::detect_client(file, &text, environment) {
        Some(location) => Ok(vec![(location.client, vec![location])]),
        None => Err(ConfigError::whole(
            file,
            LocalizedText::new("it contains no servers of a known client", "其中没有已知客户端的服务器"),
        )
        .into()),
    }
}

fn unknown(app: &App, what: &str) -> UsageError {
    let names: Vec<&str> = Client::all().map(|client| client.name()).collect();
    let suggestion = toolhub_engine::similar_names(what, names.iter().copied(), 1);
    let names = names.join(", ");
    let lang = app.lang();
    UsageError(match suggestion.first() {
        Some(suggestion) => lang.choose(
            format!("`{what}` is neither a client nor a file; did you mean `{suggestion}`?"),
            format!("`{what}` 既不是客户端也不是文件；是否想用 `{suggestion}`？"),
        ),
        None => lang.choose(
            format!("`{what}` is neither a client nor a file; the clients are {names}"),
            format!("`{what}` 既不是客户端也不是文件；客户端有 {names}"),
        ),
    })
}
