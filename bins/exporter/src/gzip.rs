//! Pages packed with gzip, by a compressor that is kept: to make one takes longer than to pack the page of a device.

use std::{
    io::Write as _,
    sync::{Mutex, PoisonError},
};

use flate2::{Compression, Crc, write::DeflateEncoder};

/// What a gzip file begins with: deflated, nothing said of time, name or system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Packs pages, one at a time.
pub(crate) struct Packer(Mutex<DeflateEncoder<Vec<u8>>>);

impl Packer {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(DeflateEncoder::new(Vec::new(), Compression::fast())))
    }

    /// Returns a page as a gzip file.
    pub(crate) fn pack(&self, page: &[u8]) -> Vec<u8> {
        let mut check = Crc::new();
        check.update(page);
        // It is given a new file below before anything else, so one that was left half written is no harm.
        let mut encoder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut packed = Vec::with_capacity(page.len() / 8);
        packed.extend(HEAD);
        let memory = "memory takes anything";
        drop(encoder.reset(packed).expect(memory));
        encoder.write_all(page).expect(memory);
        let mut packed = encoder.reset(Vec::new()).expect(memory);
        drop(encoder);
        packed.extend(check.sum().to_le_bytes());
        packed.extend(check.amount().to_le_bytes());
        packed
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn one_page_after_the_other_is_unpacked_as_it_was() {
        let packer = Packer::new();
        let long = "blueproof_gpu_power_watts 312.45\n".repeat(10_000);
        for page in [long.as_str(), "", "a 1\n", long.as_str()] {
            let packed = packer.pack(page.as_bytes());
            let mut unpacked = String::new();
            let mut decoder = GzDecoder::new(packed.as_slice());
            decoder.read_to_string(&mut unpacked).expect("it is gzip");
            assert_eq!(unpacked, page);
        }
    }
}
