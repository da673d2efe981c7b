//! What a comment asks for.
//!
//! A command is a line of its own that begins with `/gpu-`, in a paragraph that stands by itself: what is quoted, code, a heading,
//! in a list, a link or HTML was not said by whoever wrote the comment, or not to us. GitHub's Markdown is read by the same rules
//! as everywhere, CommonMark.
//!
//! Who may give a command, and whether the comment is as it was written, is not judged here.

use blueproof_core::domain::{BlueprintName, ProfileName};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::payload::CommitSha;

/// What every command begins with.
const PREFIX: &str = "/gpu-";
/// The most commands of one comment that are read: a comment of a hundred is none of a person's.
pub const MOST_COMMANDS: usize = 8;
/// The most bytes of a comment that are read, as many as GitHub takes.
const LARGEST: usize = 65_536 * 4;

/// Something that a comment asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentCommand {
    /// `/gpu-test`: that a head is approved.
    Test(TestCommand),
    /// `/gpu-cancel`: that the runs of the pull request end, or those of these blueprints.
    Cancel {
        /// Which; none is all.
        blueprints: Vec<BlueprintName>,
    },
    /// `/gpu-retest`: that the ended runs of the pull request's head are tried again, or those of these blueprints.
    Retest {
        /// Which; none is all that did not pass.
        blueprints: Vec<BlueprintName>,
    },
    /// `/gpu-why`: what the runs wait for.
    Why,
    /// `/gpu-hold`: that nothing of the pull request starts.
    Hold,
    /// `/gpu-hold cancel`: that it goes on.
    Resume,
}

/// What `/gpu-test` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestCommand {
    /// The head that was read; the current one where none is named, if that can be told.
    pub head: Option<CommitSha>,
    /// Which blueprints; none is all that the pull request concerns.
    pub blueprints: Vec<BlueprintName>,
    /// Under which profile; none is each that the policy names.
    pub profile: Option<ProfileName>,
}

/// A line that begins as a command and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentMistake {
    /// What is wrong with it, to be shown to whoever wrote it.
    pub problem: CommentProblem,
}

/// What is wrong with a line that begins as a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommentProblem {
    /// There is no such command.
    #[error(
        "there is no such command; known are /gpu-test, /gpu-cancel, /gpu-retest, /gpu-why and /gpu-hold"
    )]
    Unknown,
    /// Part of the line is set in another way than plain text.
    #[error("a command is plain text, without code, emphasis, links and HTML")]
    NotPlain,
    /// A commit that is not whole.
    #[error("a commit is named with all of its 40 digits: another one can be made to share fewer")]
    ShortCommit,
    /// Two of what there is one of.
    #[error("a command names one commit and one profile")]
    Twice,
    /// A word that is nothing that the command takes.
    #[error("a word is neither a commit, nor the name of a blueprint, nor `profile=NAME`")]
    Word,
    /// Words after a command that takes none.
    #[error("the command takes no words")]
    TakesNone,
    /// There are more commands than are read.
    #[error("a comment has at most {MOST_COMMANDS} commands")]
    TooMany,
}

/// Returns the commands of a comment, in their order, and what is wrong with lines that begin as one and are none.
pub fn commands(markdown: &str) -> Vec<Result<CommentCommand, CommentMistake>> {
    let mut found = Vec::new();
    for line in lines(markdown) {
        if found.len() == MOST_COMMANDS {
            found.push(Err(CommentProblem::TooMany.into()));
            break;
        }
        found.extend(line.read());
    }
    found
}

/// A line of a paragraph that stands by itself.
#[derive(Debug, Default)]
struct Line {
    text: String,
    /// Whether all of it is plain text.
    is_plain: bool,
}

/// Splits the paragraphs that stand by themselves into lines.
fn lines(markdown: &str) -> Vec<Line> {
    let whole = markdown.len() <= LARGEST;
    let markdown = if whole { markdown } else { "" };
    let mut reader = Reader::default();
    // What GitHub shows struck out was not said either.
    for event in Parser::new_ext(markdown, Options::ENABLE_STRIKETHROUGH) {
        reader.read(&event);
    }
    reader.lines
}

/// Follows a document.
#[derive(Debug, Default)]
struct Reader {
    lines: Vec<Line>,
    /// The line that is being read, inside of a paragraph that stands by itself.
    line: Option<Line>,
    /// How many elements are open.
    depth: usize,
}

impl Reader {
    fn read(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(*tag),
            Event::Text(text) if self.depth == 1 => self.add(text),
            Event::SoftBreak | Event::HardBreak if self.depth == 1 => self.end_line(),
            Event::Text(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => self.spoil(),
        }
    }

