//! Takes secrets out of text before it is stored or shown: known ones, in the forms in which they usually slip out, and
//! whatever is shaped like a token or a key.

use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    bare::Bare,
    forms::{Forms, SHORTEST_CHARS, add_forms},
    spread::Spread,
    tokens::{self, tokens},
    unescaped::{ESCAPES, Unescaped},
};

/// What stands where a secret stood.
const MASK: &str = "***";

/// How much of a stream is held back at most, beyond the longest secret: where more stands that nobody sees, it is no secret.
const MOST_HELD: usize = 64 << 10;
/// How often a text may have been escaped, beyond the once that the forms of a secret are of.
const MOST_ESCAPED: usize = 2;

/// Knows the secrets of an attempt. Copies share them.
#[derive(Clone)]
pub struct Redactor {
    patterns: Arc<Patterns>,
    too_short: usize,
    /// What was shaped like a token, since somebody asked last.
    met: Arc<Mutex<BTreeSet<&'static str>>>,
}

struct Patterns {
    whole: Forms,
    spread: Spread,
}

/// Redacts one stream of text whose chunks may be cut within a secret.
#[derive(Clone)]
pub struct RedactedStream {
    redactor: Redactor,
    held: String,
}

impl Redactor {
    /// Returns a redactor for these values. Also found are their forms in Base64, URLs, HTML and in quotes, and each
    /// line of a value that has several.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut too_short = 0;
        let mut parts = Vec::new();
        for value in values {
            if value.trim().chars().count() < SHORTEST_CHARS {
                too_short += usize::from(!value.trim().is_empty());
                continue;
            }
            parts.push(value);
            // A key's armour (`-----BEGIN …`) is no secret by itself, and a brace is none either.
            let lines = value.lines().map(str::trim);
            parts.extend(lines.filter(|line| line.chars().count() >= 8 && !line.starts_with("-----")));
        }
        let mut forms = Vec::new();
        parts.iter().for_each(|part| add_forms(part, &mut forms));
        Self {
            patterns: Arc::new(Patterns {
                whole: Forms::new(forms),
                spread: Spread::new(&parts),
            }),
            too_short,
            met: Arc::default(),
        }
    }

    /// Returns what was shaped like a token in the texts since this was asked last, such as `a GitHub token`.
    pub fn take_met(&self) -> BTreeSet<&'static str> {
        std::mem::take(&mut *self.met.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether a known secret stands in the text.
    pub fn is_known_in(&self, text: &str) -> bool {
        self.patterns.whole.is_in(text)
    }

    /// Returns how many values are too short to be taken out: fewer than four characters. Say so to whoever set them.
    pub fn too_short(&self) -> usize {
        self.too_short
    }

    /// Returns a whole text without the secrets.
    pub fn redact(&self, text: &str) -> String {
        self.find(text, &Bare::of(text)).masked(text)
    }

    /// Takes the secrets out of every text in `value`, the keys included.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(members) => {
                let old = std::mem::take(members);
                for (key, mut member) in old {
                    self.redact_json(&mut member);
                    members.insert(self.redact(&key), member);
                }
            }
        }
    }

    /// Returns a stream without anything taken in yet.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream {
            redactor: self.clone(),
            held: String::new(),
        }
    }

    /// Returns where secrets stand, as the text stands or as it is seen.
    fn find(&self, text: &str, bare: &Bare<'_>) -> Found {
        let mut found = self.find_plain(text);
        if bare.differs() {
            let seen = self.find_plain(bare.text());
            found.secrets.extend(seen.secrets.iter().map(|at| bare.range(at)));
            found.whole.extend(seen.whole.iter().map(|at| bare.range(at)));
        }
        let written = self.find_written(bare.text(), MOST_ESCAPED);
        found.secrets.extend(written.iter().map(|at| bare.range(at)));
        found.secrets = joined(found.secrets);
        found
    }

    fn find_plain(&self, text: &str) -> Found {
        let shaped = tokens(text);
        if !shaped.is_empty() {
            let met = shaped.iter().map(|token| token.name);
            self.met
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(met);
        }
        let known = self.patterns.whole.find(text);
        Found {
            secrets: known.chain(shaped.iter().map(|token| token.at.clone())).collect(),
            whole: shaped.into_iter().map(|token| token.within).collect(),
        }
    }

    /// Returns where known secrets stand that are written in several pieces, or were escaped up to so many times.
    fn find_written(&self, text: &str, escaped: usize) -> Vec<Range<usize>> {
        if self.patterns.whole.is_empty() {
            return Vec::new();
        }
        let mut found = self.patterns.spread.find(text);
        let Some(deeper) = escaped.checked_sub(1) else {
            return found;
        };
        for before in ESCAPES.iter().filter_map(|escape| Unescaped::of(text, escape)) {
            let inner = self.find_written(before.text(), deeper).into_iter();
            let inner = inner.chain(self.patterns.whole.find(before.text()));
            found.extend(inner.map(|at| before.place(at.start)..before.place(at.end)));
        }
        found
    }

    /// Returns where the end of `text` begins that may be the beginning of a secret, as it stands or as it is seen.
    fn undecided(&self, text: &str, bare: &Bare<'_>) -> usize {
        let mut at = self.plain_undecided(text);
        if bare.differs() {
            let seen = bare.place(self.plain_undecided(bare.text()));
            at = bare.outside(at).min(seen).min(bare.open.unwrap_or(text.len()));
        }
        let written = self.written_undecided(bare.text(), MOST_ESCAPED);
        if written < bare.text().len() {
            at = at.min(bare.place(written));
        }
        text.floor_char_boundary(at.max(text.len().saturating_sub(self.most_held())))
    }

    fn most_held(&self) -> usize {
        MOST_HELD + self.patterns.whole.longest
    }

    fn plain_undecided(&self, text: &str) -> usize {
        let at = self.patterns.whole.undecided(text).min(tokens::undecided(text));
        // What is cut must be text: a secret begins at a character, so an earlier cut holds back a little more.
        text.floor_char_boundary(at)
    }

    /// Returns where the end of `text` begins that may be the beginning of what [`Self::find_written`] finds.
    fn written_undecided(&self, text: &str, escaped: usize) -> usize {
        if self.patterns.whole.is_empty() {
            return text.len();
        }
        let at = self.patterns.spread.undecided(text);
        let Some(deeper) = escaped.checked_sub(1) else {
            return at;
        };
        let before = ESCAPES.iter().filter_map(|escape| Unescaped::of(text, escape));
        let escaped = before.map(|before| {
            let whole = before.whole();
            let known = whole.floor_char_boundary(self.patterns.whole.undecided(whole));
            let at = before.place(known.min(self.written_undecided(whole, deeper)));
            before.open.map_or(at, |open| open.min(at))
        });
        escaped.fold(at, usize::min)
    }
}

