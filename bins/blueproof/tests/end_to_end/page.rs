//! The report of a hostile notebook, made by a real run, held to a parser: nothing in it runs, and nothing is fetched.

use std::fs;

use scraper::{ElementRef, Html, Selector};

use crate::common::{Checkout, Home};

/// What a hostile notebook has its page say, in every way that HTML has to run something or to fetch something.
const HTML: &str = r##"<p id="shown">still shown</p><script>alert(1)</script><img src=x onerror=alert(1)>
<img src="https://evil.example/pixel.png"><img srcset="//evil.example/a 2x"><a href="javascript:alert(1)">a</a>
<a href=" jAvAsCrIpT:alert(1)">b</a><a href="https://evil.example/">c</a><iframe src="https://evil.example/"></iframe>
<iframe srcdoc="<script>alert(1)</script>"></iframe><object data="//evil.example/x"></object><embed src="//evil.example/x">
<link rel=stylesheet href="https://evil.example/x.css"><style>@import "https://evil.example/x.css";</style>
<div style="background:url(https://evil.example/x.png)" onclick="alert(1)">d</div><base href="https://evil.example/">
<form action="https://evil.example/"><input name=token autofocus onfocus=alert(1)><button formaction="javascript:alert(1)">
</button></form><meta http-equiv=refresh content="0;url=https://evil.example/"><video poster="//evil.example/p" src=x>
</video><svg onload=alert(1)><script>alert(1)</script><use href="https://evil.example/x.svg#a"/><animate attributeName=href
values="javascript:alert(1)"/><a xlink:href="javascript:alert(1)"><text>e</text></a></svg><math><mtext></form><style><img src
onerror=alert(1)></style></math></section></main></body></html><script>alert(2)</script>"##;

const SVG: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script>
<image href="https://evil.example/x.png"/><foreignObject><iframe src="https://evil.example/"/></foreignObject></svg>"##;

/// Returns everything in a page that would run, or be fetched from elsewhere.
fn dangers(page: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let all = Selector::parse("*").expect("a selector");
    page.select(&all).flat_map(dangers_of).collect()
}

fn dangers_of(element: ElementRef<'_>) -> Vec<String> {
    const RUNS_OR_FETCHES: &[&str] = &[
        "script",
        "iframe",
        "frame",
        "object",
        "embed",
        "applet",
        "link",
        "base",
        "form",
        "input",
        "button",
        "video",
        "audio",
        "source",
        "track",
        "portal",
        "foreignobject",
        "use",
        "animate",
        "set",
        "image",
        "math",
        "template",
    ];
    let name = element.value().name().to_ascii_lowercase();
    let mut found = Vec::new();
    if RUNS_OR_FETCHES.contains(&name.as_str()) {
        found.push(format!("<{name}>"));
    }
    if name == "style" && fetches(&element.text().collect::<String>()) {
        found.push("<style> that fetches".into());
    }
    for (attribute, value) in element.value().attrs() {
        let attribute = attribute.to_ascii_lowercase();
        if is_dangerous(&name, &attribute, value) {
            found.push(format!("<{name} {attribute}={value:?}>"));
        }
    }
    found
}

fn is_dangerous(element: &str, attribute: &str, value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    match attribute {
        // An image that carries its own content runs nothing, an SVG neither.
        "src" => !(element == "img" && value.starts_with("data:image/")),
        // A place of the page, or the executed notebook beside it.
        "href" => !(value.starts_with('#') || value == "./attempts/1/executed.ipynb"),
        "xlink:href" => !value.starts_with('#'),
        "style" => fetches(&value),
        "http-equiv" => value == "refresh",
        "srcset" | "srcdoc" | "action" | "formaction" | "data" | "poster" | "background" | "ping"
        | "cite" => true,
        _ => attribute.starts_with("on"),
    }
}

/// Returns whether a style names an address.
fn fetches(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    ["url(", "@import", "image-set(", "expression(", "//"]
        .iter()
        .any(|part| style.contains(part))
}

#[test]
fn nothing_of_a_hostile_notebook_runs_or_is_fetched_in_its_report() {
    let print = format!(
        "from IPython.display import HTML, SVG, Javascript, Markdown, display\nHOSTILE = r'''{HTML}'''\n\
         display(HTML(HOSTILE), Markdown(HOSTILE), Javascript('alert(1)'), SVG(r'''{SVG}'''))\n\
         display(Markdown('[x](javascript:alert(1)) ![y](https://evil.example/y.png) <https://evil.example/z>'))\n\
         display({{'image/png': '\"><script>alert(1)</script>', 'text/plain': HOSTILE}}, raw=True)\n\
         print(HOSTILE)\nprint('loss: 1')"
    );
    let raise =
        "class Evil(Exception):\n    pass\nEvil.__name__ = '<script>alert(1)</script>'\nraise Evil(HOSTILE)";
    let (home, checkout) = (Home::new(), Checkout::new(&[&print, raise], ""));
    checkout.insert_markdown(HTML);
    let answer = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(answer.code, Some(1), "{answer:?}");

    let report = fs::read_to_string(home.run_folder("r-1").join("report.html")).expect("a report");

    assert!(
        report.matches("still shown").count() >= 5,
        "the words are shown wherever they stand"
    );
    assert_eq!(dangers(&report), Vec::<String>::new());
}

#[test]
fn the_parser_finds_every_danger_where_nothing_was_done_about_it() {
    let found = dangers(HTML).join("\n");
    for danger in [
        "<script>",
        "onerror=",
        "onclick=",
        "src=\"https://evil.example/pixel.png\"",
        "href=\"javascript:alert(1)\"",
        "jAvAsCrIpT",
        "<iframe>",
        "srcdoc=",
        "<object>",
        "<link>",
        "<style> that fetches",
        "style=",
        "formaction=",
        "http-equiv=",
        "poster=",
        "<use>",
    ] {
        assert!(found.contains(danger), "{danger}: {found}");
    }
    assert!(!dangers(SVG).is_empty());
    assert_eq!(
        dangers("<p>fine <a href='#cell-1'>here</a><img src='data:image/png;base64,AA=='></p>"),
        Vec::<String>::new()
    );
}
