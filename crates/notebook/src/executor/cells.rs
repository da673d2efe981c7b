//! The cells, in order: each until it is idle and answered, until it is too late, or until the kernel is gone.

use std::time::{Duration, Instant};

use blueproof_core::{
    attempt::{CellEnd, RecordKind},
    domain::TimeLimit,
};
use rustix::process::Signal;
use serde_json::Value;

use super::{
    Executor,
    finish::{CellRun, Finish, Over},
    install::{self, Installs},
    late::Late,
    limits::{Ending, Step, Stop, Why, deadline, until},
    notebook::Cell,
    probe::{self, Aftermath},
    recorder::Belonging,
};
use crate::{
    kernel::{Incoming, InterruptMode, Message, Visibility},
    plan::ShellInstall,
    process::End,
};

const SAMPLE_EVERY: Duration = Duration::from_millis(250);
const SAVE_EVERY: Duration = Duration::from_secs(3);
/// How long the kernel may take to answer our own questions.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a kernel that was told to end by its notebook may take.
const EXIT_WITHIN: Duration = Duration::from_secs(2);

/// What has come in of a cell's answer.
#[derive(Debug, Default)]
struct Progress {
    reply: Option<Value>,
    is_idle: bool,
    ending: Option<Ending>,
    /// Why a message could not be read, where one could not.
    unreadable: Option<String>,
}

