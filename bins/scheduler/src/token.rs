//! `blueproof-scheduler token`: makes, lists and removes tokens.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::api::Tokens;
use jiff::Timestamp;

use crate::{
    cli::{Token, TokenCommand, TokensFile},
    places,
};

impl TokensFile {
    /// Returns the tokens of the file.
    pub(crate) fn tokens(&self) -> Result<Tokens, Diagnostic> {
        let path = self.path.clone().map_or_else(places::tokens, Ok)?;
        Ok(Tokens::at(path))
    }
}

pub(crate) fn token(arguments: &Token) -> Result<(), Diagnostic> {
    let tokens = arguments.file.tokens()?;
    match &arguments.command {
        TokenCommand::Create { name, role, expires } => {
            if let Some(at) = expires.filter(|at| *at <= Timestamp::now()) {
                let past = Diagnostic::error(
                    Code::Usage,
                    format!("a token that expires at {at} would never count"),
                );
                return Err(past.hint("name a time that lies ahead, or a duration such as `30d`"));
            }
            println!("{}", tokens.create(name, *role, *expires)?);
        }
        TokenCommand::List => {
            println!("{:<24} {:<8} EXPIRES", "NAME", "ROLE");
            for token in tokens.list()?.iter() {
                let expires = token
                    .expires
                    .map_or("never".into(), |at| match at <= Timestamp::now() {
                        true => format!("{at} (expired)"),
                        false => at.to_string(),
                    });
                println!("{:<24} {:<8} {expires}", token.name, token.role.as_str());
            }
        }
        TokenCommand::Remove { name } => {
            if !tokens.remove(name)? {
                let unknown = Diagnostic::error(Code::NotFound, format!("there is no token called `{name}`"));
                return Err(unknown.hint("`blueproof-scheduler token list` lists them"));
            }
        }
    }
    Ok(())
}
