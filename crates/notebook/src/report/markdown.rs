//! Prose of a notebook as markup: HTML in it is shown as text, links and images as words, with nothing to follow.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::markup::Html;
use crate::text::shown;

/// The most prose of one cell that is laid out; a longer one is shown as text.
const PROSE_BYTES: usize = 256 * 1024;

/// Returns markdown as markup.
pub(super) fn markdown(text: &str) -> Html {
    let text = visible(text);
    if text.len() > PROSE_BYTES {
        let mut html = Html::default();
        html.push_markup(format_args!("<pre>"));
        html.push_text(&text);
        html.push_markup(format_args!("</pre>"));
        return html;
    }
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let mut addresses = Vec::new();
    let events = Parser::new_ext(&text, options).map(|event| harmless(event, &mut addresses));
    let mut markup = String::new();
    html::push_html(&mut markup, events);
    Html::vouched(&markup)
}

/// Returns the event without anything that could be followed, fetched or run.
fn harmless<'t>(event: Event<'t>, addresses: &mut Vec<CowStr<'t>>) -> Event<'t> {
    match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::TaskListMarker(true) => Event::Text("☑ ".into()),
        Event::TaskListMarker(false) => Event::Text("☐ ".into()),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, .. }) => {
            addresses.push(dest_url);
            Event::InlineHtml("<span class=\"link\">".into())
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            addresses.push(dest_url);
            Event::InlineHtml("<span class=\"link\">[image] ".into())
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            let address = addresses.pop().unwrap_or("".into());
            // An address may be a whole image of megabytes.
            let brief = if address.len() > 200 || address.starts_with("data:") {
                ""
            } else {
                &address
            };
            Event::InlineHtml(format!("</span> <span class=\"address\">{}</span>", Html::text(brief)).into())
        }
        Event::Start(_)
        | Event::End(_)
        | Event::Text(_)
        | Event::Code(_)
        | Event::InlineMath(_)
        | Event::DisplayMath(_)
        | Event::FootnoteReference(_)
        | Event::SoftBreak
        | Event::HardBreak
        | Event::Rule => event,
    }
}

/// Returns prose without control characters and without those that reorder or hide text.
fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.split('\n')
        .map(|line| shown(&line.replace('\t', "    ")))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_links_and_images_are_words() {
        let html = markdown(
            "# A *title*\n\nsee [here](javascript:x \"t\") ![pic](http://x/a.png) <b onclick=x>raw</b>\n\n<script>x</script>\n\n`a<b`",
        );
        let expected = "<h1>A <em>title</em></h1>\n<p>see <span class=\"link\">here</span> <span class=\"address\">javascript:x</span> <span class=\"link\">[image] pic</span> <span class=\"address\">http://x/a.png</span> &lt;b onclick=x&gt;raw&lt;/b&gt;</p>\n<p>&lt;script&gt;x&lt;/script&gt;\n</p>\n<p><code>a&lt;b</code></p>\n";
        assert_eq!(html.as_str(), expected);
    }

    #[test]
    fn a_formula_is_told_from_prose_and_a_price_is_none() {
        let html = markdown("the loss $a_1 < b_2$ costs $5 or $6\n\n$$\\frac{1}{n}$$");
        let expected = "<p>the loss <span class=\"math math-inline\">a_1 &lt; b_2</span> costs $5 or $6</p>\n<p><span class=\"math math-display\">\\frac{1}{n}</span></p>\n";
        assert_eq!(html.as_str(), expected);
    }
}
