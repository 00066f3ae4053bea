//! Decimal formatting without `core::fmt`, for code that runs in every call.

/// The decimal digits of a number.
#[derive(Debug)]
pub struct Digits {
    places: [u8; 20],
    first: usize,
}

impl Digits {
    /// Formats a number.
    pub fn of(mut number: u64) -> Self {
        let (mut places, mut first) = ([b'0'; 20], 20);
        for digit in places.iter_mut().rev() {
            *digit += (number % 10) as u8;
            (first, number) = (first - 1, number / 10);
            if number == 0 {
                break;
            }
        }
        Self { places, first }
    }

    /// The digits as text.
    pub fn as_str(&self) -> &str {
        self.places.get(self.first..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_like_to_string() {
        for number in [0, 7, 10, 99, 100, 65_536, u64::MAX] {
            assert_eq!(Digits::of(number).as_str(), number.to_string());
        }
    }
}
