//! Tables: columns as wide as what stands in them, two blanks between.

use std::{borrow::Cow, ops::Range};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// The least that is left of a shortened cell; below it lines get longer than the terminal.
const LEAST_LAST: usize = 12;

/// What the last column has of a terminal where another can make room for it.
const WISHED_LAST: usize = 20;
/// No other column is made narrower. It is more than the longest state has, so that only names give way.
const LEAST_OTHER: usize = 20;

/// By how much the further lines of a row stand to the right of its first one.
const FOLDED: usize = 4;
/// In less than that nothing is readable, folded or not.
const LEAST_FOLDED: usize = 40;

/// How wide lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// As wide as this.
    Columns(usize),
    /// Nothing is shortened: it is not a terminal that reads.
    Unlimited,
}

/// Rows under a header.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<Cow<'static, str>>,
    rows: Vec<Vec<Cell>>,
}

/// A text with its colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Table {
    /// Returns an empty table. The last column is the one that may be shortened, and the widest of the others where that
    /// makes all of them fit.
    pub(crate) fn new(header: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            header: header.into_iter().map(Cow::Borrowed).collect(),
            rows: Vec::new(),
        }
    }

    /// Returns an empty table whose columns are named by what is in it.
    pub(crate) fn named(header: Vec<String>) -> Self {
        Self {
            header: header.into_iter().map(Cow::Owned).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns how wide each column has to be.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|title| title.width()).collect();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        widths
    }

    /// Returns the table as text, header included.
    pub(crate) fn render(&self, width: Width) -> String {
        let widths = self.widths();
        let header = self
            .header
            .iter()
            .map(|title| Cell::from(title.as_ref()))
            .collect::<Vec<_>>();
        let all = std::iter::once(&header).chain(&self.rows);
        rendered(all, &widths, width)
    }

    /// Returns the rows as text, in columns that were measured before. Where there is a limit, columns that were narrower then are
    /// as wide as is needed now.
    pub(crate) fn render_rows(&self, widths: &[usize], width: Width) -> String {
        let mut widths = widths.to_vec();
        if let Width::Columns(_) = width {
            let now = self.widths();
            widths.resize(widths.len().max(now.len()), 0);
            widths
                .iter_mut()
                .zip(now)
                .for_each(|(width, now)| *width = now.max(*width));
        }
        rendered(self.rows.iter(), &widths, width)
    }
}

impl Cell {
    /// Returns a text in a colour.
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// Returns how wide columns are on a terminal: the widest ones give way, where that is enough for all to fit.
fn fitted(widths: &[usize], limit: Width) -> Vec<usize> {
    let mut fitted = widths.to_vec();
    let (Width::Columns(columns), Some((last, others))) = (limit, fitted.split_last_mut()) else {
        return fitted;
    };
    let room = columns.saturating_sub((*last).min(WISHED_LAST) + 2 * others.len());
    while others.iter().sum::<usize>() > room {
        match others.iter_mut().max() {
            Some(widest) if *widest > LEAST_OTHER => *widest -= 1,
            // It does not fit either way, so nothing is hidden.
            Some(_) | None => return widths.to_vec(),
        }
    }
    fitted
}

/// Returns rows as text, each in one line, or in several where that is too narrow.
fn rendered<'a>(rows: impl Iterator<Item = &'a Vec<Cell>>, widths: &[usize], limit: Width) -> String {
    let folds = folds(widths, limit);
    let lines = |row: &'a Vec<Cell>| -> String {
        if folds.is_empty() {
            return line(row, widths, limit);
        }
        let parts = folds.iter().enumerate();
        parts
            .map(|(nth, fold)| folded(row, widths, fold, limit, nth))
            .collect()
    };
    rows.map(lines).collect()
}

/// Returns which columns stand in which line of a row: all in one, or where they do not fit by becoming narrower, as many as do.
fn folds(widths: &[usize], limit: Width) -> Vec<Range<usize>> {
    let Width::Columns(columns) = limit else {
        return Vec::new();
    };
    let fitted = fitted(widths, limit);
    let others = fitted.len().saturating_sub(1);
    let used: usize = fitted[..others].iter().map(|width| width + 2).sum();
    if columns < LEAST_FOLDED || used + LEAST_LAST <= columns {
        return Vec::new();
    }
    let (mut folds, mut begin, mut used) = (Vec::new(), 0, 0);
    for (at, width) in widths.iter().enumerate() {
        if at > begin && used + width > columns {
            folds.push(begin..at);
            (begin, used) = (at, FOLDED);
        }
        used += width + 2;
    }
    folds.push(begin..widths.len());
    folds
}

/// Returns one of the lines that a row is folded into. What would not fit into a line of its own is shortened.
fn folded(cells: &[Cell], widths: &[usize], fold: &Range<usize>, limit: Width, nth: usize) -> String {
    let indent = if nth == 0 { 0 } else { FOLDED };
    let (from, to) = (fold.start.min(cells.len()), fold.end.min(cells.len()));
    let limit = match limit {
        Width::Columns(columns) => Width::Columns(columns - indent),
        Width::Unlimited => Width::Unlimited,
    };
    let line = line(&cells[from..to], &widths[fold.clone()], limit);
    if line.trim().is_empty() {
        return String::new();
    }
    format!("{}{line}", " ".repeat(indent))
}

