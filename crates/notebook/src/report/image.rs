//! Images of a notebook as addresses that hold the image itself.
//!
//! A browser runs no script in an image and fetches nothing for it, SVG included, so an `img` is the one place where
//! SVG may stand. What is not what it says it is, or is too large, is not shown.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::Regex;
use std::sync::LazyLock;

/// The most bytes of an image that is shown.
const IMAGE_BYTES: usize = 8 * 1024 * 1024;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the `data:` address of a PNG or JPEG that comes in Base64, or a few words on why it is not shown.
pub(super) fn raster(mime: &str, encoded: &str) -> Result<String, &'static str> {
    let compact: String = encoded.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if compact.len() / 4 * 3 > IMAGE_BYTES {
        return Err("an image too large for this page");
    }
    let bytes = BASE64
        .decode(&compact)
        .map_err(|_| "an image that is not in Base64")?;
    let magic: &[u8] = match mime {
        "image/png" => b"\x89PNG\r\n\x1a\n",
        "image/jpeg" => b"\xff\xd8\xff",
        _ => return Err("an image of a kind that is not shown"),
    };
    if !bytes.starts_with(magic) {
        return Err("an image that is not what it says it is");
    }
    Ok(format!("data:{mime};base64,{compact}"))
}

/// Returns the `data:` address of an SVG image, or a few words on why it is not shown.
pub(super) fn svg(text: &str) -> Result<String, &'static str> {
    if text.len() > IMAGE_BYTES {
        return Err("an image too large for this page");
    }
    if !text.contains("<svg") {
        return Err("an image that is not what it says it is");
    }
    if ACTIVE.is_match(text) || addresses(text).any(|address| !is_internal(address)) {
        return Err("an SVG image with scripts or outside addresses");
    }
    Ok(format!("data:image/svg+xml;base64,{}", BASE64.encode(text)))
}

static ACTIVE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)<\s*(?:\w+:)?(?:script|foreignobject|iframe|object|embed|handler|set|animate)|<!entity|<\?xml-stylesheet|@import|[\s/'\x22]on\w+\s*=")
        .expect("the pattern is one")
});

/// Returns everything that is named as the address of something to fetch or to go to.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?i)(?:\bhref|\bsrc)\s*=\s*["']?\s*([^"'\s>]*)|url\(\s*["']?\s*([^"')\s]*)"#)
            .expect("the pattern is one")
    });
    NAMED
        .captures_iter(text)
        .filter_map(|found| found.get(1).or_else(|| found.get(2)))
        .map(|address| address.as_str())
}

fn is_internal(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    let image =
        address.starts_with("data:image/png;base64,") || address.starts_with("data:image/jpeg;base64,");
    address.is_empty() || address.starts_with('#') || image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_shown_when_its_first_bytes_are_those_of_its_kind() {
        let png = BASE64.encode(b"\x89PNG\r\n\x1a\n and more");
        let broken = format!("{}\n{}", &png[..6], &png[6..]);
        assert_eq!(
            raster("image/png", &broken),
            Ok(format!("data:image/png;base64,{png}"))
        );
        assert!(raster("image/jpeg", &png).is_err());
        assert!(raster("image/png", &BASE64.encode("<script>alert(1)</script>")).is_err());
        assert!(raster("image/png", "not base64 \"><script>").is_err());
        assert!(raster("text/html", &png).is_err());
    }

    #[test]
    fn svg_with_scripts_or_outside_addresses_is_not_shown() {
        let inner = |inner: &str| {
            svg(&format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">{inner}</svg>"
            ))
        };
        for fine in [
            "<path d=\"M0 0\"/>",
            "<use xlink:href=\"#a\"/>",
            "<g clip-path=\"url(#c)\"/>",
            "<image href=\"data:image/png;base64,AA\"/>",
        ] {
            assert!(inner(fine).is_ok(), "{fine}");
        }
        for bad in [
            "<script>x</script>",
            "<svg:script>x</svg:script>",
            "<g onload=\"x\"/>",
            "<g/onclick=x>",
            "<image href=\"http://x/y\"/>",
            "<image xlink:href='//x/y'/>",
            "<a href=\"javascript:x\"/>",
            "<style>@import 'http://x'</style>",
            "<rect fill=\"url( http://x )\"/>",
            "<foreignObject><p/></foreignObject>",
            "<image href=\"data:image/svg+xml,x\"/>",
        ] {
            assert!(inner(bad).is_err(), "{bad}");
        }
        assert!(svg("<!DOCTYPE svg [<!ENTITY a 'b'>]><svg>&a;</svg>").is_err());
    }
}