impl RedactedStream {
    /// Takes in more text and returns what is certain to hold no secret. The rest follows with the next text.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let bare = Bare::of(&self.held);
        let found = self.redactor.find(&self.held, &bare);
        let undecided = self.redactor.undecided(&self.held, &bare);
        let whole = found.uncut(undecided);
        // What is longer than any token need not stay whole: nobody knows where it ends.
        let is_endless = self.held.len() - whole > self.redactor.most_held();
        let cut = if is_endless { undecided } else { whole };
        drop(bare);
        let rest = self.held.split_off(cut);
        found.masked(&std::mem::replace(&mut self.held, rest))
    }

    /// Returns whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns what was held back, at the end of a stream or after a pause in it.
    pub fn flush(&mut self) -> String {
        self.redactor.redact(&std::mem::take(&mut self.held))
    }
}

/// What of a text is secret.
struct Found {
    /// Where it stands, sorted; none overlaps or touches another.
    secrets: Vec<Range<usize>>,
    /// Where tokens stand with what gives them away.
    whole: Vec<Range<usize>>,
}

impl Found {
    /// Returns the last place up to this one that is within nothing which must stay whole: what follows a cut may be all that
    /// is left of a secret.
    fn uncut(&self, mut at: usize) -> usize {
        let all = || self.secrets.iter().chain(&self.whole);
        while let Some(around) = all().find(|part| part.start < at && at < part.end) {
            at = around.start;
        }
        at
    }

    /// Returns the beginning of the text in which this was found, with a mask in place of each secret that begins there.
    fn masked(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut from = 0;
        for secret in self.secrets.iter().filter(|secret| secret.start < text.len()) {
            clean.push_str(&text[from..secret.start]);
            clean.push_str(MASK);
            from = secret.end;
        }
        clean.push_str(text.get(from..).unwrap_or_default());
        clean
    }
}

fn joined(mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = part.end.max(last.end),
            _ => joined.push(part),
        }
    }
    joined
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.patterns.whole.len())
    }
}