    fn open(&mut self, tag: &Tag<'_>) {
        if self.depth == 0 && matches!(tag, Tag::Paragraph) {
            self.line = Some(Line::new());
        } else {
            self.spoil();
        }
        self.depth += 1;
    }

    fn close(&mut self, tag: TagEnd) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 && tag == TagEnd::Paragraph {
            self.lines.extend(self.line.take());
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(line) = &mut self.line {
            line.text.push_str(text);
        }
    }

    fn end_line(&mut self) {
        if let Some(line) = &mut self.line {
            self.lines.push(std::mem::replace(line, Line::new()));
        }
    }

    /// Notes that the line has something in it that is no plain text.
    fn spoil(&mut self) {
        if let Some(line) = &mut self.line {
            line.is_plain = false;
        }
    }
}

impl Line {
    fn new() -> Self {
        Self {
            text: String::new(),
            is_plain: true,
        }
    }

    /// Returns the command, where the line begins as one.
    fn read(&self) -> Option<Result<CommentCommand, CommentMistake>> {
        let text = self.text.trim_matches([' ', '\t']);
        if !text.starts_with(PREFIX) {
            return None;
        }
        if !self.is_plain {
            return Some(Err(CommentProblem::NotPlain.into()));
        }
        let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        Some(command(name, &words.collect::<Vec<_>>()).map_err(Into::into))
    }
}

fn command(name: &str, words: &[&str]) -> Result<CommentCommand, CommentProblem> {
    match (name, words) {
        ("/gpu-test", words) => test(words).map(CommentCommand::Test),
        ("/gpu-cancel", words) => Ok(CommentCommand::Cancel {
            blueprints: names(words)?,
        }),
        ("/gpu-retest", words) => Ok(CommentCommand::Retest {
            blueprints: names(words)?,
        }),
        ("/gpu-why", []) => Ok(CommentCommand::Why),
        ("/gpu-hold", []) => Ok(CommentCommand::Hold),
        ("/gpu-hold", ["cancel"]) => Ok(CommentCommand::Resume),
        ("/gpu-why" | "/gpu-hold", _) => Err(CommentProblem::TakesNone),
        _ => Err(CommentProblem::Unknown),
    }
}

fn test(words: &[&str]) -> Result<TestCommand, CommentProblem> {
    let mut test = TestCommand::default();
    for word in words {
        if let Some(profile) = word.strip_prefix("profile=") {
            let profile = profile.parse().map_err(|_| CommentProblem::Word)?;
            once(&mut test.profile, profile)?;
        } else if let Ok(head) = word.parse::<CommitSha>() {
            once(&mut test.head, head)?;
        } else if is_like_a_commit(word) {
            return Err(CommentProblem::ShortCommit);
        } else {
            test.blueprints.push(name(word)?);
        }
    }
    Ok(test)
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), CommentProblem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(CommentProblem::Twice),
    }
}

fn names(words: &[&str]) -> Result<Vec<BlueprintName>, CommentProblem> {
    words.iter().map(|word| name(word)).collect()
}

fn name(word: &str) -> Result<BlueprintName, CommentProblem> {
    word.parse().map_err(|_| CommentProblem::Word)
}

