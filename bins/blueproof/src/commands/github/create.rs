//! `blueproof github app create`: a GitHub App from a manifest, and the files that a scheduler needs of it.

use std::{future::Future, sync::Arc, time::Duration};

use blueproof_core::ports::SystemClock;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::{
    api::{ApiError, ApiRetry},
    registration::{AppManifest, AppOwner, Listener, NAME_AT_MOST, RegistrationCode},
    rest::{AppTokens, Installation, RegisteredApp, registered_app},
};
use blueproof_scale_set::{AppInstallation, AppKey};
use tokio::time::timeout;

use super::files::{Files, WrittenConnection};
use crate::{
    cli::GitHubAppCreate,
    exit::{Exit, Problem},
    output::{self, Encoding},
};

/// How often it is looked whether the App is installed.
const LOOK_EVERY: Duration = Duration::from_secs(3);

const GITHUB_API: &str = "https://api.github.com";
const GITHUB_WEB: &str = "https://github.com";

pub(super) async fn create(arguments: &GitHubAppCreate) -> Result<Exit, Problem> {
    let (manifest, owner) = (manifest(arguments)?, owner(arguments));
    if arguments.print {
        return print(arguments, &manifest, &owner);
    }
    let files = Files::to_be_in(&arguments.folder)?;
    let code = code(arguments, &manifest, &owner).await?;
    let app = registered_app(&arguments.api, &code)
        .await
        .map_err(|error| of_api(&error))?;
    files.write_secrets(&app.pem, app.webhook_secret.as_deref())?;
    let (name, install) = (
        output::line(&app.slug),
        format!("{}/installations/new", output::line(&app.html_url)),
    );
    output::note(&format!(
        "registered {name}, number {}\ninstall it in {}: {install}",
        app.id,
        listed(arguments)
    ));
    let installation = installation(arguments, &app, &install).await?;
    let (id, number) = (app.id.to_string(), installation.id.to_string());
    let has_webhook = app.webhook_secret.is_some();
    files.write_connection(&connection(arguments, &id, &number, has_webhook))?;
    let file = files.connection();
    let file = output::line(&file.display().to_string());
    output::print(&format!("{file}\n"))?;
    output::note(&format!("next: `blueproof-scheduler serve --github {file}`"));
    Ok(Exit::Ok)
}

/// Waits for a browser that comes back from GitHub.
async fn code(
    arguments: &GitHubAppCreate,
    manifest: &AppManifest,
    owner: &AppOwner,
) -> Result<RegistrationCode, Problem> {
    let failed = |error: std::io::Error| {
        let problem = Diagnostic::error(
            Code::ServerNotReached,
            "no page can be shown on a loopback address",
        );
        Problem {
            diagnostics: vec![
                problem
                    .caused_by(&error)
                    .hint("`--print` prints the steps without a page"),
            ],
            exit: Exit::Infrastructure,
        }
    };
    let listener = Listener::bind(manifest, owner, &arguments.web)
        .await
        .map_err(failed)?;
    output::note(&format!(
        "open this page in a browser on this machine, and agree there:\n{}",
        listener.address()
    ));
    let code = within(arguments, listener.code()).await;
    code.ok_or_else(|| {
        let problem = Diagnostic::error(Code::AppNotReady, "no App was registered in time");
        timed_out(problem.hint("start the command again; `--print` prints the steps for a browser elsewhere"))
    })?
    .map_err(failed)
}

/// Waits until the App is installed.
async fn installation(
    arguments: &GitHubAppCreate,
    app: &RegisteredApp,
    install: &str,
) -> Result<Installation, Problem> {
    let key = AppKey::from_pem(&app.pem).map_err(|error| {
        let problem = Diagnostic::error(Code::GitHubRefuses, "GitHub gave a key that cannot be used");
        Problem::usage(problem.caused_by(&error))
    })?;
    let as_app = AppInstallation {
        issuer: app.id.to_string(),
        // No token of an installation is asked for.
        installation: 0,
        key,
    };
    let tokens =
        AppTokens::new(&arguments.api, as_app, Arc::new(SystemClock)).map_err(|error| of_api(&error))?;
    let found = within(arguments, until_installed(&tokens)).await;
    found.ok_or_else(|| {
        let id = app.id.to_string();
        let text = connection(arguments, &id, "NUMBER", app.webhook_secret.is_some()).text();
        let problem = Diagnostic::error(Code::AppNotReady, "the App was not installed in time");
        let problem = problem.hint(format!("install it: {install}"));
        timed_out(problem.hint(format!("then write github.yaml beside app.pem:\n{text}")))
    })?
}

