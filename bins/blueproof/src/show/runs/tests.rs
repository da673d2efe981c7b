//! Lists of runs as people read them.

use anstream::adapter::strip_str;

use super::*;
use crate::{
    output::Width,
    show::samples::{at, views},
};

fn shown(columns: Columns, width: Width) -> String {
    let views = views();
    let text = table(&views, &views, at(60), columns).render(width);
    strip_str(&text).to_string()
}

#[test]
fn a_list_fits_into_80_columns() {
    let text = shown(Columns::Usual, Width::Columns(80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_list_is_not_shortened_where_there_is_room() {
    let wide = shown(Columns::Usual, Width::Columns(200));
    assert_eq!(wide, shown(Columns::Usual, Width::Unlimited));
    assert!(!wide.contains('…'), "{wide}");
    insta::assert_snapshot!(wide);
}

#[test]
fn blueprints_of_one_name_are_told_apart_by_where_they_lie() {
    let mut views = views();
    views.truncate(3);
    for (view, folder) in views.iter_mut().zip(["/t3/one", "/t3/two", "/t3/two"]) {
        view.subject.blueprint = "n".parse().expect("a name");
        view.subject.repository = Repository::Local(folder.into());
    }
    for columns in [Columns::Usual, Columns::Wide] {
        let text = table(&views, &views, at(60), columns).render(Width::Unlimited);
        let told = ["n (/t3/one)", "n (/t3/two)"].map(|name| text.matches(name).count());
        assert_eq!(told, [1, 2], "{text}");
        let some = &views[1..];
        let alone = table(some, some, at(60), columns).render(Width::Unlimited);
        assert!(!alone.contains("/t3/two"), "{alone}");
        let changed = table(some, &views, at(60), columns).render(Width::Unlimited);
        assert_eq!(changed.matches("n (/t3/two)").count(), 2, "{changed}");
    }
}

#[test]
fn a_wide_list_has_more_columns() {
    insta::assert_snapshot!(shown(Columns::Wide, Width::Unlimited));
}

#[test]
fn only_states_have_a_colour() {
    let text = table(&views(), &[], at(60), Columns::Usual).render(Width::Unlimited);
    for line in text.lines().skip(1) {
        let coloured = line.split('\u{1b}').count() - 1;
        assert_eq!(coloured, 2, "one colour is begun and ended: {line:?}");
    }
}