impl Executor<'_> {
    /// Runs every cell until one stops the notebook, and hands back the notebook.
    pub(crate) async fn run(mut self) -> Finish {
        let begun = Instant::now();
        let run_ends = deadline(begun, self.timeouts.run);
        let cells = self.notebook.code_cells();
        let mut finish = Finish {
            took: Duration::ZERO,
            is_stopped: false,
            last: None,
            silent: Vec::new(),
            tails: Vec::new(),
            written: String::new(),
            leaving: None,
            parting: String::new(),
            notebook: self.notebook.clone(),
            cells: cells.len(),
            ends: Vec::new(),
        };
        self.meter.sample(self.kernel.child.id());
        let leaves_output: Option<bool> = self
            .ask(probe::install(self.root), Some(probe::LEAVE_OUTPUT))
            .await;
        if leaves_output == Some(true) {
            self.belonging = Belonging::Cell;
        }
        for (nth, cell) in cells.iter().enumerate() {
            if self.stops.is_requested() {
                finish.is_stopped = true;
                break;
            }
            if let Some(before) = nth.checked_sub(1)
                && let Some(end) = self.kernel.child.try_wait().ok().flatten()
            {
                finish.last = Some(self.died_after(&cells, before, end, &mut finish.ends));
                break;
            }
            let is_last = nth + 1 == cells.len();
            let ask = if is_last { probe::AFTER_LAST } else { probe::AFTER };
            let run = self.run_cell(cell, nth, ask, run_ends).await;
            finish.take_in(cell.position, &run, self.recorder.tail(nth));
            let goes_on = run.end.is_good() && run.over.is_none();
            if !goes_on {
                finish.last = Some((cell.clone(), run));
                break;
            }
        }
        finish.took = begun.elapsed();
        self.end_kernel(&cells, &mut finish).await;
        self.set_outputs();
        finish.notebook = self.notebook;
        finish
    }

    /// Ends the kernel, and looks for what is known only when nothing can come any more.
    async fn end_kernel(&mut self, cells: &[Cell], finish: &mut Finish) {
        let died = match finish.last {
            None => self.died_at_last(cells, &mut finish.ends),
            Some(_) => None,
        };
        let is_well = finish.last.is_none() && died.is_none() && !finish.is_stopped;
        let grace = if is_well {
            self.graces.leave
        } else {
            self.graces.terminate
        };
        finish.leaving = self.leave(grace).await;
        self.recorder.flush_ends();
        finish.written = self.recorder.written().to_owned();
        if let Some(last) = finish.ends.len().checked_sub(1) {
            finish.parting = self.recorder.tail(last).to_owned();
        }
        if finish.last.is_none() {
            finish.last = self
                .raised_late(cells, &mut finish.ends)
                .or_else(|| self.unread_after(cells, &mut finish.ends))
                .or(died);
        }
    }

    /// Returns the first cell for which an exception was published after it had ended.
    fn raised_late(&mut self, cells: &[Cell], ends: &mut [(u32, CellEnd)]) -> Option<(Cell, CellRun)> {
        let late = |slot: usize, end: CellEnd| end == CellEnd::Ok && self.recorder.error(slot).is_some();
        let slot = (0..ends.len()).find(|slot| late(*slot, ends[*slot].1))?;
        let (cell, end) = (&cells[slot], CellEnd::Raised);
        self.ended_late(cell, end, &mut ends[slot].1);
        let run = CellRun {
            is_killed: false,
            end,
            over: None,
            error: self.recorder.error(slot).cloned(),
            aftermath: Aftermath::default(),
            count: self.recorder.count(slot),
        };
        Some((cell.clone(), run))
    }

    /// Returns the last cell where something that came after it could not be read.
    fn unread_after(&mut self, cells: &[Cell], ends: &mut [(u32, CellEnd)]) -> Option<(Cell, CellRun)> {
        let why = self.unreadable.take()?;
        let slot = ends.len().checked_sub(1)?;
        ends[slot].1 = CellEnd::Unknown;
        Some((cells[slot].clone(), self.unread(slot, why)))
    }

    /// Says so when the kernel ended by itself after the last cell had.
    fn died_at_last(&mut self, cells: &[Cell], ends: &mut [(u32, CellEnd)]) -> Option<(Cell, CellRun)> {
        let end = self.kernel.child.try_wait().ok().flatten()?;
        Some(self.died_after(cells, cells.len().checked_sub(1)?, end, ends))
    }

    /// Lays the kernel's end at the door of the cell after which it came.
    fn died_after(
        &mut self,
        cells: &[Cell],
        nth: usize,
        end: End,
        ends: &mut [(u32, CellEnd)],
    ) -> (Cell, CellRun) {
        let run = CellRun {
            is_killed: false,
            over: Some(Over::Died(end)),
            ..self.lost()
        };
        self.ended_late(&cells[nth], run.end, &mut ends[nth].1);
        (cells[nth].clone(), run)
    }

    /// Writes down that a cell which had ended well did not.
    fn ended_late(&mut self, cell: &Cell, end: CellEnd, was: &mut CellEnd) {
        *was = end;
        self.recorder.journal().record(RecordKind::CellEnded {
            cell: cell.position,
            end,
            took: jiff::SignedDuration::ZERO,
        });
    }

    async fn run_cell(&mut self, cell: &Cell, nth: usize, ask: &str, run_ends: Option<Instant>) -> CellRun {
        let code = self.prepare(cell).await;
        if let Some(gpus) = &mut self.gpus {
            gpus.turn_to(cell.position);
        }
        let begun = Instant::now();
        let slot = self.recorder.begin(cell);
        self.recorder.journal().record(RecordKind::CellBegun {
            cell: cell.position,
            nth: u32::try_from(nth).unwrap_or(u32::MAX),
        });
        let after = self
            .kernelspec
            .is_none()
            .then(|| ("after".to_owned(), ask.to_owned()));
        let after = after.into_iter().collect();
        let (run, took) = match self.channels.execute(code, Visibility::Cell, after).await {
            Ok(request) => {
                self.requests.insert(request.clone(), slot);
                let (progress, died) = self.await_cell(&request, begun, run_ends).await;
                let took = begun.elapsed();
                (self.conclude(cell, slot, progress, died).await, took)
            }
            Err(_) => (self.lost(), begun.elapsed()),
        };
        self.meter.sample(self.kernel.child.id());
        self.recorder.flush_ends();
        self.save_meanwhile();
        self.recorder.journal().record(RecordKind::CellEnded {
            cell: cell.position,
            end: run.end,
            took: jiff::SignedDuration::try_from(took).unwrap_or_default(),
        });
        run
    }

    /// Waits until the cell is idle and answered, or the kernel is gone. Ends it when a limit or a request says so.
    async fn await_cell(
        &mut self,
        request: &str,
        begun: Instant,
        run_ends: Option<Instant>,
    ) -> (Progress, Option<End>) {
        let cell_ends = deadline(begun, self.timeouts.cell);
        let limit = match (cell_ends, run_ends) {
            (Some(cell), Some(run)) if run < cell => Some((run, TimeLimit::Run)),
            (Some(cell), _) => Some((cell, TimeLimit::Cell)),
            (None, run) => run.map(|run| (run, TimeLimit::Run)),
        };
        let mut progress = Progress::default();
        let mut sample_at = Instant::now() + SAMPLE_EVERY;
        let mut save_at = Instant::now() + SAVE_EVERY;
        while progress.unreadable.is_none() && (progress.reply.is_none() || !progress.is_idle) {
            let due = match progress.ending {
                Some(ending) => Some(ending.due()),
                None => limit.map(|(at, _)| at),
            };
            let flush_at = self.recorder.due();
            tokio::select! {
                incoming = self.channels.next() => self.on_message(incoming, request, &mut progress),
                () = self.kernel.output.settled() => self.keep_settled(),
                ended = self.kernel.child.wait() => {
                    return (progress, Some(ended.unwrap_or(End::Exited(0))));
                }
                stop = self.stops.next() => on_stop(stop, &mut progress),
                () = until(due) => self.on_due(limit, &mut progress).await,
                () = until(flush_at) => self.recorder.flush_due(),
                () = until(Some(sample_at)) => {
                    self.meter.sample(self.kernel.child.id());
                    sample_at = Instant::now() + SAMPLE_EVERY;
                }
                () = until(Some(save_at)) => {
                    self.save_meanwhile();
                    save_at = Instant::now() + SAVE_EVERY;
                }
            }
        }
        (progress, None)
    }

    fn on_message(&mut self, incoming: Incoming, request: &str, progress: &mut Progress) {
        match incoming {
            Incoming::Shell(reply) if reply.parent.as_deref() == Some(request) => {
                progress.reply = Some(reply.content);
            }
            Incoming::IoPub(message) => {
                let is_ours = message.parent.as_deref() == Some(request);
                if is_ours && message.kind == "status" && message.content["execution_state"] == "idle" {
                    progress.is_idle = true;
                }
                self.keep_written_before(&message);
                self.take(&message);
            }
            Incoming::Unreadable(why) => progress.unreadable = Some(why),
            Incoming::Shell(_) | Incoming::Control => {}
        }
    }

    /// Keeps a published message under the cell that it belongs to, which may be an earlier one.
    pub(super) fn take(&mut self, message: &Message) {
        let slot = message
            .parent
            .as_ref()
            .and_then(|parent| self.requests.get(parent));
        if let Some(slot) = slot.copied() {
            self.recorder.take(slot, message);
        }
    }

    async fn on_due(&mut self, limit: Option<(Instant, TimeLimit)>, progress: &mut Progress) {
        if let (None, Some((_, limit))) = (progress.ending, limit) {
            let written = self.kernel.output.take_all();
            self.keep(&written);
            self.recorder.being_ended();
            progress.ending = Some(Ending::gently(Why::Limit(limit)));
        }
        let Some(ending) = &mut progress.ending else {
            return;
        };
        match ending.take(self.graces) {
            Step::Interrupt if self.is_interrupted_by_message() => {
                let _ = self.channels.interrupt().await;
            }
            Step::Interrupt => self.kernel.child.signal_group(Signal::INT),
            Step::Ask => {
                let _ = self.channels.interrupt().await;
            }
            Step::Terminate => self.kernel.child.signal_group(Signal::TERM),
            Step::Kill => self.kernel.child.signal_group(Signal::KILL),
        }
    }

    async fn conclude(&mut self, cell: &Cell, slot: usize, progress: Progress, died: Option<End>) -> CellRun {
        let over = progress.ending.map(|ending| Over::Ended(ending.why));
        if let Some(end) = died {
            self.drain(Late::Copies).await;
            return CellRun {
                is_killed: over.is_some(),
                end: if over.is_some() {
                    CellEnd::Interrupted
                } else {
                    CellEnd::KernelDied
                },
                over: over.or(Some(Over::Died(end))),
                error: self.recorder.error(slot).cloned(),
                aftermath: Aftermath::default(),
                count: self.recorder.count(slot),
            };
        }
        if let Some(why) = progress.unreadable {
            return self.unread(slot, why);
        }
        let reply = progress.reply.unwrap_or_default();
        // Older kernels answer "ok" after an exception under `%%time` or while a value was shown, and publish it all
        // the same. papermill, too, goes by what was published.
        let has_raised = reply["status"] != "ok" || self.recorder.error(slot).is_some();
        let mut aftermath: Aftermath = probe::answer(&reply).unwrap_or_default();
        if has_raised {
            let silent = std::mem::take(&mut aftermath.silent);
            let told: Option<Aftermath> = self.ask(String::new(), Some(probe::EXPLAIN)).await;
            aftermath = told.unwrap_or_default();
            aftermath.silent.splice(0..0, silent);
        }
        // Of what another language's kernel has started nothing is known.
        self.drain(if aftermath.forked || self.kernelspec.is_some() {
            Late::Copies
        } else {
            Late::Messages
        })
        .await;
        if let Some(why) = self.unreadable.take() {
            return self.unread(slot, why);
        }
        let over = over.or(self.exit_asked(&reply, &aftermath).await);
        let may_raise = cell.tags.iter().any(|tag| tag == "raises-exception");
        let end = match (over, has_raised) {
            (Some(Over::Ended(_)), _) => CellEnd::Interrupted,
            (Some(Over::Died(_) | Over::Exited | Over::Lost), _) => CellEnd::KernelDied,
            (Some(Over::Unreadable), _) => CellEnd::Unknown,
            (None, true) if may_raise => CellEnd::RaisedAsAllowed,
            (None, true) => CellEnd::Raised,
            (None, false) => CellEnd::Ok,
        };
        CellRun {
            is_killed: false,
            end,
            over,
            error: has_raised.then(|| self.recorder.error(slot).cloned().unwrap_or(reply)),
            aftermath,
            count: self.recorder.count(slot),
        }
    }

    /// Tells whether the notebook asked its kernel to end: `exit()` and `quit()` do, and the cell ends well.
    async fn exit_asked(&mut self, reply: &Value, aftermath: &Aftermath) -> Option<Over> {
        let asked = |payload: &Value| payload["source"] == "ask_exit" && payload["keepkernel"] != true;
        let has_asked = reply["payload"]
            .as_array()
            .is_some_and(|all| all.iter().any(asked));
        if !has_asked && !aftermath.leaves {
            return None;
        }
        let _ = tokio::time::timeout(EXIT_WITHIN, self.kernel.child.wait()).await;
        Some(Over::Exited)
    }

    /// What a kernel told of a cell cannot be read: nobody knows how it went.
    fn unread(&self, slot: usize, why: String) -> CellRun {
        CellRun {
            is_killed: false,
            end: CellEnd::Unknown,
            over: Some(Over::Unreadable),
            error: Some(Value::String(why)),
            aftermath: Aftermath::default(),
            count: self.recorder.count(slot),
        }
    }

    fn lost(&self) -> CellRun {
        CellRun {
            is_killed: false,
            end: CellEnd::KernelDied,
            over: Some(Over::Lost),
            error: None,
            aftermath: Aftermath::default(),
            count: None,
        }
    }

    /// Returns the code that is sent for a cell: the same lines, without installations that are not needed.
    async fn prepare(&mut self, cell: &Cell) -> String {
        if self.kernelspec.is_some() {
            return cell.source.clone();
        }
        let installs = Installs::find(&cell.source);
        let satisfied = match (self.shell_install, installs.is_empty()) {
            (ShellInstall::Allow, _) | (_, true) => return cell.source.clone(),
            (ShellInstall::Record, false) => Vec::new(),
            (ShellInstall::Skip, false) => {
                let question = probe::satisfied(&installs.requirements());
                self.ask(String::new(), Some(&question)).await.unwrap_or_default()
            }
        };
        let (code, left_out) = installs.leave_out(&cell.source, &satisfied);
        for diagnostic in install::notices(&installs, &left_out, cell.position) {
            self.recorder.journal().record(RecordKind::Noticed { diagnostic });
        }
        code
    }

    fn is_interrupted_by_message(&self) -> bool {
        let mode = self.kernelspec.map(|spec| spec.interrupt);
        mode == Some(InterruptMode::Message)
    }

    /// Has the kernel run `code` unseen and answer `question`; `None` when it does not, and where it is not Python's.
    async fn ask<T: for<'de> serde::Deserialize<'de>>(
        &mut self,
        code: String,
        question: Option<&str>,
    ) -> Option<T> {
        if self.kernelspec.is_some() {
            return None;
        }
        let questions = question.map(|question| ("answer".to_owned(), question.to_owned()));
        let request = self
            .channels
            .execute(code, Visibility::Silent, questions.into_iter().collect())
            .await
            .ok()?;
        let mut progress = Progress::default();
        let give_up = Instant::now() + ANSWER_WITHIN;
        while progress.reply.is_none() || !progress.is_idle {
            if progress.unreadable.is_some() {
                self.unreadable = progress.unreadable;
                return None;
            }
            tokio::select! {
                incoming = self.channels.next() => self.on_message(incoming, &request, &mut progress),
                () = self.kernel.output.settled() => self.keep_settled(),
                _ = self.kernel.child.wait() => return None,
                () = until(Some(give_up)) => return None,
            }
        }
        probe::answer(&progress.reply?)
    }

    /// Saves the notebook for whoever looks before it is over. Only the last save, which is not done here, has to succeed.
    fn save_meanwhile(&mut self) {
        self.set_outputs();
        let _ = self.notebook.save(self.save_to);
    }

    fn set_outputs(&mut self) {
        let changes = self.recorder.changes();
        for (index, outputs, count) in changes {
            self.notebook.set_outputs(index, outputs);
            if let Some(count) = count {
                self.notebook.set_count(index, count);
            }
        }
    }
}

fn on_stop(stop: Stop, progress: &mut Progress) {
    match (stop, progress.ending) {
        (Stop::AfterCell, None) => progress.ending = Some(Ending::gently(Why::Stop)),
        (Stop::AfterCell, Some(_)) => {}
        // A limit that was reached first stays the reason.
        (Stop::Now, ending) => {
            progress.ending = Some(Ending::firmly(ending.map_or(Why::Stop, |ending| ending.why)));
        }
    }
}
