//! A GitHub with a memory on loopback, and its runner scale sets: whatever `docs/pull-requests.md` says can be tried without GitHub.
//!
//! Commands are typed, one a line. What they do is told to a webhook as GitHub tells it; where nobody takes a delivery it is lost, and is
//! sent once more when it is asked for. Nothing here is for use by others: it listens on loopback and checks no signature of an App.

mod command;
mod hook;
mod place;
mod world;

use std::{io::BufRead as _, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use reqwest::Url;
use tokio::sync::mpsc;

use command::{Command, USAGE};
use world::World;

/// How often what was asked for once more is sent.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A GitHub with a memory on loopback, to try pull requests by hand.
#[derive(Parser)]
struct Arguments {
    /// The folder for github.yaml, the key, the webhook's secret and the repository; it is made
    #[arg(default_value = "target/fake-github")]
    folder: PathBuf,
    /// Where webhooks are sent: a scheduler on this machine
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8790/webhooks/github"
    )]
    webhook: Url,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut world = World::start(&arguments.folder, arguments.webhook).await?;
    println!("{}\n\n{USAGE}", world.described());
    let (typed, mut lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let mut every = tokio::time::interval(LOOK_EVERY);
    loop {
        let said = tokio::select! {
            line = lines.recv() => match line.as_deref().map(str::trim) {
                None | Some("quit") => return Ok(()),
                Some("") => continue,
                Some(line) => match line.parse::<Command>() {
                    Ok(command) => world.carry_out(&command).await.context("the repository could not be written")?,
                    Err(mistake) => format!("{mistake}\n{USAGE}\n"),
                },
            },
            _ = every.tick() => world.tick().await,
        };
        print!("{said}");
    }
}
