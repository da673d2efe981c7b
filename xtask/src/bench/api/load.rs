//! Requests one after the other on a few connections, bounded in number and in time.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// How many connections ask at a time.
pub(super) const CONNECTIONS: usize = 4;

/// How much each connection asks before anything is counted, and how much after that at most.
const WARM_UP: usize = 50;
const REQUESTS_AT_MOST: usize = 5_000;

/// How long a load goes on at most, and how long one answer may take.
const GOES_ON_FOR: Duration = Duration::from_secs(5);
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How requests were answered.
pub(super) struct Load {
    /// How long each took, the shortest first.
    pub(super) seconds: Vec<f64>,
    /// How many were answered in a second.
    pub(super) per_second: f64,
}

impl Load {
    /// Asks for one path on all connections at a time.
    pub(super) fn of(address: &str, token: &str, path: &str) -> Result<Self> {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        let begun = Instant::now();
        let times: Result<Vec<(Vec<f64>, f64)>> = thread::scope(|scope| {
            let asking: Vec<_> = (0..CONNECTIONS)
                .map(|_| scope.spawn(|| ask(address, &request, begun)))
                .collect();
            let times = asking
                .into_iter()
                .map(|asking| asking.join().expect("asking does not panic"));
            times.collect()
        });
        let times = times.with_context(|| format!("could not ask http://{address}{path}"))?;
        let per_second = times.iter().map(|(times, took)| times.len() as f64 / took).sum();
        let mut seconds: Vec<f64> = times.into_iter().flat_map(|(times, _)| times).collect();
        seconds.sort_by(f64::total_cmp);
        Ok(Self { seconds, per_second })
    }
}

/// Returns how long each request took on one connection, and all of them.
fn ask(address: &str, request: &str, begun: Instant) -> Result<(Vec<f64>, f64)> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    let mut stream = BufReader::new(stream);
    let mut once = || {
        stream.get_mut().write_all(request.as_bytes())?;
        read_answer(&mut stream)
    };
    for _ in 0..WARM_UP {
        once()?;
    }
    let (counted, mut times) = (Instant::now(), Vec::new());
    while times.len() < REQUESTS_AT_MOST && begun.elapsed() < GOES_ON_FOR {
        let asked = Instant::now();
        once()?;
        times.push(asked.elapsed().as_secs_f64());
    }
    Ok((times, counted.elapsed().as_secs_f64()))
}

/// Reads a whole answer, which has to be a success, and returns how many bytes its body has.
fn read_answer(stream: &mut impl BufRead) -> Result<usize> {
    let mut status = String::new();
    stream.read_line(&mut status)?;
    ensure!(status.split(' ').nth(1) == Some("200"), "it answered {status:?}");
    let mut length = None;
    loop {
        let mut line = String::new();
        ensure!(
            stream.read_line(&mut line)? > 0,
            "the answer has no end of its head"
        );
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse().context("a length that is no number")?);
        }
    }
    let Some(length) = length else {
        bail!("the answer does not say how long it is");
    };
    let read = std::io::copy(&mut stream.take(length), &mut std::io::sink())?;
    ensure!(read == length, "the answer is cut off");
    Ok(usize::try_from(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end_and_no_further() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 Not Found\r\n\r\n";
        let mut stream = text.as_bytes();
        assert_eq!(read_answer(&mut stream).expect("a success"), 3);
        assert!(read_answer(&mut stream).is_err(), "the second is no success");
        let mut short = &b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"[..];
        assert!(read_answer(&mut short).is_err(), "it is cut off");
    }
}