fn line(cells: &[Cell], widths: &[usize], limit: Width) -> String {
    let fitted = fitted(widths, limit);
    let mut text = String::new();
    let mut used = 0;
    for (index, cell) in cells.iter().enumerate() {
        let last = index + 1 == cells.len();
        let shown = match limit {
            Width::Columns(columns) if last => {
                shorten(&cell.text, columns.saturating_sub(used).max(LEAST_LAST))
            }
            Width::Columns(_) if fitted.get(index) < widths.get(index) => shorten(&cell.text, fitted[index]),
            Width::Columns(_) | Width::Unlimited => cell.text.clone(),
        };
        let column = fitted.get(index).copied().unwrap_or(0) + 2;
        let gap = column.saturating_sub(shown.width()).max(2);
        used += shown.width() + gap;
        text.push_str(&format!("{}{shown}{:#}", cell.style, cell.style));
        text.push_str(&" ".repeat(gap));
    }
    format!("{}\n", text.trim_end())
}

/// Keeps the beginning, and says that there was more.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.into();
    }
    let mut short = String::new();
    for c in text.chars() {
        let mut longer = short.clone();
        longer.push(c);
        if longer.width() + 1 > columns {
            break;
        }
        short = longer;
    }
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["RUN", "STATE", "DETAIL"]);
        table.row(["r-1".into(), "passed".into(), Cell::from("")]);
        table.row([
            "r-10".into(),
            Cell::styled("failed", anstyle::AnsiColor::Red.on_default()),
            "何かが壊れた: the loss is not a number".into(),
        ]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_whatever_their_colour() {
        let text = table().render(Width::Unlimited);
        assert_eq!(
            text,
            "RUN   STATE   DETAIL\n\
             r-1   passed\n\
             r-10  \u{1b}[31mfailed\u{1b}[0m  何かが壊れた: the loss is not a number\n"
        );
    }

    #[test]
    fn a_long_name_makes_room_for_the_rest_where_that_is_enough() {
        let mut table = Table::new(["RUN", "BLUEPRINT", "DETAIL"]);
        let name = "a-name-that-goes-on-and-on-and-on";
        table.row([
            "r-1".into(),
            name.into(),
            Cell::from("ValueError: it is not a number"),
        ]);
        assert_eq!(
            table.render(Width::Columns(50)),
            "RUN  BLUEPRINT                DETAIL\n\
             r-1  a-name-that-goes-on-an…  ValueError: it is n…\n"
        );
        assert!(
            table.render(Width::Columns(30)).contains(name),
            "it does not fit either way"
        );
        assert!(table.render(Width::Unlimited).contains("it is not a number"));
    }

    #[test]
    fn what_does_not_fit_into_a_line_goes_on_in_the_next_one() {
        let mut table = Table::new(["RUN", "NAME", "HEAD", "STATE", "PLACE", "DETAIL"]);
        let cells = [
            "r-1",
            "nano",
            "0123456789ab",
            "waits for quota",
            "a machine far away",
        ];
        let detail = Cell::from("it waits for others who were there before");
        table.row(cells.map(Cell::from).into_iter().chain([detail]));
        assert_eq!(
            table.render(Width::Columns(48)),
            "RUN  NAME  HEAD          STATE\n    PLACE\n    DETAIL\n\
             r-1  nano  0123456789ab  waits for quota\n    a machine far away\n    it waits for others who were there before\n"
        );
        for columns in [40, 60, 80, 100] {
            let text = table.render(Width::Columns(columns));
            assert!(text.lines().all(|line| line.width() <= columns), "{text}");
            assert!(text.contains("a machine far away"), "{text}");
        }
        assert_eq!(table.render(Width::Unlimited).lines().count(), 2);
    }

    #[test]
    fn rows_that_come_later_are_folded_as_those_under_the_header() {
        let row = |state: &'static str| {
            [
                "r-1",
                "nano",
                "0123456789ab",
                state,
                "a machine far away",
                "detail",
            ]
        };
        let header = ["RUN", "NAME", "HEAD", "STATE", "PLACE", "DETAIL"];
        let (mut first, mut later) = (Table::new(header), Table::new(header));
        first.row(row("waits for quota").map(Cell::from));
        later.row(row("passed").map(Cell::from));
        let folded = first
            .render(Width::Columns(48))
            .replace("waits for quota", "passed");
        let rows = later.render_rows(&first.widths(), Width::Columns(48));
        assert!(
            rows.lines().count() > 1 && folded.ends_with(&rows),
            "{folded}\n{rows}"
        );
        // One that was narrow enough before may not be so now.
        let rows = later.render_rows(&[3, 4, 12, 5, 5, 6], Width::Columns(48));
        assert!(rows.lines().all(|line| line.width() <= 48), "{rows}");
    }

    #[test]
    fn a_column_that_is_wider_than_the_terminal_is_shortened_to_a_line_of_its_own() {
        let mut table = Table::new(["RUN", "NAME", "HEAD", "STATE", "PLACE", "DETAIL"]);
        let name = format!("nano-lm (/home/{}/checkout)", "somebody/".repeat(10));
        let cells = [
            "r-1",
            &name,
            "0123456789ab",
            "waits for quota, which others have now",
            "here",
        ];
        let detail = Cell::from("it waits for others who were there before");
        table.row(cells.map(Cell::from).into_iter().chain([detail]));
        for columns in [40, 60, 80, 100] {
            let text = table.render(Width::Columns(columns));
            assert!(text.lines().all(|line| line.width() <= columns), "{text}");
            assert!(text.contains("0123456789ab"), "{text}");
        }
    }

    #[test]
    fn a_terminal_shortens_the_last_column_and_nothing_else() {
        let text = anstream::adapter::strip_str(&table().render(Width::Columns(33))).to_string();
        let last = text.lines().last().expect("a row");
        assert_eq!(last, "r-10  failed  何かが壊れた: the…");
        assert!(last.width() <= 33);
        let narrow = anstream::adapter::strip_str(&table().render(Width::Columns(5))).to_string();
        assert!(narrow.starts_with("RUN   STATE   DETAIL\n"), "{narrow}");
    }
}
