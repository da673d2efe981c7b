//! The scheduler's API by its own description: a real server is asked everything that the description allows, and much that it
//! does not, by schemathesis, with each role and with none.
//!
//! Two streams are left out, since they never end. schemathesis comes from PyPI: where it cannot be had, the step fails.

mod server;

use std::path::Path;

use anyhow::{Context, Result, ensure};

use self::server::{Home, Server};
use super::{StepEnd, tally::Tally};
use crate::{
    process::{Ended, Invocation, print_line},
    python::MadeFor,
    workspace::Workspace,
};

/// With all that decides which requests are made: another version would ask something else.
const PACKAGES: [&str; 3] = [
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    "jsonschema_rs==0.60.3",
];

/// The roles, and `None` for whoever has no token.
const ROLES: [Option<&str>; 5] = [None, Some("read"), Some("run"), Some("approve"), Some("admin")];

/// How many requests of each kind are made up for an operation, besides those that cover its description: all roles together take
/// a minute.
const EXAMPLES: &str = "20";

/// The same requests each time.
const SEED: &str = "1";

/// Longer than an answer that waits for something.
const ANSWER_WITHIN: &str = "30";

/// Streams that never end.
const ENDLESS: [&str; 2] = [
    "/api/v1/facts/stream",
    "/api/v1/attempts/{attempt}/records/stream",
];

pub(super) fn run(workspace: &Workspace) -> Result<StepEnd> {
    let schemathesis = MadeFor {
        python: python(workspace)?.into(),
        packages: PACKAGES.map(str::to_owned).into(),
    };
    let environment = workspace.target.join("ci/schemathesis");
    schemathesis.install("schemathesis", &environment)?;
    let home = Home::prepare(workspace)?;
    let server = Server::start(&home)?;
    let end = ask_all(&environment.join("bin/st"), &home, &server)?;
    server.end(&home)?;
    Ok(end)
}

fn python(workspace: &Workspace) -> Result<String> {
    let find = Invocation::of("python3", ["-c", "import sys; print(sys.executable)"]);
    let found = find.ask(&workspace.root);
    let found = found.context("there is no `python3`, for which schemathesis is installed from PyPI")?;
    Ok(found.trim().to_owned())
}

/// Asks with each role, and then for what is there: what is made up seldom names a run that there is.
fn ask_all(program: &Path, home: &Home, server: &Server) -> Result<StepEnd> {
    let mut asked = Vec::new();
    for role in ROLES {
        let name = role.unwrap_or("nobody");
        let config = home.write(&format!("{name}.toml"), &of_role(home, role)?)?;
        asked.push((name, ask(program, server, &config)));
    }
    let config = of_role(home, Some("read"))? + &of_run(&home.request()?);
    let config = home.write("there.toml", &config)?;
    let of_run = ["--include-method", "GET", "--phases", "fuzzing"];
    asked.push((
        "read, of a run that there is",
        ask(program, server, &config).with(of_run),
    ));
    for (who, invocation) in asked {
        let mut said = Vec::new();
        let ended = invocation.run(home.folder(), |line| said.push(line.to_owned()))?;
        if ended == Ended::Badly {
            said.iter().for_each(|line| print_line(line));
            print_line(&format!(
                "\nfailed, as {who}: {invocation}\nthe server's log is {}",
                home.log().display()
            ));
            return Ok(StepEnd::Failed(Tally::default()));
        }
        let counted = said.iter().find(|line| line.contains(" generated, "));
        let counted = counted.with_context(|| format!("`{invocation}` does not say what it asked"))?;
        print_line(&format!("as {who}: {}", counted.trim()));
    }
    Ok(StepEnd::Passed(Tally::default()))
}

fn ask(program: &Path, server: &Server, config: &str) -> Invocation {
    let location = format!("{}/openapi.json", server.url());
    let arguments = [
        "--config-file",
        config,
        "run",
        &location,
        "--workers",
        "1",
        "--no-color",
    ];
    let bounds = [
        "--seed",
        SEED,
        "--max-examples",
        EXAMPLES,
        "--request-timeout",
        ANSWER_WITHIN,
    ];
    let endless = ENDLESS.into_iter().flat_map(|path| ["--exclude-path", path]);
    Invocation::of(program, arguments.into_iter().chain(bounds).chain(endless))
}

/// Returns the configuration that sends a role's token: not on the command line, which is printed.
fn of_role(home: &Home, role: Option<&str>) -> Result<String> {
    let Some(role) = role else {
        return Ok(String::new());
    };
    let token = home.token(role)?;
    ensure!(
        token.starts_with("bps_"),
        "what was made for the role {role} is no token"
    );
    Ok(format!("headers = {{ Authorization = \"Bearer {token}\" }}\n"))
}

/// Returns the configuration that asks for the run of a request, and nothing else.
fn of_run(request: &str) -> String {
    format!(
        "[parameters]\n\"path.run\" = \"r-1\"\n\"path.attempt\" = \"r-1.1\"\n\"path.key\" = \"{request}\"\n\
         \"query.name\" = \"r-1/report.html\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_the_same_each_time_and_no_stream_without_an_end() {
        let server = Server::at("http://127.0.0.1:8787");
        let expected = "/e/bin/st --config-file /h/read.toml run http://127.0.0.1:8787/openapi.json --workers 1 --no-color \
                        --seed 1 --max-examples 20 --request-timeout 30 --exclude-path /api/v1/facts/stream \
                        --exclude-path '/api/v1/attempts/{attempt}/records/stream'";
        let asked = ask(Path::new("/e/bin/st"), &server, "/h/read.toml");
        assert_eq!(asked.to_string(), expected);
    }
}
