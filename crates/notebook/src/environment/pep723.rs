//! Reads what a script says of its own environment: a `# /// script` block, as PEP 723 defines it.

use blueproof_diagnostic::{Code, Diagnostic};
use serde::Deserialize;

use crate::plan::Environment;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Script {
    requires_python: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Returns the environment that the `script` block of `source` asks for, or `None` where there is no such block.
///
/// `source` is the text of a notebook's first code cell. Keys under `tool` and any others are left to their tools.
///
/// # Errors
/// A block that is there twice, or is not TOML of that form; the caller adds the place.
pub fn pep723(source: &str) -> Result<Option<Environment>, Box<Diagnostic>> {
    let mut blocks = blocks(source).into_iter().filter(|(kind, _)| kind == "script");
    let Some((_, text)) = blocks.next() else {
        return Ok(None);
    };
    let broken = |message: &str| Diagnostic::error(Code::ScriptBlock, message);
    if blocks.next().is_some() {
        return Err(broken("there are two `# /// script` blocks")
            .hint("keep one of them")
            .into());
    }
    let script: Script = toml::from_str(&text).map_err(|error| {
        broken("the `# /// script` block cannot be read")
            .caused_by(&error)
            .hint("it holds TOML, such as `# dependencies = [\"numpy\"]`")
    })?;
    Ok(Some(Environment {
        python: script.requires_python,
        requirements: script.dependencies,
        lock: None,
    }))
}

/// Returns each block's kind and its text without the comment signs.
fn blocks(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let kind = lines[at].strip_prefix("# /// ").map(str::trim_end);
        at += 1;
        let Some(kind) = kind.filter(|kind| kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
        else {
            continue;
        };
        let body = lines[at..]
            .iter()
            .take_while(|line| **line == "#" || line.starts_with("# "));
        let body: Vec<&str> = body.copied().collect();
        // The block ends at the last `# ///` of the comment: one that is never closed is none.
        let Some(end) = body.iter().rposition(|line| line.trim_end() == "# ///") else {
            continue;
        };
        let text: Vec<&str> = body[..end]
            .iter()
            .map(|line| line.get(2..).unwrap_or(""))
            .collect();
        found.push((kind.to_owned(), text.join("\n")));
        at += end + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_block_names_python_and_packages() {
        let source = "import this\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"numpy<3\",\n#\n#   \"jax\",\n# ]\n# [tool.uv]\n# x = 1\n# ///\nprint()\n";
        let environment = pep723(source).expect("it is well formed").expect("it is there");

        assert_eq!(environment.python.as_deref(), Some(">=3.11"));
        assert_eq!(environment.requirements, ["numpy<3", "jax"]);
    }

    #[test]
    fn a_source_without_a_closed_script_block_asks_for_nothing() {
        for source in [
            "",
            "print()",
            "# /// script\n# dependencies = []\nprint()",
            "# /// pyproject\n# a = 1\n# ///",
        ] {
            assert_eq!(pep723(source), Ok(None), "{source}");
        }
    }

    #[test]
    fn two_blocks_and_broken_toml_are_errors() {
        let block = "# /// script\n# dependencies = []\n# ///\n";
        for source in [
            format!("{block}\n{block}"),
            "# /// script\n# dependencies = [\n# ///".into(),
        ] {
            let error = pep723(&source).expect_err("it is an error");
            assert_eq!(error.code, Code::ScriptBlock);
        }
    }
}
