//! What people and programs read.

use blueproof_core::{
    gpu::{DeviceUuid, Figure},
    ports::ProbeErrorKind,
};

use super::super::{
    Answer, CheckId, CheckPolicy, Facts, Finding, Findings, LabelPolicy, Reports, Severity, check,
};
use super::stories::*;

#[test]
fn findings_are_a_few_lines_for_a_terminal() {
    let mut readings = with(Figure::RowRemapFailure, 1.0);
    readings.set(Figure::PcieWidth, failed());
    assert_eq!(
        looked([readings], &[31]).to_string(),
        "\
machine
  ok        driver, device count
  not done  bandwidth (pciebw) needs CUDA, computing (gpumem) needs CUDA, DCGM
            level 3 needs DCGM and an idle machine
GPU-0
  evict     remapped rows: a row could not be replaced; replaced so far: 0 after
            uncorrectable errors, 0 after others
  unknown   retired pages: this card does not tell (retired pages pending)
  unknown   PCIe width: could not read pcie width: TIMEOUT
  unknown   PCIe replays: two snapshots are needed to see it grow
  ok        presence, slowdown, ECC, PCIe generation, XIDs
"
    );
}

#[test]
fn no_line_is_longer_than_a_terminal_is_wide() {
    let uuid = DeviceUuid("GPU-2f0a6c1e-9d51-4a0f-8f55-0d3b1c2a7e90".to_owned());
    let finding = |check, answer| Finding {
        check,
        device: Some(uuid.clone()),
        answer,
    };
    let findings = Findings(vec![
        finding(
            CheckId::Ecc,
            Answer::problem(Severity::Warn, "many words ".repeat(40)),
        ),
        finding(CheckId::Xids, Answer::undecided("few words and then ".repeat(17))),
    ]);
    let blind = Facts {
        inventory: Err(ProbeErrorKind::VersionMismatch),
        snapshots: &[],
        reports: Reports::NONE,
    };
    for text in [
        findings.to_string(),
        check(&CheckPolicy::expecting(8), &blind).to_string(),
    ] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line, line.trim_end());
        }
    }
}

#[test]
fn findings_are_written_for_programs_with_names_in_camel_case() {
    let mut findings = looked([but(Figure::UncorrectedErrors, failed())], &[]);
    let shown = [
        CheckId::Ecc,
        CheckId::PcieWidth,
        CheckId::RetiredPages,
        CheckId::DcgmLevel3,
    ];
    findings.0.retain(|finding| shown.contains(&finding.check));
    let json = serde_json::to_value(&findings).expect("it is all texts");
    let expected = serde_json::json!([
        {
            "check": "retiredPages",
            "device": "GPU-0",
            "answer": {"state": "unknown", "why": {"because": "notTold", "figure": "retiredPagesPending"}},
        },
        {
            "check": "ecc",
            "device": "GPU-0",
            "answer": {
                "state": "unknown",
                "why": {
                    "because": "fault",
                    "figure": "uncorrectedErrors",
                    "fault": {"kind": "driver", "word": "TIMEOUT"},
                },
            },
        },
        {
            "check": "pcieWidth",
            "device": "GPU-0",
            "answer": {"state": "ok", "evidence": "connected over 16 lanes, as is possible"},
        },
        {
            "check": "dcgmLevel3",
            "answer": {"state": "unknown", "why": {"because": "notDoneHere", "needs": "DCGM and an idle machine"}},
        },
    ]);
    assert_eq!(json, expected);
}

#[test]
fn what_is_not_configured_has_its_default_and_what_nobody_knows_is_refused() {
    let policy: CheckPolicy = serde_json::from_str(r#"{"expectedDevices": 2}"#).expect("a policy");
    assert_eq!(policy, CheckPolicy::expecting(2));
    assert!(serde_json::from_str::<CheckPolicy>(r#"{"expectedDevice": 2}"#).is_err());
    let streak = r#"{"ok": {"times": 5, "lasting": "10m"}, "okHolds": "2h"}"#;
    let policy: LabelPolicy = serde_json::from_str(streak).expect("a policy");
    assert_eq!((policy.ok.times, policy.ok.lasting.as_mins()), (5, 10));
    assert_eq!(policy.ok_holds.as_hours(), 2);
}
