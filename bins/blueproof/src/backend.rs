//! Where the runs are that commands are about: in a store on this machine, or behind a scheduler's API.

use std::{fs, ops::Deref, sync::Arc};

use blueproof_cluster::local::LocalOutput;
use blueproof_core::{
    ports::{AttemptOutput, DeliveryClient, StoreClient, StoreError},
    sqlite::SqliteStore,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_host::{ServerAddress, ServerClient};
use blueproof_queue::objects::Objects;

use crate::{
    config::{Config, ProcessEnv},
    exit::Problem,
};

/// The variable that holds a token.
const TOKEN: &str = "BLUEPROOF_TOKEN";

/// The longest that a file with a token is.
const TOKEN_AT_MOST: usize = 4096;

/// Where runs are kept. What both can do is done on the port that it leads to.
#[derive(Clone)]
pub(crate) enum Backend {
    /// In a file on this machine.
    Here {
        store: Arc<SqliteStore>,
        output: Arc<dyn AttemptOutput>,
    },
    /// Behind a scheduler's API.
    Server(Arc<ServerClient>),
}

impl Backend {
    /// Returns what is configured, without making anything; `None` where nothing was ever stored there.
    pub(crate) fn existing(config: &Config) -> Result<Option<Self>, Problem> {
        if let Some(server) = Self::server(config)? {
            return Ok(Some(server));
        }
        let store = SqliteStore::open_existing(&config.store.value)?;
        Ok(store.map(|store| {
            let output = LocalOutput::new(config.runs_of(store.identity()));
            Self::Here {
                store: Arc::new(store),
                output: Arc::new(output),
            }
        }))
    }

    /// Returns the server that is configured, if one is. Nothing is asked of it yet.
    pub(crate) fn server(config: &Config) -> Result<Option<Self>, Problem> {
        let Some(address) = config.server.value.clone() else {
            return Ok(None);
        };
        let client = ServerClient::new(address, token(config)?).map_err(Problem::usage)?;
        Ok(Some(Self::Server(Arc::new(client))))
    }

    /// Returns what attempts leave.
    pub(crate) fn output(&self) -> Arc<dyn AttemptOutput> {
        match self {
            Self::Here { output, .. } => output.clone(),
            Self::Server(client) => client.clone(),
        }
    }

    /// Returns the deliveries of webhooks.
    pub(crate) fn deliveries(&self) -> &dyn DeliveryClient {
        match self {
            Self::Here { store, .. } => &**store,
            Self::Server(client) => &**client,
        }
    }

    /// Returns the store's file, where it is on this machine.
    pub(crate) fn file(&self) -> Option<&SqliteStore> {
        match self {
            Self::Here { store, .. } => Some(store),
            Self::Server(_) => None,
        }
    }

    /// Returns the queues that were applied last; `None` where nobody has applied any and nobody else knows.
    pub(crate) async fn applied_quota(&self) -> Result<Option<Objects>, StoreError> {
        match self {
            Self::Here { store, .. } => store.applied_quota().await,
            Self::Server(client) => client.queues().await.map(Some),
        }
    }

    /// Returns where it is, in words.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Here { store, .. } => store.path().display().to_string(),
            Self::Server(client) => client.address().to_string(),
        }
    }
}

impl Deref for Backend {
    type Target = dyn StoreClient;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Here { store, .. } => &**store,
            Self::Server(client) => &**client,
        }
    }
}

/// Returns the token that is sent to a server, if one is configured.
fn token(config: &Config) -> Result<Option<String>, Problem> {
    let process_env = ProcessEnv::of_this_process()?;
    if let Some(token) = process_env.variable(TOKEN) {
        let token = token.to_str().map(str::trim).filter(|token| is_token(token));
        let wrong = || {
            let message = format!("{TOKEN} holds no token");
            Problem::usage(
                Diagnostic::error(Code::ConfigValue, message)
                    .hint("`blueproof-scheduler token create` makes one"),
            )
        };
        return token.map(|token| Some(token.to_owned())).ok_or_else(wrong);
    }
    let Some(path) = &config.token_file.value else {
        return Ok(None);
    };
    let unreadable = |why: &str| {
        let diagnostic = Diagnostic::error(Code::TokensUnreadable, "the file with the token cannot be used");
        let diagnostic = diagnostic
            .at(SourceLocation::file(path.display().to_string()))
            .because(why);
        Problem::usage(diagnostic.hint("it holds one token and nothing else; BLUEPROOF_TOKEN goes before it"))
    };
    let text = fs::read_to_string(path).map_err(|error| unreadable(&error.to_string()))?;
    let token = text.trim();
    match is_token(token) {
        true => Ok(Some(token.to_owned())),
        false => Err(unreadable("what stands in it is no token")),
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN_AT_MOST && text.chars().all(|c| c.is_ascii_graphic())
}

/// Returns why a folder cannot be run on a server, where that is not on this machine.
pub(crate) fn check_shares_folders(address: &ServerAddress) -> Result<(), Problem> {
    let is_here = match address {
        ServerAddress::Unix(_) => true,
        ServerAddress::Url(url) => url.host_str().is_some_and(|host| {
            let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
            host == "localhost" || address.is_some_and(|address| address.is_loopback())
        }),
    };
    if is_here {
        return Ok(());
    }
    let message =
        format!("the folder of a blueprint is on this machine, and the scheduler at {address} is on another");
    let refused = Diagnostic::error(Code::Usage, message);
    Err(Problem::usage(refused.hint(
        "run it where the scheduler is, or on this machine, without `--server`",
    )))
}
