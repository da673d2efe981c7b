//! HTML output of a notebook, as far as it is a table: everything else of it is left out.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::Builder;

use super::markup::Html;

/// The most HTML that is looked at.
const HTML_BYTES: usize = 512 * 1024;

/// Returns the tables of an HTML output with their texts, or `None` where it has none or is too large.
pub(super) fn table(html: &str) -> Option<Html> {
    if html.len() > HTML_BYTES || !html.contains("<t") {
        return None;
    }
    let clean = CLEANER.clean(html).to_string();
    // Tags that the parser closes, again and again, would make much of little.
    let fits = clean.len() <= html.len() * 7 / 5 + 4096;
    (fits && clean.contains("<td")).then(|| Html::vouched(&clean))
}

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let tags = [
        "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "p", "div", "span", "b", "strong",
        "i", "em", "code", "pre", "br", "sub", "sup", "ul", "ol", "li",
    ];
    let spans: HashSet<&str> = ["colspan", "rowspan"].into();
    let mut builder = Builder::empty();
    builder
        .tags(HashSet::from(tags))
        .tag_attributes(HashMap::from([("td", spans.clone()), ("th", spans)]))
        .clean_content_tags(HashSet::from([
            "script", "style", "template", "title", "svg", "math",
        ]))
        .strip_comments(true);
    builder
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_texts_and_loses_everything_else() {
        let html = "<style>td{background:url(http://x)}</style><div><table border=1 class=\"dataframe\" style=\"x\"><tr onclick=x><th colspan=2 id=y>a</th></tr><tr><td><a href='http://x'>1 < 2</a><img src=x onerror=y></td></tr></table><script>x</script></div>";
        let expected = "<div><table><tbody><tr><th colspan=\"2\">a</th></tr><tr><td>1 &lt; 2</td></tr></tbody></table></div>";
        assert_eq!(table(html).expect("it has a table").as_str(), expected);
        assert_eq!(table("<b>no table</b><script>x</script>"), None);
    }
}