impl fmt::Debug for RedactedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedStream({:?})", self.redactor)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

    use super::*;
    use crate::files::hexadecimal;

    const SECRET: &str = "hf_a/b+\"Zq é9\\x";

    /// Redacts a text that comes in chunks of so many characters.
    fn in_chunks(redactor: &Redactor, text: &str, size: usize) -> String {
        let mut stream = redactor.stream();
        let chars: Vec<char> = text.chars().collect();
        let chunks = chars.chunks(size);
        let shown: String = chunks
            .map(|chunk| stream.push(&chunk.iter().collect::<String>()))
            .collect();
        shown + &stream.flush()
    }

    fn assert_same_in_chunks(redactor: &Redactor, text: &str, whole: &str) {
        for size in [1, 2, 3, 7, 50] {
            assert_eq!(
                in_chunks(redactor, text, size),
                whole,
                "{text} in chunks of {size}"
            );
        }
    }

    #[test]
    fn a_secret_is_found_in_the_forms_in_which_it_slips_out() {
        let redactor = Redactor::new([SECRET]);
        let json = serde_json::to_string(SECRET).expect("a text is JSON");
        let forms = [
            SECRET.to_owned(),
            json,
            "hf_a%2Fb%2B%22Zq%20%C3%A99%5Cx".to_owned(),
            "hf_a%2fb%2b%22Zq+%c3%a99%5cx".to_owned(),
            hexadecimal(SECRET.as_bytes()),
            hexadecimal(SECRET.as_bytes()).to_uppercase(),
        ];
        for form in forms {
            let shown = redactor.redact(&format!("before {form} after"));
            assert_eq!(shown.replace('"', ""), "before *** after");
        }
        for before in ["", "u", "us", "user:", "Basic me:"] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}{SECRET}:tail"));
            let shown = redactor.redact(&encoded);
            assert!(shown.contains("***"), "{before}: {shown}");
            assert!(shown.len() < 20 + before.len() * 2, "{before}: {shown}");
        }
    }

    /// The lines of a program that prints bytes: a place, so many bytes in groups, and perhaps what they say.
    fn dumped(text: &str, per_line: usize, line: impl Fn(usize, &[u8], &str) -> String) -> String {
        let lines = text.as_bytes().chunks(per_line).enumerate();
        let line =
            |(nth, bytes): (usize, &[u8])| line(nth * per_line, bytes, &String::from_utf8_lossy(bytes));
        lines.map(line).collect()
    }

    fn grouped(bytes: &[u8], group: usize, between: &str) -> String {
        let groups: Vec<String> = bytes.chunks(group).map(hexadecimal).collect();
        groups.join(between)
    }

    fn wrapped(text: &str, columns: usize) -> String {
        dumped(text, columns, |_, _, line| format!("{line}\n"))
    }

    #[test]
    fn an_encoded_secret_is_found_however_it_is_wrapped_and_printed() {
        let token = "hf-Tk_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6uX8kL1nO4rS7wA0cD2f";
        assert_eq!(token.len(), 61);
        let bytes = token.as_bytes();
        let base64 = STANDARD_NO_PAD.encode(token);
        let within = STANDARD_NO_PAD.encode(format!("user:{token}"));
        let swapped: Vec<u8> = bytes
            .chunks(2)
            .flat_map(|word| word.iter().rev().copied())
            .collect();
        let xxd =
            |at, bytes: &[u8], text: &str| format!("{at:08x}: {:<39}  {text}\n", grouped(bytes, 2, " "));
        let canonical = |at, bytes: &[u8], text: &str| {
            let (left, right) = bytes.split_at(bytes.len().min(8));
            let columns = grouped(left, 1, " ") + "  " + &grouped(right, 1, " ");
            format!("{at:08x}  {columns:<48}  |{text}|\n")
        };
        let od = |at, bytes: &[u8], text: &str| format!("{at:07o} {}  >{text}<\n", grouped(bytes, 1, " "));
        let words = |at, bytes: &[u8], _: &str| format!("{at:07o} {}\n", grouped(bytes, 2, " "));
        let literal = grouped(bytes, 1, ", 0x");
        let rows = [
            ("", wrapped(&base64, 76)),
            ("", wrapped(&base64, 64)),
            ("", wrapped(&base64, 20).replace('\n', "\r\n> ")),
            ("", wrapped(&base64, 76).replace('\n', "\\n")),
            ("dXNlcjp", wrapped(&within, 16)),
            ("", wrapped(&hexadecimal(bytes), 60)),
            ("", grouped(bytes, 1, ":")),
            ("", grouped(bytes, 1, " ").to_uppercase()),
            ("0x", wrapped(&literal, 72)),
            ("", dumped(token, 16, xxd)),
            ("", dumped(token, 16, canonical)),
            ("", dumped(token, 16, od)),
            ("", dumped(&String::from_utf8_lossy(&swapped), 16, words)),
        ];
        let redactor = Redactor::new([token]);
        for (before, text) in rows {
            let text = format!("step 30\n{text}\nstep 31");
            let whole = redactor.redact(&text);
            let (head, rest) = whole
                .split_once("***")
                .unwrap_or_else(|| panic!("{text} is kept"));
            assert!(head.len() <= "step 30\n".len() + before.len(), "{whole}");
            // The place of the last byte, which in words of two has no word of its own.
            let left = rest.chars().filter(char::is_ascii_alphanumeric).count();
            assert!(left <= "0000074 66 step 31".len(), "{whole}");
            assert_same_in_chunks(&redactor, &text, &whole);
        }
    }

    #[test]
    fn columns_of_numbers_and_words_that_hold_no_secret_are_kept() {
        let redactor = Redactor::new(["1234", "words", "abcd", "hunter2-and-more"]);
        for text in [
            "31 32 33 34\n0000000 61 62 63 64\n",
            "2021 12 31 08\n2022: 11 30\nd29 yZH M",
            "68 75 6e 74 65 72\n0 1 2 3 4 5 6 7 8 9\n",
        ] {
            assert_eq!(redactor.redact(text), text);
            assert_same_in_chunks(&redactor, text, text);
        }
    }

    #[test]
    fn a_secret_is_found_however_its_quotes_are_escaped_and_how_often() {
        let secret = "p&ss\"w0'rd<Lo\\ng\u{e9}\u{1f600}";
        let json = |text: &str| serde_json::to_string(text).expect("a text is JSON");
        let ascii = |text: &str| {
            text.replace('\u{e9}', "\\u00e9")
                .replace('\u{1f600}', "\\ud83d\\ude00")
        };
        let html = secret.replace('&', "&amp;").replace('<', "&lt;");
        let rows = [
            html.clone(),
            html.replace('\'', "&#39;").replace('"', "&#34;"),
            html.replace('\'', "&apos;").replace('"', "&quot;"),
            html.replace('\'', "&#x27;")
                .replace('\u{e9}', "&#233;")
                .replace('\u{1f600}', "&#128512;"),
            html.replace('&', "&amp;"),
            json(&json(secret)),
            json(&ascii(&json(secret))),
            json(&json(&ascii(&json(secret)))),
            json(&html),
            secret.chars().map(|c| format!("&#x{:x};", c as u32)).collect(),
        ];
        let redactor = Redactor::new([secret]);
        for form in rows {
            let text = format!("a {form} b");
            let whole = redactor.redact(&text);
            assert_eq!(whole.replace(['"', '\\'], ""), "a *** b", "{text}");
            assert_same_in_chunks(&redactor, &text, &whole);
        }
    }

    #[test]
    fn a_secret_cut_at_any_place_is_found_in_a_stream() {
        let redactor = Redactor::new(["secret-one", "one-two-three", "secr"]);
        let text = "a secret-one-two-three b secret-on c secr\nsecrets é secret-one";
        let whole = redactor.redact(text);
        for size in 1..12 {
            let shown = in_chunks(&redactor, text, size);
            assert_eq!(shown, whole, "chunks of {size}");
        }
        assert_eq!(whole, "a *** b ***et-on c ***\n***ets é ***");
    }

    #[test]
    fn a_secret_of_any_length_is_found_in_a_stream() {
        let numbers = (0..).flat_map(|nth: u32| format!("{nth:x}.").into_bytes());
        let secret: String = numbers.map(char::from).take(MOST_HELD + 30_000).collect();
        let redactor = Redactor::new([secret.as_str()]);
        let text = format!("a \u{1b}[1m{secret}\u{1b}[0m b");
        assert_eq!(redactor.redact(&text), "a \u{1b}[1m***\u{1b}[0m b");
        assert_eq!(in_chunks(&redactor, &text, 16 << 10), redactor.redact(&text));
    }

    #[test]
    fn a_secret_that_is_cut_by_what_nobody_sees_is_found_however_it_comes() {
        let token = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6";
        let redactor = Redactor::new(["open-sesame"]);
        for between in [
            "\u{1b}[1m",
            "\u{200b}",
            "\u{1b}]8;;x\u{7}",
            "\u{0}",
            "x\u{8}",
            "\u{feff}\u{1b}[0;31m",
            "\u{1b}[3\u{1b}[0m",
            "\u{1b}[3\u{18}",
            "\u{1b}]0;x\u{1a}",
            "\u{1b}[s",
        ] {
            for secret in ["open-sesame", token] {
                let cut: Vec<String> = secret.chars().map(String::from).collect();
                let text = format!("a {} b\n\u{1b}[1mbold\u{1b}[0m", cut.join(between));
                let whole = redactor.redact(&text);
                assert_eq!(whole, "a *** b\n\u{1b}[1mbold\u{1b}[0m", "{text:?}");
                // What is taken back later has been shown by then, a letter at a time.
                let sizes: &[usize] = if between == "x\u{8}" { &[] } else { &[1, 2, 3, 7] };
                for size in sizes.iter().copied() {
                    let shown = in_chunks(&redactor, &text, size);
                    assert_eq!(shown, whole, "{text:?} in chunks of {size}");
                }
            }
        }
    }

    #[test]
    fn a_stream_is_not_cut_within_what_nobody_sees() {
        let token = "hf_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h";
        let mut stream = Redactor::new([]).stream();
        let shown = stream.push("\u{1b}[s") + &stream.push(token) + &stream.flush();
        assert_eq!(shown, "\u{1b}[s***");
    }

    #[test]
    fn a_token_cut_at_any_place_is_found_in_a_stream_and_told() {
        let token = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6";
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}\nQ2zAb4cD=\n-----END PRIVATE KEY-----");
        let text = format!(
            "user {token} said\n{key}\nAWS_SECRET_ACCESS_KEY={}\ndone",
            &line[..40]
        );
        for size in [1, 2, 3, 7, 20, 64] {
            let redactor = Redactor::new([]);
            let shown = in_chunks(&redactor, &text, size);
            let expected = "user *** said\n-----BEGIN PRIVATE KEY-----***\nAWS_SECRET_ACCESS_KEY=***\ndone";
            assert_eq!(shown, expected, "chunks of {size}");
            let met = redactor.take_met();
            assert_eq!(
                met,
                ["a GitHub token", "a private key", "an AWS secret key"].into()
            );
        }
    }

    #[test]
    fn of_a_token_without_end_no_more_is_held_than_of_others() {
        let mut stream = Redactor::new(["open-sesame"]).stream();
        let mut shown = stream.push("glpat-abcdefghij0123456789");
        for _ in 0..50 {
            shown += &stream.push(&"abcdef.g".repeat(512));
            assert!(stream.held.len() <= MOST_HELD + 20, "{}", stream.held.len());
        }
        shown += &stream.push("open-");
        shown += &stream.push("sesame");
        assert!(
            shown.starts_with("***") && !shown.contains("glpat"),
            "{}",
            &shown[..40]
        );
        assert!((shown + &stream.flush()).ends_with(".g***"));
    }

    #[test]
    fn every_line_of_a_key_is_a_secret_but_its_armour_is_not() {
        let redactor = Redactor::new(["-----BEGIN KEY-----\nMIIabcdefgh\n}\n-----END KEY-----\n"]);
        assert_eq!(
            redactor.redact("x MIIabcdefgh } -----BEGIN KEY-----"),
            "x *** } -----BEGIN KEY-----"
        );
    }

    #[test]
    fn short_values_are_left_alone_and_counted() {
        let redactor = Redactor::new(["1", "abc", "", "  ", "abcd"]);
        assert_eq!(redactor.too_short(), 2);
        assert_eq!(redactor.redact("1 abc abcd"), "1 abc ***");
        assert_eq!(Redactor::new([]).redact("anything"), "anything");
    }

    #[test]
    fn secrets_leave_json_and_never_stand_in_debug_output() {
        let redactor = Redactor::new(["topsecret"]);
        let mut value = serde_json::json!({"a topsecret": ["x topsecret", 1, {"b": "topsecret"}]});
        redactor.redact_json(&mut value);
        assert!(!value.to_string().contains("topsecret"));
        assert!(!format!("{redactor:?} {:?}", redactor.stream()).contains("topsecret"));
    }
}
