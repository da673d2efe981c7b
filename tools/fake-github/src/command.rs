//! What can be typed.

use std::str::FromStr;

use blueproof_github::api::CheckAction;

/// What is said of the commands.
pub(crate) const USAGE: &str = "\
open                          mallory opens a pull request that changes examples/hello
push N                        mallory pushes another commit to it
comment N LOGIN TEXT          somebody comments: ada is an approver, mallory is not
press N LOGIN BUTTON          presses a button of its check run: approve, retry or cancel
label N LOGIN LABEL           puts a label on it
close N                       closes it
show N                        its check runs, and its comments with their reactions
install                       installs the App
job                           queues a job for the scale set
down, up                      has the API answer nothing any more, and everything again
quit";

/// What is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Open,
    Push(u64),
    Comment {
        number: u64,
        by: String,
        text: String,
    },
    Press {
        number: u64,
        by: String,
        button: CheckAction,
    },
    Label {
        number: u64,
        by: String,
        label: String,
    },
    Close(u64),
    Show(u64),
    Install,
    Job,
    Down,
    Up,
}

/// A line that is no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake(String);

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no command; these are:", self.0)
    }
}

impl FromStr for Command {
    type Err = Mistake;

    fn from_str(line: &str) -> Result<Self, Mistake> {
        let mistake = || Mistake(line.to_owned());
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.trim().parse().map_err(|_| mistake());
        // What stands behind a number and a login.
        let said = || {
            let mut parts = rest.trim().splitn(3, ' ');
            let number = parts.next()?.parse::<u64>().ok()?;
            let (by, text) = (parts.next()?, parts.next()?);
            Some((number, by.to_owned(), text.to_owned()))
        };
        let said = || said().ok_or_else(mistake);
        let alone = |command: Self| rest.is_empty().then_some(command).ok_or_else(mistake);
        match word {
            "open" => alone(Self::Open),
            "push" => number().map(Self::Push),
            "comment" => said().map(|(number, by, text)| Self::Comment { number, by, text }),
            "press" => {
                let (number, by, button) = said()?;
                let button = button.parse().map_err(|_| mistake())?;
                Ok(Self::Press { number, by, button })
            }
            "label" => said().map(|(number, by, label)| Self::Label { number, by, label }),
            "close" => number().map(Self::Close),
            "show" => number().map(Self::Show),
            "install" => alone(Self::Install),
            "job" => alone(Self::Job),
            "down" => alone(Self::Down),
            "up" => alone(Self::Up),
            _ => Err(mistake()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_command_or_none() {
        let comment = Command::Comment {
            number: 7,
            by: "ada".into(),
            text: "/gpu-test abc".into(),
        };
        let press = Command::Press {
            number: 7,
            by: "ada".into(),
            button: CheckAction::Approve,
        };
        for (line, command) in [
            ("open", Command::Open),
            ("push 7", Command::Push(7)),
            ("comment 7 ada /gpu-test abc", comment),
            ("press 7 ada approve", press),
            ("show 7", Command::Show(7)),
        ] {
            assert_eq!(line.parse(), Ok(command), "{line}");
        }
        for line in [
            "",
            "open 7",
            "push",
            "push x",
            "comment 7 ada",
            "press 7 ada everything",
            "shout",
        ] {
            assert!(line.parse::<Command>().is_err(), "{line}");
        }
    }
}
