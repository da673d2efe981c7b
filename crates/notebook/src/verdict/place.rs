//! From the lines that Python names to lines of a cell's source.
//!
//! IPython drops blank lines at a cell's top and rewrites its own syntax before Python sees it, and a cell magic's body
//! is numbered from its own top. So a number alone is not believed where the text of the line is known.

/// Returns the line of `source` that Python calls `line` and whose text, as far as known, is `text`.
pub(crate) fn line_in_source(source: &str, line: u32, text: Option<&str>) -> Option<u32> {
    let lines: Vec<&str> = source.lines().collect();
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let is_magic = lines.get(blank).is_some_and(|line| line.starts_with("%%"));
    let at = (line as usize).checked_sub(1)? + blank + usize::from(is_magic && text.is_none());
    let number = |at: usize| u32::try_from(at + 1).ok();
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return lines.get(at).and_then(|_| number(at));
    };
    let is_it = |at: usize| lines.get(at).is_some_and(|line| line.trim() == text);
    if is_it(at) {
        return number(at);
    }
    if is_magic && is_it(at + 1) {
        return number(at + 1);
    }
    let mut same = (0..lines.len()).filter(|at| is_it(*at));
    if let (Some(only), None) = (same.next(), same.next()) {
        return number(only);
    }
    // A line that IPython rewrote has another text, but seldom another number.
    let is_rewritten = text.contains("get_ipython()");
    (is_rewritten && lines.get(at).is_some())
        .then(|| number(at))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_where_the_user_wrote_them() {
        for (why, source, line, text, expected) in [
            ("as it is", "a\nb\nc", 2, Some("b"), Some(2)),
            (
                "blank lines at the top are dropped",
                "\n\na\nb",
                2,
                Some("b"),
                Some(4),
            ),
            (
                "the body of a magic has its own numbers",
                "%%time\na\nb",
                2,
                Some("b"),
                Some(3),
            ),
            ("so it has without its text", "%%time\na\nb", 2, None, Some(3)),
            (
                "a line that moved is found by its text",
                "!x \\\n y\nb",
                2,
                Some("b"),
                Some(3),
            ),
            (
                "a rewritten line keeps its number",
                "a\n!false",
                2,
                Some("get_ipython().system('false')"),
                Some(2),
            ),
            ("another file's line is not made up", "a\nb", 2, Some("z"), None),
            ("neither is one that is not there", "a", 9, None, None),
        ] {
            assert_eq!(line_in_source(source, line, text), expected, "{why}");
        }
    }
}
