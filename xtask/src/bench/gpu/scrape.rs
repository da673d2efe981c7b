//! One scrape, as Prometheus makes it.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// What Prometheus says that it takes.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";

/// How long anything may take, other than where it is told to hang.
const AT_MOST: Duration = Duration::from_secs(60);

/// How an answer may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Compressed, as Prometheus asks for it.
    Gzip,
    /// As it is.
    Identity,
}

/// Scrapes a path, and returns how long it took to have all of it.
pub(super) fn scrape(address: &str, path: &str, coding: Coding) -> Result<Duration> {
    let coding = match coding {
        Coding::Gzip => "gzip",
        Coding::Identity => "identity",
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {ACCEPT}\r\nAccept-Encoding: {coding}\r\n\
         Connection: close\r\n\r\n"
    );
    let (answer, took) = ask(address, &request, AT_MOST)?;
    ensure!(
        is_good(&answer),
        "{address}{path} answered {}",
        first_line(&answer)
    );
    Ok(took)
}

/// Returns a page as text, and how long it took; `None` where there is no whole answer in time.
pub(super) fn page(address: &str, within: Duration) -> Result<Option<(String, Duration)>> {
    // An answer to HTTP/1.0 is in one piece.
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\nAccept: text/plain\r\n\r\n");
    match ask(address, &request, within) {
        Ok((answer, took)) => {
            ensure!(is_good(&answer), "{address} answered {}", first_line(&answer));
            Ok(Some((body(&answer)?, took)))
        }
        Err(error) if is_late(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn ask(address: &str, request: &str, within: Duration) -> Result<(Vec<u8>, Duration)> {
    let doing = || format!("could not scrape {address}");
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).with_context(doing)?;
    stream.set_read_timeout(Some(within)).with_context(doing)?;
    stream.write_all(request.as_bytes()).with_context(doing)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(doing)?;
    Ok((answer, begun.elapsed()))
}

fn is_late(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(
        kind,
        Some(std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    )
}

fn first_line(answer: &[u8]) -> String {
    let line = answer.split(|byte| *byte == b'\r').next();
    String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
}

fn is_good(answer: &[u8]) -> bool {
    first_line(answer).split(' ').nth(1) == Some("200")
}

fn body(answer: &[u8]) -> Result<String> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        bail!("there is no end of the head");
    };
    String::from_utf8(answer[end + 4..].to_vec()).context("the page is no text")
}

/// Returns how many series a page has.
pub(super) fn series(page: &str) -> usize {
    page.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count()
}

/// Returns the value of a series without labels.
pub(super) fn value(page: &str, name: &str) -> Option<f64> {
    let mut lines = page.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(series, _)| *series == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let answer = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n# HELP a A\na 2\na_b 0.5\n\n";
        assert!(is_good(answer));
        let page = body(answer).expect("there is one");
        assert_eq!(series(&page), 2);
        assert_eq!((value(&page, "a_b"), value(&page, "b")), (Some(0.5), None));
        assert!(!is_good(b"HTTP/1.1 500 Internal Server Error\r\n\r\n"));
        assert!(!is_good(b""));
        assert!(body(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
