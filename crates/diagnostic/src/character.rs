//! Characters that are not what they seem.

/// Returns whether a character moves, hides or reorders others. Control characters are not among them.
pub fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_seen_and_what_deceives_is_not() {
        for seen in ['a', 'ß', '中', ' ', '\n', '\u{1f600}'] {
            assert!(!is_unseen(seen), "{seen:?}");
        }
        for unseen in [
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
            '\u{ad}',
        ] {
            assert!(is_unseen(unseen), "{unseen:?}");
        }
    }
}
