//! Proof, by a parser, that nothing of a hostile notebook runs in the page, is fetched for it, or breaks out of its place.

use blueproof_core::view::ParameterChange;

use super::*;

/// Elements that the page has a use for.
const ELEMENTS: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "footer",
    "div",
    "span",
    "p",
    "a",
    "b",
    "i",
    "em",
    "strong",
    "del",
    "code",
    "pre",
    "br",
    "hr",
    "sub",
    "sup",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "blockquote",
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "img",
    "details",
    "summary",
    "svg",
    "path",
    "text",
    "polyline",
    "circle",
];

/// Attributes that neither run nor fetch anything, whatever their value.
const ATTRIBUTES: &[&str] = &[
    "class", "id", "lang", "charset", "content", "name", "alt", "viewbox", "role", "d", "x", "y", "cx", "cy",
    "r", "points", "title", "colspan", "rowspan", "start",
];

/// Panics unless the page holds no script, no handler, and no address but of its own places and images.
fn assert_inert(page: &Parsed, why: &str) {
    let every = Selector::parse("*").expect("it is a selector");
    for element in page.select(&every).map(|found| found.value()) {
        let tag = element.name().to_ascii_lowercase();
        assert!(ELEMENTS.contains(&tag.as_str()), "{why}: <{tag}>");
        for (attribute, value) in element.attrs() {
            assert_attribute(
                &tag,
                &attribute.to_ascii_lowercase(),
                &value.to_ascii_lowercase(),
                why,
            );
        }
    }
    let sheets = texts(page, "style");
    assert_eq!(sheets.len(), 1, "{why}: a second style sheet");
    assert!(
        !sheets[0].contains("url(") && !sheets[0].contains("@import"),
        "{why}"
    );
    assert_eq!(
        texts(page, "svg title").len(),
        texts(page, "title").len() - 1,
        "{why}: a second title"
    );
}

/// Whether an address is a place of the page, or of a file beside it that no browser runs.
fn leads_nowhere_else(address: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~%/".contains(c);
    let runs = ["html", "htm", "xhtml", "svg", "xml", "pdf", "js", "mhtml"];
    let file = address.strip_prefix("./attempts/");
    let is_file = file.is_some_and(|file| {
        let extension = file.rsplit_once('.').map(|(_, extension)| extension);
        file.chars().all(is_plain)
            && !file.split('/').any(|part| part == "..")
            && extension.is_some_and(|extension| !runs.contains(&extension))
    });
    address.starts_with("#cell-") || is_file
}

fn assert_attribute(tag: &str, attribute: &str, value: &str, why: &str) {
    let here = format!("{why}: <{tag} {attribute}=\"{value}\">");
    match attribute {
        "href" => assert!(tag == "a" && leads_nowhere_else(value), "{here}"),
        "src" => {
            let kinds = [
                "data:image/png;base64,",
                "data:image/jpeg;base64,",
                "data:image/svg+xml;base64,",
            ];
            assert!(
                tag == "img" && kinds.iter().any(|kind| value.starts_with(kind)),
                "{here}"
            );
        }
        "style" => assert!(!value.contains(['(', '\\', '@']), "{here}"),
        "http-equiv" => assert_eq!(value, "content-security-policy", "{here}"),
        other => assert!(ATTRIBUTES.contains(&other), "{here}"),
    }
}

