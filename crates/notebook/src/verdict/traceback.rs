//! What can be read off IPython's printed traceback, for kernels that could not be asked.

use crate::text::shown;

/// Returns the line of the cell with the number `count` where the traceback last was in it.
pub(crate) fn last_line_in_cell(traceback: &[String], count: u64) -> Option<u32> {
    let text = shown(&traceback.join("\n"));
    let here = format!("Cell In[{count}], line ");
    let after = text.rsplit_once(&here)?.1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_in_the_cell_is_read() {
        let traceback = [
            "\u{1b}[31mValueError\u{1b}[39m  Traceback (most recent call last)".to_owned(),
            "\u{1b}[36mCell\u{1b}[39m\u{1b}[36m \u{1b}[39m\u{1b}[32mIn[3]\u{1b}[39m\u{1b}[32m, line 5\u{1b}[39m".to_owned(),
            "Cell In[2], line 1, in f()".to_owned(),
        ];
        assert_eq!(last_line_in_cell(&traceback, 3), Some(5));
        assert_eq!(last_line_in_cell(&traceback, 2), Some(1));
        assert_eq!(last_line_in_cell(&traceback, 4), None);
    }
}
