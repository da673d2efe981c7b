//! `blueproof webhook send`: what GitHub would send, by hand.

use std::{
    fs::File,
    io::{self, Read},
    net::IpAddr,
    path::Path,
    time::Duration,
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_github::webhook::{Delivery, WebhookSecret};
use reqwest::{Response, Url, redirect::Policy};
use tokio_rustls::rustls::crypto::ring;

use crate::{
    cli::WebhookSend,
    exit::{Exit, Problem},
    output,
};

/// How long the receiver has. GitHub gives up after ten seconds.
const WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of a file with a secret.
const SECRET_AT_MOST: u64 = 4096;

/// The most bytes of an answer that are shown.
const ANSWER_AT_MOST: usize = 4096;

pub(super) async fn send(arguments: &WebhookSend) -> Result<Exit, Problem> {
    let url = address(&arguments.to)?;
    let secret = secret(&arguments.secret_file)?;
    let body = payload(&arguments.file)?;
    let id = match &arguments.delivery {
        Some(id) => id.to_string(),
        None => uuid::Uuid::new_v4().to_string(),
    };
    // Where the program has chosen one already, that stays.
    let _ = ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(WITHIN)
        .redirect(Policy::none())
        .build();
    let sent = client
        .map_err(|error| not_reached(&url, &error))?
        .post(url.clone())
        .header("X-GitHub-Event", arguments.event.as_str())
        .header("X-GitHub-Delivery", &id)
        .header("X-Hub-Signature-256", secret.sign(&body))
        .header("Content-Type", "application/json")
        .body(body)
        .send();
    let response = sent.await.map_err(|error| not_reached(&url, &error))?;
    tell(&id, &url, response).await
}

/// Says what the receiver answered, in its own words.
async fn tell(id: &str, url: &Url, mut response: Response) -> Result<Exit, Problem> {
    let status = response.status();
    let mut said = Vec::new();
    while said.len() < ANSWER_AT_MOST {
        let part = response.chunk().await.map_err(|error| not_reached(url, &error))?;
        let Some(part) = part else { break };
        said.extend_from_slice(&part);
    }
    said.truncate(ANSWER_AT_MOST);
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    if !status.is_success() {
        let problem = Diagnostic::error(Code::DeliveryNotTaken, format!("{url} refused the delivery"));
        return Err(Problem {
            diagnostics: vec![problem.because(format!("it answered {status}: {said}"))],
            exit: Exit::Failed,
        });
    }
    output::print(&format!("delivery {id}: {}\n", output::line(&said)))?;
    Ok(Exit::Ok)
}

/// Reads an address. What is signed is sent to other machines by TLS alone: whoever has it can send it once more.
fn address(text: &str) -> Result<Url, Problem> {
    let refused = |why: &str| {
        let problem = Diagnostic::error(Code::Usage, format!("nothing is sent to `{text}`")).because(why);
        Problem::usage(problem.hint("write https://HOST/webhooks/github, or http:// for a loopback address"))
    };
    let url: Url = text.parse().map_err(|_| refused("it is no URL"))?;
    let is_loopback = url.host_str().is_some_and(|host| {
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        host == "localhost" || address.is_some_and(|address| address.is_loopback())
    });
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback => Ok(url),
        "http" => Err(refused("without TLS others could read what is signed")),
        _ => Err(refused("it is neither https nor http")),
    }
}

fn secret(path: &Path) -> Result<WebhookSecret, Problem> {
    let mut file = open(path)?;
    let text = read(&mut file, SECRET_AT_MOST).map_err(|error| unreadable(path, &error))?;
    // An editor puts a line break after it.
    let end = text
        .iter()
        .rposition(|byte| !b"\r\n".contains(byte))
        .map_or(0, |last| last + 1);
    let secret = WebhookSecret::new(&text[..end]);
    secret.map_err(|error| unreadable(path, &io::Error::new(io::ErrorKind::InvalidData, error)))
}

fn payload(path: &Path) -> Result<Vec<u8>, Problem> {
    let most = Delivery::LARGEST as u64;
    let body = match path == Path::new("-") {
        true => read(&mut io::stdin().lock(), most),
        false => read(&mut open(path)?, most),
    };
    body.map_err(|error| unreadable(path, &error))
}

fn open(path: &Path) -> Result<File, Problem> {
    File::open(path).map_err(|error| unreadable(path, &error))
}

fn read(from: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
        false => Ok(bytes),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let problem = Diagnostic::error(Code::Usage, "a file cannot be used");
    let problem = problem.at(SourceLocation::file(path.display().to_string()));
    Problem::usage(problem.because(error.to_string()))
}

fn not_reached(url: &Url, error: &dyn std::error::Error) -> Problem {
    let problem = Diagnostic::error(Code::DeliveryNotTaken, format!("{url} was not reached"));
    let problem = problem.caused_by(error);
    Problem {
        diagnostics: vec![problem.hint(
            "see that `blueproof-scheduler serve --github FILE` runs, and what its `webhook.listen` is",
        )],
        exit: Exit::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_sent_to_other_machines_by_tls_alone() {
        for good in [
            "https://a.example/x",
            "http://127.0.0.1:8790/x",
            "http://[::1]:1/",
            "http://localhost/",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example/x",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "nothing",
            "http://127.0.0.1.example/",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_and_one_without_a_secret_is_none() {
        assert_eq!(read(&mut &b"1234"[..], 4).expect("it fits"), b"1234");
        assert!(read(&mut &b"12345"[..], 4).is_err());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let written = |text: &str| {
            std::fs::write(&path, text).expect("room");
            secret(&path).map(|secret| secret.sign(b"x"))
        };
        let plain = written("0123456789abcdef").expect("it is one");
        assert_eq!(written("0123456789abcdef\r\n").expect("it is one"), plain);
        for none in ["", "short\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"] {
            assert!(written(none).is_err(), "{none:?}");
        }
    }
}
