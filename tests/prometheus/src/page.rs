//! A page on a loopback port, for a Prometheus to read.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use super::PATIENCE;

/// A page that is served for as long as the test runs.
#[derive(Debug)]
pub struct Page {
    address: String,
    /// Gets a word each time that somebody was served.
    served: Receiver<()>,
}

impl Page {
    /// Serves what `page` returns, which is asked anew each time.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    pub fn serve(content_type: &'static str, mut page: impl FnMut() -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (serving, served) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // Whoever goes away meanwhile comes again, and whoever waits for them has their patience.
                let answered = stream.and_then(|stream| answer(stream, content_type, &page()));
                if answered.is_ok() && serving.send(()).is_err() {
                    return;
                }
            }
        });
        Self { address, served }
    }

    /// Returns the address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until somebody was served.
    ///
    /// # Panics
    ///
    /// Panics if nobody comes.
    pub fn wait(&self) {
        self.served
            .recv_timeout(PATIENCE)
            .expect("somebody reads the page");
    }
}

fn answer(mut stream: TcpStream, content_type: &str, page: &str) -> io::Result<()> {
    for line in BufReader::new(stream.try_clone()?).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let length = page.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    )
}