/// What hostile notebooks are made of: each is tried in every place that a notebook's text can come to.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "</pre></style></title></textarea><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><script>1</script></svg>",
    "<svg><use href=\"http://evil.example/x.svg#a\"/></svg>",
    "<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"http://evil.example/x.png\"/></svg>",
    "\"><img src=http://evil.example/beacon.png>",
    "' onmouseover='alert(1)",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"data:text/html,<script>1</script>\">x</a>",
    "<iframe srcdoc=\"<script>1</script>\"></iframe><object data=http://evil.example></object>",
    "<meta http-equiv=refresh content=\"0;url=http://evil.example\"><base href=http://evil.example>",
    "<link rel=stylesheet href=http://evil.example/x.css><style>@import url(http://evil.example/y.css)</style>",
    "<div style=\"background:url(http://evil.example/x)\">x</div>",
    "<form action=http://evil.example><button formaction=javascript:1>x</button></form>",
    "<table background=http://evil.example><tr><td style=\"background:url(//evil.example)\" onclick=1>x</td></tr></table>",
    "<table><td><img srcset=\"http://evil.example/a 1x\"><math><mtext><script>1</script></mtext></math></td></table>",
    "<math><mi//xlink:href=\"data:x,<script>1</script>\"><table><td>x</td></table>",
    "<table><td><template><script>1</script></template><noscript><p title=\"</noscript><img src=x onerror=1>\"></td></table>",
    "[x](javascript:alert(1)) ![x](http://evil.example/b.png) <http://evil.example> [x]: http://evil.example",
    "[x](http://e \"\\\" onmouseover=1\") ![\" onerror=1](x)",
    "```\"><script>1</script>\n</code></pre><script>1</script>\n```",
    "|a|\n|:-:|\n|<script>1</script>|\n",
    "- [x] <input onfocus=1 autofocus>\n",
    "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07\x1b[31m<script>1</script>\x1b[38;2;1;2;3m\"><script>",
    "\x1b[\"><script>1</script>m",
    "{{ 7*7 }}{% include x %}",
    "\0<scr\0ipt>alert(1)</scr\0ipt>",
    "<!--><script>1</script>-->",
    "<![CDATA[<script>1</script>]]>",
    "&#27;[31m&#x202e;&lt;script&gt;&#0;",
    "\u{202e}<script>\u{2066}",
];

/// Forms of output that a page might show as something else than text.
const MIMES: &[&str] = &[
    "text/html",
    "text/plain",
    "text/markdown",
    "text/latex",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "application/javascript",
    "application/json",
    "application/vnd.jupyter.widget-view+json",
];

/// Returns outputs of every kind with the text in every place of them.
fn outputs_of(hostile: &str) -> Vec<Value> {
    let shown = |data: Value| json!({"output_type": "display_data", "data": data});
    let encoded = STANDARD.encode(hostile);
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n");
    let mut outputs = vec![
        json!({"output_type": "stream", "name": hostile, "text": hostile}),
        json!({"output_type": "stream", "name": "stderr", "text": [hostile, hostile]}),
        json!({"output_type": "error", "ename": hostile, "evalue": hostile, "traceback": [hostile]}),
        json!({"output_type": "error", "ename": hostile, "evalue": hostile}),
        json!({"output_type": hostile}),
        json!(hostile),
        shown(json!({"image/png": png, "text/plain": hostile})),
        shown(json!({"text/html": format!("<table><td>{hostile}</td></table>")})),
    ];
    for mime in MIMES.iter().chain([&hostile]) {
        for value in [hostile, &encoded] {
            outputs.push(shown(json!({*mime: value})));
            outputs.push(
                json!({"output_type": "execute_result", "data": {*mime: [value], "text/plain": hostile}}),
            );
        }
    }
    outputs
}

/// Returns a comparison with an attempt in which the text stands wherever it can.
fn comparison_of(hostile: &str) -> Comparison {
    let text = || hostile.to_owned();
    Comparison {
        attempt: RunId(40).attempt(1),
        ended_at: Timestamp::UNIX_EPOCH,
        revision: None,
        head: Head::Commit("a".repeat(40)),
        is_same_content: false,
        parameters: vec![ParameterChange {
            name: text(),
            then: Some(json!(hostile)),
            now: None,
        }],
        took: Change {
            then: Some(SignedDuration::from_secs(1)),
            now: None,
        },
        cells: None,
        metrics: vec![MetricChange {
            name: text(),
            then: Some(1.0),
            now: Some(2.0),
            difference: Some(1.0),
            percent: Some(100.0),
        }],
        packages: Some(vec![PackageChange {
            name: text(),
            then: Some(text()),
            now: Some(text()),
        }]),
        environment: vec![FactChange {
            name: text(),
            then: text(),
            now: text(),
        }],
    }
}

