//! The checks of a device's link: its lanes, its generation while it works, and what it has to send again.
//!
//! How fast it is in bytes a second is not measured here: that takes a copy, and so CUDA.

use blueproof_core::gpu::Figure;

use super::{
    Answer, CheckPolicy, Severity, Why,
    facts::{DeviceFacts, value_of},
};

/// Checks the lanes as they were read last: links keep them at idle.
pub(super) fn width(facts: &DeviceFacts<'_>) -> Answer {
    match (
        facts.latest(Figure::PcieWidth),
        facts.latest(Figure::PcieWidthMost),
    ) {
        (Ok(now), Ok(most)) if now < most => Answer::problem(
            Severity::Warn,
            format!("connected over {now} lanes, and {most} are possible"),
        ),
        // A link that has no lanes answers nothing.
        (Ok(now), Ok(_)) if now >= 1.0 => Answer::ok(format!("connected over {now} lanes, as is possible")),
        (Ok(now), Ok(_)) => Why::Absurd {
            figure: Figure::PcieWidth,
            told: now.to_string(),
        }
        .into(),
        (Err(why), _) | (_, Err(why)) => why.into(),
    }
}

/// Checks the generation where the device worked: at idle it is lower on purpose. A virtual machine shows the link that its
/// hypervisor made up, often of generation 1 for ever, and so nothing can be told from it.
pub(super) fn generation(policy: &CheckPolicy, facts: &DeviceFacts<'_>) -> Answer {
    let (mut busy, mut best, mut most, mut unread) = (0, 0.0_f64, 0.0_f64, None);
    for sample in facts.samples() {
        let all = [
            Figure::Utilization,
            Figure::PcieGeneration,
            Figure::PcieGenerationMost,
        ];
        let read = all.map(|figure| value_of(sample, figure));
        match read {
            [Ok(share), Ok(now), Ok(possible)] => {
                if share >= policy.busy_from {
                    (busy, best, most) = (busy + 1, best.max(now), most.max(possible));
                }
            }
            [Err(why), _, _] | [_, Err(why), _] | [_, _, Err(why)] => unread = Some(why),
        }
    }
    // Links wake up late, and a short burst of work does not wake them at all.
    let enough = policy.slowdown_readings.max(2);
    if busy >= enough && best < most && facts.is_virtual {
        return Answer::undecided(format!(
            "speaks generation {best} of {most} under load, as a virtual machine shows it, which need not be the card's link"
        ));
    }
    if busy >= enough && best < most {
        let evidence =
            format!("speaks generation {best} in {busy} readings under load, and {most} is possible");
        return Answer::problem(Severity::Warn, evidence);
    }
    match (unread, busy) {
        (Some(why), _) => why.into(),
        (None, 0) => Answer::undecided("it did not work, and an idle link is slow on purpose"),
        (None, _) if best >= most && best >= 1.0 => {
            Answer::ok(format!("speaks generation {best} under load"))
        }
        (None, _) => Answer::undecided(format!(
            "spoke generation {best} of {most} in {busy} readings under load; {enough} are needed to tell"
        )),
    }
}

/// Checks by how much the count of what was sent again grew.
pub(super) fn replays(policy: &CheckPolicy, facts: &DeviceFacts<'_>) -> Answer {
    let figure = Figure::PcieReplays;
    let read = facts.samples().map(|sample| value_of(sample, figure));
    let counts: Vec<f64> = match read.collect() {
        Ok(counts) => counts,
        Err(why) => return Why::into(why),
    };
    let (Some(first), Some(last)) = (counts.first(), counts.get(1..).and_then(<[f64]>::last)) else {
        return Answer::undecided("two snapshots are needed to see it grow");
    };
    if counts.is_sorted() {
        let (grew, most) = (last - first, f64::from(policy.replays_at_most));
        let evidence = format!("{grew} transfers were made again in {} snapshots", counts.len());
        return if grew > most {
            Answer::problem(
                Severity::Warn,
                format!("{evidence}, and {most} is the most that is well"),
            )
        } else {
            Answer::ok(evidence)
        };
    }
    Answer::undecided("its count fell: the driver was loaded anew")
}