async fn until_installed(tokens: &AppTokens) -> Result<Installation, Problem> {
    loop {
        match tokens.installations().await {
            Ok(mut all) if !all.is_empty() => return Ok(all.remove(0)),
            Ok(_) => {}
            // Right after the registration GitHub may not know the App everywhere.
            Err(error) if error.retry != ApiRetry::Never => {}
            Err(error) => return Err(of_api(&error)),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn within<T>(arguments: &GitHubAppCreate, future: impl Future<Output = T>) -> Option<T> {
    let limit = Duration::try_from(arguments.wait).unwrap_or_default();
    timeout(limit, future).await.ok()
}

/// Prints what is to be done with a browser elsewhere, or none.
fn print(arguments: &GitHubAppCreate, manifest: &AppManifest, owner: &AppOwner) -> Result<Exit, Problem> {
    output::print(&output::encode(&manifest.to_json(None), Encoding::Json)?)?;
    let secret = match manifest.webhook {
        Some(_) => {
            "\n3. under `Webhook secret` put random digits (`openssl rand -hex 32`), and write them to webhook-secret; chmod 600"
        }
        None => "\n3. leave the webhook inactive",
    };
    let text = connection(arguments, "APP", "INSTALLATION", manifest.webhook.is_some()).text();
    output::note(&format!(
        "nothing was registered. The same by hand:\n\n\
         1. open this page, in which the manifest is filled in, in any browser:\n   {}\n\
         2. compare the permissions and events with the manifest above{secret}\n\
         4. register the App, generate a private key, and write it to app.pem; chmod 600\n\
         5. install the App in {}\n\
         6. write github.yaml, with the App's number and the one at the end of the installation's address:\n\n{}",
        manifest.filled_in_page(&arguments.web, owner),
        listed(arguments),
        text.trim_end(),
    ));
    Ok(Exit::Ok)
}

fn connection<'a>(
    arguments: &'a GitHubAppCreate,
    app: &'a str,
    installation: &'a str,
    has_webhook: bool,
) -> WrittenConnection<'a> {
    let other = |address: &'a str, usual: &str| (address != usual).then_some(address);
    WrittenConnection {
        app,
        installation,
        repositories: &arguments.repositories,
        listen: has_webhook.then_some(arguments.listen.as_str()),
        api: other(&arguments.api, GITHUB_API),
        // Commits are fetched by TLS alone.
        web: other(&arguments.web, GITHUB_WEB).filter(|web| web.starts_with("https://")),
    }
}

fn manifest(arguments: &GitHubAppCreate) -> Result<AppManifest, Problem> {
    let first = arguments.repositories.first().expect("clap wants one");
    let owner = first.0.split('/').next().unwrap_or_default();
    let name = arguments.name.clone().unwrap_or_else(|| {
        let name = format!("blueproof for {owner}");
        name.chars().take(NAME_AT_MOST).collect()
    });
    for (option, address) in [
        ("--api", Some(&arguments.api)),
        ("--web", Some(&arguments.web)),
        ("--homepage", arguments.homepage.as_ref()),
        ("--webhook-url", arguments.webhook_url.as_ref()),
    ] {
        address.map_or(Ok(()), |address| check_address(option, address))?;
    }
    if name.trim().is_empty() || name.chars().count() > NAME_AT_MOST {
        let message = format!(
            "GitHub takes no name of an App with more than {NAME_AT_MOST} characters, nor an empty one"
        );
        return Err(Problem::usage(
            Diagnostic::error(Code::Usage, message).hint("name the App with --name"),
        ));
    }
    Ok(AppManifest {
        name,
        homepage: arguments
            .homepage
            .clone()
            .unwrap_or_else(|| format!("{}/{}", arguments.web, first.0)),
        webhook: arguments.webhook_url.clone(),
        has_merge_queue: arguments.merge_queue,
    })
}

/// The key comes from the API, and deliveries go to the webhook: neither without TLS, but on this machine.
fn check_address(option: &str, address: &str) -> Result<(), Problem> {
    let loopback = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let is_safe = address.starts_with("https://") || loopback.iter().any(|begin| address.starts_with(begin));
    let is_plain = address
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\"'<>;,".contains(&byte));
    if is_safe && is_plain && !address.ends_with('/') {
        return Ok(());
    }
    let message = format!("`{address}` is no address for {option}");
    let problem = Diagnostic::error(Code::Usage, message);
    Err(Problem::usage(problem.hint(
        "write https://HOST without a slash at the end, or http:// for a loopback address",
    )))
}

fn owner(arguments: &GitHubAppCreate) -> AppOwner {
    arguments
        .organization
        .clone()
        .map_or(AppOwner::User, AppOwner::Organization)
}

fn listed(arguments: &GitHubAppCreate) -> String {
    let names = arguments
        .repositories
        .iter()
        .map(|repository| repository.0.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn of_api(error: &ApiError) -> Problem {
    let exit = match error.retry {
        ApiRetry::Never => Exit::Usage,
        ApiRetry::Later | ApiRetry::After(_) => Exit::Infrastructure,
    };
    Problem {
        diagnostics: vec![error.diagnostic()],
        exit,
    }
}

fn timed_out(problem: Diagnostic) -> Problem {
    Problem {
        diagnostics: vec![problem],
        exit: Exit::TimedOut,
    }
}
