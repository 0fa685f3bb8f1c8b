//! An API key as text: `dk_<id>_<secret>`. The id is public, 32 hex digits; the secret is 32 bytes of chance in base 62, with a
//! checksum of six characters behind it, so that a key with a typing error is told from a wrong one.

use crate::words::ids::{KeyId, checksum_of};

const HEAD: &str = "dk_";
const SECRET_CHARS: usize = 43;
const CHECK_CHARS: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The whole text of a key from its id and 32 bytes of chance.
pub fn text_of(id: KeyId, secret: [u8; 32]) -> String {
    let body = format!("{HEAD}{}_{}", id.digits(), secret_digits(secret));
    let check = check_digits(&body);
    body + &check
}

/// The id in a text that has the form of a key and whose checksum fits; says nothing of whether there is such a key.
pub fn id_of(text: &str) -> Option<KeyId> {
    let (digits, secret) = text.strip_prefix(HEAD)?.split_once('_')?;
    let is_digit = |byte: u8| DIGITS.contains(&byte);
    if secret.len() != SECRET_CHARS + CHECK_CHARS || !secret.bytes().all(is_digit) {
        return None;
    }
    let (body, check) = text.split_at(text.len() - CHECK_CHARS);
    if check_digits(body) != check {
        return None;
    }
    KeyId::of_digits(digits)
}

/// 32 bytes as 43 digits: a long division by 62, digit by digit.
fn secret_digits(mut number: [u8; 32]) -> String {
    let mut digits = [0_u8; SECRET_CHARS];
    for place in digits.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut number {
            let here = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(here / 62).expect("less than 256, for the rest is less than 62");
            rest = here % 62;
        }
        *place = DIGITS[rest as usize];
    }
    digits.map(char::from).iter().collect()
}

fn check_digits(body: &str) -> String {
    let mut number = checksum_of(body.as_bytes());
    let mut digits = [0_u8; CHECK_CHARS];
    for place in digits.iter_mut().rev() {
        *place = DIGITS[usize::try_from(number % 62).expect("less than 62")];
        number /= 62;
    }
    digits.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_and_a_typing_error_does_not() {
        let id = KeyId([0xab; 16]);
        for secret in [[0; 32], [255; 32], [7; 32]] {
            let text = text_of(id, secret);
            assert_eq!(text.len(), 3 + 32 + 1 + 43 + 6);
            assert_eq!(id_of(&text), Some(id), "{text}");
            for (place, byte) in text.bytes().enumerate() {
                let other = if byte == b'x' { 'y' } else { 'x' };
                let mut wrong = text.clone();
                wrong.replace_range(place..=place, &other.to_string());
                assert_eq!(id_of(&wrong), None, "{wrong}");
            }
        }
        for bad in ["", "dk_", "dk__", "dk_ab_cd", "dk_\u{e9}_", &"_".repeat(85)] {
            assert_eq!(id_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_digits_are_those_of_the_number() {
        let mut one = [0; 32];
        one[31] = 61;
        assert!(secret_digits(one).ends_with("00z"));
        one[31] = 62;
        assert!(secret_digits(one).ends_with("010"));
        let largest = secret_digits([255; 32]);
        assert!(largest < "z".repeat(43) && largest.len() == 43);
    }
}