/// Returns whether a word is meant as a commit: seven or more hexadecimal digits with a figure among them. No blueprint that is
/// called so can be named in a comment.
fn is_like_a_commit(word: &str) -> bool {
    word.len() >= 7
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

impl From<CommentProblem> for CommentMistake {
    fn from(problem: CommentProblem) -> Self {
        Self { problem }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHA: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

    fn problem(markdown: &str) -> CommentProblem {
        match commands(markdown).as_slice() {
            [Err(mistake)] => mistake.problem.clone(),
            other => panic!("{markdown:?} gave {other:?}"),
        }
    }

    fn one(markdown: &str) -> CommentCommand {
        match commands(markdown).as_slice() {
            [Ok(command)] => command.clone(),
            other => panic!("{markdown:?} gave {other:?}"),
        }
    }

    fn blueprints(names: &[&str]) -> Vec<BlueprintName> {
        names.iter().map(|name| name.parse().expect("a name")).collect()
    }

    #[test]
    fn a_command_is_a_line_of_its_own() {
        let whole = TestCommand {
            head: Some(SHA.parse().expect("a commit")),
            blueprints: blueprints(&["nano-lm", "mnist"]),
            profile: Some("gpu2".parse().expect("a name")),
        };
        let cases = [
            ("/gpu-test", CommentCommand::Test(TestCommand::default())),
            (
                &format!("/gpu-test {SHA} nano-lm  mnist\tprofile=gpu2 "),
                CommentCommand::Test(whole),
            ),
            ("Looks good.\n/gpu-hold\nThanks!", CommentCommand::Hold),
            (
                "Looks good.\r\n\r\n   /gpu-hold cancel\r\n",
                CommentCommand::Resume,
            ),
            ("/gpu-why", CommentCommand::Why),
            (
                "/gpu-retest mnist",
                CommentCommand::Retest {
                    blueprints: blueprints(&["mnist"]),
                },
            ),
            (
                "/gpu-cancel",
                CommentCommand::Cancel {
                    blueprints: Vec::new(),
                },
            ),
        ];
        for (markdown, command) in cases {
            assert_eq!(one(markdown), command, "{markdown:?}");
        }
    }

    #[test]
    fn several_commands_come_in_their_order() {
        let found = commands("/gpu-hold cancel\n/gpu-test\n\n/gpu-why");
        let found: Vec<_> = found
            .into_iter()
            .map(|command| command.expect("each is one"))
            .collect();
        let expected = [
            CommentCommand::Resume,
            CommentCommand::Test(TestCommand::default()),
            CommentCommand::Why,
        ];
        assert_eq!(found, expected);
        let many = commands(&"/gpu-why\n".repeat(100));
        assert_eq!(many.len(), MOST_COMMANDS + 1);
        assert_eq!(many.last(), Some(&Err(CommentProblem::TooMany.into())));
    }

    /// A7 of the list of attacks.
    #[test]
    fn what_is_quoted_code_a_heading_a_link_or_hidden_is_no_command() {
        for markdown in [
            "> /gpu-test",
            "> a\n/gpu-test",
            "    /gpu-test",
            "a\n\n\t/gpu-test",
            "```\n/gpu-test\n```",
            "~~~\n/gpu-test",
            "`/gpu-test`",
            "`\n/gpu-test\n`",
            "# /gpu-test",
            "/gpu-test\n=====",
            "- /gpu-test",
            "1. a\n\n   /gpu-test",
            "<!--\n/gpu-test\n-->",
            "<!-- a -->/gpu-test",
            "a <!--\n/gpu-test\n-->",
            "<details>\n/gpu-test\n</details>",
            "[/gpu-test](https://example.com)",
            "[a]: /gpu-test",
            "~~/gpu-test~~",
            "**a\n/gpu-test**",
            "please /gpu-test",
            "//gpu-test",
            "\u{200b}/gpu-test",
            "\u{a0}/gpu-test",
            "/gpu",
            "",
        ] {
            assert_eq!(commands(markdown), [], "{markdown:?}");
        }
    }

    #[test]
    fn what_begins_as_a_command_and_is_none_is_told() {
        let cases = [
            ("/gpu-tset", CommentProblem::Unknown),
            ("/gpu-TEST", CommentProblem::Unknown),
            ("/gpu-test `mnist`", CommentProblem::NotPlain),
            ("/gpu-test <!-- mnist -->", CommentProblem::NotPlain),
            ("/gpu-test *mnist*", CommentProblem::NotPlain),
            ("/gpu-test 1a2b3c4", CommentProblem::ShortCommit),
            (
                &format!("/gpu-test {}", SHA.to_uppercase()),
                CommentProblem::ShortCommit,
            ),
            (&format!("/gpu-test {SHA} {SHA}"), CommentProblem::Twice),
            ("/gpu-test profile=a profile=b", CommentProblem::Twice),
            ("/gpu-test profile=", CommentProblem::Word),
            ("/gpu-test ../x", CommentProblem::Word),
            ("/gpu-test m\u{202e}nist", CommentProblem::Word),
            ("/gpu-why not", CommentProblem::TakesNone),
            ("/gpu-hold it", CommentProblem::TakesNone),
        ];
        for (markdown, expected) in cases {
            assert_eq!(problem(markdown), expected, "{markdown:?}");
        }
    }

    proptest! {
        #[test]
        fn no_comment_ends_the_reading(markdown in "\\PC{0,200}|([/gpu\\-test \n\t`>#*<!~\\[\\]()]{0,80})") {
            prop_assert!(commands(&markdown).len() <= MOST_COMMANDS + 1);
        }

        /// Whatever stands around it, a line that is quoted stays what another said.
        #[test]
        fn a_quoted_line_is_never_a_command(before in "[a-z \n]{0,20}") {
            prop_assert_eq!(commands(&format!("{before}\n\n> /gpu-test\n")), []);
        }
    }
}
