//! Which hosts a notebook may reach.

use blueproof_diagnostic::yaml::{Decode, Located, Problems, Value, YamlNode, choice, record, word};
use serde_json::json;

/// Which hosts a notebook may reach.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// Any.
    Any,
    /// None.
    None,
    /// These; `*.` in front stands for any subdomain.
    Hosts(Vec<Located<String>>),
}

choice! {
    /// The long form's kind.
    pub enum Mode {
        /// Every host.
        Any = "any",
        /// No host.
        None = "none",
        /// Those that are listed.
        Allow = "allow",
    }
}

record! {
    /// The long form.
    pub struct Long {
        /// `any`, `none`, or `allow` with a list of hosts.
        mode: Mode,
        /// Hosts that may be reached; `*.` in front stands for any subdomain.
        hosts: Vec<Located<String>>,
    }
}

impl Decode for Network {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        if let Value::Text(_) = node.value {
            return match word(node, &["any", "none"], problems)? {
                "none" => Some(Network::None),
                _ => Some(Network::Any),
            };
        }
        let Long { mode, hosts } = Long::decode(node, problems)?;
        let network = match mode {
            Mode::Any => Network::Any,
            Mode::None => Network::None,
            Mode::Allow => {
                let allowed: Vec<bool> = hosts.iter().map(|host| check_host(host, problems)).collect();
                return allowed.iter().all(|ok| *ok).then_some(Network::Hosts(hosts));
            }
        };
        if hosts.is_empty() {
            return Some(network);
        }
        let message = "hosts can only be listed with `mode: allow`";
        problems.bad_value(node.spot, message, "set `mode: allow`, or leave `hosts` out");
        None
    }

    fn schema() -> serde_json::Value {
        json!({ "anyOf": [{ "enum": ["any", "none"] }, Long::schema()] })
    }
}

fn check_host(host: &Located<String>, problems: &mut Problems<'_>) -> bool {
    let name = host.value.strip_prefix("*.").unwrap_or(&host.value);
    let label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let good = name.len() <= 253 && name.split('.').all(label);
    if !good {
        let message = format!("`{}` is not a host", host.value);
        problems.bad_value(
            host.spot,
            message,
            "write a name without scheme, port and path: huggingface.co, *.hf.co",
        );
    }
    good
}
