//! What the numbers come to that NVIDIA's driver reports errors by, in our own words.
//!
//! The numbers are those of NVIDIA's list of Xid errors (<https://docs.nvidia.com/deploy/xid-errors/>) up to 172, as
//! dcgm-exporter has them too (NVIDIA/dcgm-exporter 3446595, `internal/pkg/collector/xid_errors.go`), read on 2026-11-22. What an
//! error comes to is ours: whether its device has to be reset, or a program alone is hurt. Where the number does not tell that
//! for sure, it is unknown, and so is never well.

use serde::{Deserialize, Serialize};

/// What an error comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum XidClass {
    /// The device is broken until it is reset, or its machine started anew.
    Reset,
    /// Memory is broken, and only the programs that used it were hurt.
    Contained,
    /// A program did something that it must not.
    Application,
    /// It is told for the record.
    Informational,
    /// It is not in this list, or its number alone does not tell.
    Unknown,
}

/// The first and the last number of some that come to the same, what that is, and what happened.
type Row = (u64, u64, XidClass, &'static str);

/// All numbers, in their order.
const XIDS: &[Row] = &[
    (
        1,
        4,
        XidClass::Unknown,
        "a stream of commands was invalid or damaged",
    ),
    (5, 5, XidClass::Unknown, "a number that the driver does not use"),
    (
        6,
        6,
        XidClass::Unknown,
        "a stream of commands was invalid or damaged",
    ),
    (
        7,
        7,
        XidClass::Unknown,
        "the address of a stream of commands was invalid",
    ),
    (8, 8, XidClass::Application, "a program's work stopped on it"),
    (9, 9, XidClass::Unknown, "the driver programmed it wrongly"),
    (10, 10, XidClass::Unknown, "a number that the driver does not use"),
    (
        11,
        11,
        XidClass::Application,
        "a stream of commands was invalid or damaged",
    ),
    (
        12,
        12,
        XidClass::Unknown,
        "the driver failed while it handled an exception",
    ),
    (
        13,
        13,
        XidClass::Application,
        "a program made its processors raise an exception",
    ),
    (14, 15, XidClass::Unknown, "a number that the driver does not use"),
    (16, 16, XidClass::Unknown, "its display engine hung"),
    (17, 17, XidClass::Unknown, "a number that the driver does not use"),
    (18, 18, XidClass::Unknown, "it may not be master of the bus"),
    (19, 19, XidClass::Unknown, "its display engine failed"),
    (
        20,
        22,
        XidClass::Application,
        "commands for a video engine were invalid or damaged",
    ),
    (23, 23, XidClass::Unknown, "a number that the driver does not use"),
    (24, 24, XidClass::Unknown, "a semaphore was waited for too long"),
    (
        25,
        25,
        XidClass::Application,
        "a stream of commands was invalid or damaged",
    ),
    (26, 26, XidClass::Unknown, "its memory did not answer in time"),
    (27, 29, XidClass::Unknown, "a video engine raised an exception"),
    (30, 30, XidClass::Unknown, "a semaphore could not be used"),
    (
        31,
        31,
        XidClass::Application,
        "a program used memory that is not mapped for it",
    ),
    (
        32,
        32,
        XidClass::Application,
        "a stream of commands was invalid or damaged",
    ),
    (33, 33, XidClass::Unknown, "the controller inside it failed"),
    (34, 36, XidClass::Unknown, "a video engine raised an exception"),
    (37, 38, XidClass::Unknown, "firmware of the driver failed"),
    (39, 41, XidClass::Unknown, "a number that the driver does not use"),
    (42, 42, XidClass::Unknown, "a video engine raised an exception"),
    (
        43,
        43,
        XidClass::Application,
        "a program's work was stopped for an error of its own",
    ),
    (
        44,
        44,
        XidClass::Unknown,
        "its processors failed while they changed programs",
    ),
    (
        45,
        45,
        XidClass::Application,
        "a program's work was cleared away after it ended or failed",
    ),
    (46, 46, XidClass::Reset, "it stopped working"),
    (47, 47, XidClass::Unknown, "a video engine raised an exception"),
    (
        48,
        48,
        XidClass::Reset,
        "two bits of memory were wrong, which cannot be corrected",
    ),
    (49, 53, XidClass::Unknown, "a number that the driver does not use"),
    (54, 54, XidClass::Unknown, "its power supply is not plugged in"),
    (55, 55, XidClass::Unknown, "a number that the driver does not use"),
    (56, 56, XidClass::Unknown, "its display engine failed"),
    (57, 57, XidClass::Unknown, "its memory could not be programmed"),
    (58, 58, XidClass::Unknown, "its memory is not stable"),
    (59, 59, XidClass::Unknown, "the controller inside it failed"),
    (60, 60, XidClass::Unknown, "a video engine raised an exception"),
    (
        61,
        61,
        XidClass::Reset,
        "the controller inside it met a breakpoint",
    ),
    (62, 62, XidClass::Reset, "the controller inside it stopped"),
    (
        63,
        63,
        XidClass::Informational,
        "a row or page of memory was noted to be replaced",
    ),
    (
        64,
        64,
        XidClass::Reset,
        "a row or page of memory could not be noted to be replaced",
    ),
    (65, 65, XidClass::Unknown, "a video engine raised an exception"),
    (
        66,
        67,
        XidClass::Unknown,
        "the driver used it in a way that is not allowed",
    ),
    (68, 68, XidClass::Application, "a video decoder failed"),
    (
        69,
        69,
        XidClass::Application,
        "a program gave its processors a command that they do not have",
    ),
    (70, 72, XidClass::Unknown, "an engine that copies failed"),
    (73, 73, XidClass::Unknown, "a video encoder failed"),
    (74, 74, XidClass::Reset, "a link to another device failed"),
    (75, 77, XidClass::Unknown, "an engine that copies failed"),
    (78, 78, XidClass::Unknown, "a virtual device did not start"),
    (79, 79, XidClass::Reset, "it fell off the bus"),
    (80, 80, XidClass::Unknown, "data were damaged on their way to it"),
    (81, 81, XidClass::Unknown, "its VGA part failed"),
    (82, 82, XidClass::Unknown, "a decoder of pictures failed"),
    (83, 84, XidClass::Application, "a video decoder failed"),
    (85, 85, XidClass::Unknown, "an engine that copies failed"),
    (86, 86, XidClass::Unknown, "its engine for optical flow failed"),
    (87, 87, XidClass::Unknown, "a number that is reserved"),
    (88, 89, XidClass::Application, "a video decoder failed"),
    (90, 91, XidClass::Unknown, "a number that is reserved"),
    (
        92,
        92,
        XidClass::Informational,
        "many errors of memory were corrected",
    ),
    (
        93,
        93,
        XidClass::Informational,
        "its own store of settings is written too often",
    ),
    (
        94,
        94,
        XidClass::Contained,
        "memory is broken, and only its users were stopped",
    ),
    (
        95,
        95,
        XidClass::Reset,
        "memory is broken, and nobody knows whom it hurt",
    ),
    (96, 98, XidClass::Application, "a video decoder failed"),
    (99, 105, XidClass::Unknown, "a decoder of pictures failed"),
    (106, 107, XidClass::Informational, "a message of a test"),
    (108, 108, XidClass::Unknown, "a number that is reserved"),
    (
        109,
        109,
        XidClass::Reset,
        "its processors did not change programs in time",
    ),
    (
        110,
        110,
        XidClass::Reset,
        "something in it broke a rule of security",
    ),
    (111, 112, XidClass::Unknown, "its display part failed"),
    (
        113,
        113,
        XidClass::Unknown,
        "a link to a display could not be trained",
    ),
    (114, 118, XidClass::Unknown, "its display part failed"),
    (
        119,
        119,
        XidClass::Reset,
        "its system processor did not answer in time",
    ),
    (120, 120, XidClass::Reset, "its system processor failed"),
    (
        121,
        121,
        XidClass::Unknown,
        "its link to the processor of the machine failed",
    ),
    (122, 122, XidClass::Unknown, "its flash memory could not be read"),
    (
        123,
        123,
        XidClass::Unknown,
        "its flash memory could not be written",
    ),
    (
        124,
        124,
        XidClass::Unknown,
        "its flash memory could not be cleared",
    ),
    (125, 125, XidClass::Unknown, "its store of settings is damaged"),
    (126, 135, XidClass::Unknown, "an engine that copies failed"),
    (
        136,
        136,
        XidClass::Reset,
        "a link to another device could not be trained",
    ),
    (
        137,
        137,
        XidClass::Application,
        "a program used memory of another device that it may not",
    ),
    (
        138,
        138,
        XidClass::Unknown,
        "an accelerator for deep learning in it failed",
    ),
    (139, 139, XidClass::Unknown, "its engine for optical flow failed"),
    (
        140,
        140,
        XidClass::Reset,
        "an error of memory could not be corrected",
    ),
    (141, 141, XidClass::Unknown, "a short way for its commands failed"),
    (142, 142, XidClass::Unknown, "a video encoder failed"),
    (143, 143, XidClass::Reset, "it could not be started"),
    (
        144,
        150,
        XidClass::Unknown,
        "a link to another device reported an error, which may be harmless",
    ),
    (151, 151, XidClass::Unknown, "a key could not be changed"),
    (
        152,
        153,
        XidClass::Unknown,
        "an accelerator for deep learning in it failed",
    ),
    (
        154,
        154,
        XidClass::Unknown,
        "what is to be done to mend it changed",
    ),
    (
        155,
        155,
        XidClass::Unknown,
        "a link to another device reported an error, which may be harmless",
    ),
    (156, 156, XidClass::Informational, "a part of it was retired"),
    (157, 157, XidClass::Reset, "a part of it could not be retired"),
    (
        158,
        158,
        XidClass::Reset,
        "it did not answer in time, and will not",
    ),
    (
        159,
        159,
        XidClass::Unknown,
        "its link to the processor of the machine failed without data",
    ),
    (
        160,
        160,
        XidClass::Informational,
        "a channel of memory was retired",
    ),
    (
        161,
        161,
        XidClass::Reset,
        "a channel of memory could not be retired",
    ),
    (
        162,
        162,
        XidClass::Informational,
        "what smooths its power is on again",
    ),
    (163, 163, XidClass::Informational, "what smooths its power is off"),
    (
        164,
        164,
        XidClass::Informational,
        "what smooths its power is nearly worn out",
    ),
    (
        165,
        165,
        XidClass::Informational,
        "what smooths its power is worn out",
    ),
    (166, 166, XidClass::Unknown, "a link that is encrypted failed"),
    (
        167,
        167,
        XidClass::Reset,
        "its bus did not answer in time, and will not",
    ),
    (
        168,
        168,
        XidClass::Contained,
        "it has less memory than it should, for errors were found where it cannot be replaced",
    ),
    (169, 169, XidClass::Reset, "the controller inside it stopped"),
    (
        170,
        170,
        XidClass::Unknown,
        "a link reported something that it must not while work is confidential",
    ),
    (
        171,
        171,
        XidClass::Reset,
        "an error of its memory could not be corrected",
    ),
    (
        172,
        172,
        XidClass::Reset,
        "an error of its inner memory could not be corrected",
    ),
];

/// Returns what an error comes to.
pub fn xid_class(xid: u64) -> XidClass {
    row(xid).map_or(XidClass::Unknown, |(_, _, class, _)| *class)
}

/// Returns what happened.
pub fn xid_words(xid: u64) -> &'static str {
    row(xid).map_or("not in our list", |(.., words)| words)
}

fn row(xid: u64) -> Option<&'static Row> {
    let place = XIDS.partition_point(|(_, last, ..)| *last < xid);
    XIDS.get(place).filter(|(first, ..)| *first <= xid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_list_has_words_and_no_other() {
        for xid in 1..=172 {
            assert_ne!(xid_words(xid), "not in our list", "{xid}");
        }
        for xid in [0, 173, 999, u64::MAX] {
            let told = (xid_class(xid), xid_words(xid));
            assert_eq!(told, (XidClass::Unknown, "not in our list"), "{xid}");
        }
        assert!(
            XIDS.is_sorted_by(|one, next| one.1 < next.0),
            "each is there once"
        );
    }

    #[test]
    fn what_an_error_comes_to_is_told_where_its_number_tells() {
        let reset = [46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 140, 143, 171];
        for (class, xids) in [
            (XidClass::Reset, &reset[..]),
            (XidClass::Contained, &[94, 168]),
            (XidClass::Application, &[13, 31, 43, 45, 69, 137]),
            (XidClass::Informational, &[63, 92, 156]),
            (XidClass::Unknown, &[12, 121, 145, 154]),
        ] {
            for xid in xids {
                assert_eq!(xid_class(*xid), class, "{xid}");
            }
        }
    }
}
