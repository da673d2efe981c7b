//! The words that a name is made of.

/// Words in small letters, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Takes a name apart: `DeviceBill`, `device_bill`, `device-bill` and `DEVICE_BILL` are the same.
    pub(super) fn of(name: &str) -> Self {
        let mut words = vec![String::new()];
        let mut was_small = false;
        for c in name.chars() {
            let begins = c.is_uppercase() && was_small;
            if begins || !c.is_alphanumeric() {
                words.push(String::new());
            }
            if c.is_alphanumeric() {
                let last = words.last_mut().expect("there is one from the beginning");
                last.extend(c.to_lowercase());
            }
            was_small = c.is_lowercase() || c.is_numeric();
        }
        words.retain(|word| !word.is_empty());
        Self(words)
    }

    /// Whether it has the others, one directly after another; the last of them may be in the plural.
    pub(super) fn contain(&self, others: &Self) -> bool {
        let is_same = |(word, other): (&String, &String)| {
            word == other || word.strip_suffix('s').is_some_and(|word| word == other)
        };
        let mut parts = self.0.windows(others.0.len().max(1));
        !others.0.is_empty() && parts.any(|part| part.iter().zip(&others.0).all(is_same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_a_name_have_the_same_words() {
        let words = Words(vec!["device".into(), "bill".into()]);
        for name in [
            "DeviceBill",
            "device_bill",
            "device-bill",
            "DEVICE_BILL",
            "deviceBill",
        ] {
            assert_eq!(Words::of(name), words, "{name}");
        }
    }

    #[test]
    fn words_are_found_as_a_whole_next_to_each_other_and_in_the_plural() {
        let has = |name: &str, word: &str| Words::of(name).contain(&Words::of(word));
        assert!(has("is_set_aside_now", "set_aside"));
        assert!(has("DeviceBills", "bill"));
        assert!(!has("set_it_aside", "set_aside"));
        assert!(!has("billing", "bill"));
        assert!(!has("bill", ""));
    }
}