/// Returns a report in which the text stands wherever a stranger has a say.
fn report_with(hostile: &str) -> Report {
    let mut report = failed(report_of(hostile, hostile, &outputs_of(hostile)), hostile);
    let metric = report.metrics["final_loss"].clone();
    report.metrics.insert(hostile.to_owned(), metric);
    report.notebook = hostile.into();
    report.caveats.push(hostile.to_owned());
    report.reproduce.push(hostile.to_owned());
    report
        .notices
        .push(Diagnostic::warning(Code::ArtifactRefused, hostile));
    report.expectations[0].text = hostile.to_owned();
    report.stages[0].detail = hostile.to_owned();
    for path in [hostile.to_owned(), format!("{hostile}.txt"), "page.html".into()] {
        report.artifacts.push(ArtifactReport {
            path: path.into(),
            size: Bytes(1),
            sha256: String::new(),
        });
    }
    report.requested_by = Actor::Local(hostile.to_owned());
    report.parameters = BTreeMap::from([(hostile.to_owned(), json!(hostile))]);
    report.version = Some(hostile.to_owned());
    report.revision = Some(Revision {
        commit: hostile.to_owned(),
        branch: Some(hostile.to_owned()),
        has_uncommitted_changes: true,
    });
    report.machine = Some(Machine {
        host: hostile.to_owned(),
        ..Machine::default()
    });
    report.comparison = Some(comparison_of(hostile));
    report.environment.as_mut().expect("it is there").packages[0].name = hostile.to_owned();
    report
}

#[test]
fn no_script_handler_or_outside_address_survives_wherever_a_hostile_text_stands() {
    for hostile in HOSTILE {
        let report = report_with(hostile);

        let html = html::render(&report);
        let page = Parsed::parse_document(&html);

        assert_inert(&page, hostile);
        let controls = html
            .chars()
            .filter(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}')
            .count();
        assert_eq!(controls, 0, "{hostile}");
        assert_eq!(texts(&page, "main > footer").len(), 1, "{hostile}");
        let cells = texts(&page, "main > section.cell").len();
        assert_eq!(cells, 2, "{hostile}: a cell broke out of its place");
        let junit = junit::render(&report);
        assert!(!junit.contains("<script"), "{junit}");
    }
}

#[test]
fn the_proof_fails_for_a_page_that_is_not_inert() {
    let page = html::render(&report_of("", "", &[]));
    let added = [
        "<script></script>",
        "<p onclick=x>",
        "<img src=http://evil.example/x>",
        "<a href=javascript:x>",
        "<a href='./attempts/1/artifacts/x.html'>",
        "<a href=//evil.example/x.txt>",
        "<p style='background:url(x)'>",
        "<style></style>",
        "<svg><set/></svg>",
    ];
    for markup in added {
        let broken = page.replace("</main>", &format!("{markup}</main>"));
        let caught = std::panic::catch_unwind(|| assert_inert(&Parsed::parse_document(&broken), markup));
        assert!(caught.is_err(), "{markup}");
    }
}

#[test]
fn svg_is_an_image_and_nothing_else() {
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><rect width=\"4\" height=\"4\"/></svg>";
    let report = report_of(
        "",
        "",
        &[json!({"output_type": "display_data", "data": {"image/svg+xml": svg}})],
    );
    let page = Parsed::parse_document(&html::render(&report));

    assert_inert(&page, "svg");
    let images = Selector::parse(".outputs img").expect("it is a selector");
    assert_eq!(page.select(&images).count(), 1);
}
