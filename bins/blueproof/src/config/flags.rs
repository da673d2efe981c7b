//! The flags that say where values come from, which every command takes.

use std::path::PathBuf;

use clap::Args;

/// The flags that choose the store or scheduler to work with.
#[derive(Debug, Args)]
pub(crate) struct ConfigFlags {
    /// The store of all runs
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) store: Option<PathBuf>,
    /// The scheduler to connect to, instead of a store: unix:PATH or a URL
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        conflicts_with = "store",
        help_heading = "Global options"
    )]
    pub(crate) server: Option<String>,
    /// The configured context to use: a named scheduler or store
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        conflicts_with_all = ["store", "server"],
        help_heading = "Global options"
    )]
    pub(crate) context: Option<String>,
    /// A configuration file that overrides the project's and the user's
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
}
