//! What attempts leave, behind a scheduler's API.

use std::path::PathBuf;

use async_trait::async_trait;
use blueproof_core::{
    domain::{AttemptId, Bytes, RunId},
    ports::{
        AttemptOutput, OutputError, OutputFile, OutputName, RecordChanges, RecordPosition, Records, RunFiles,
    },
};
use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;

use super::{Answer, List, ServerClient, not_reached};
use crate::{
    output_name,
    output_problem::{Asked, problem},
    wire::{FILES_LISTED, File, RECORDS_A_PAGE, WAITS_AT_MOST},
};

impl File {
    /// `None` is a name that this version does not know.
    fn into_output(self) -> Option<OutputFile> {
        let name = output_name::from_text(&self.name)?;
        let (_, below) = self.name.split_once('/')?;
        let link = match &name {
            OutputName::Report(_, kind) => kind.file_name().into(),
            OutputName::ExecutedNotebook(attempt) | OutputName::KernelLog(attempt) => {
                folder(*attempt).join(below)
            }
            OutputName::Artifact(attempt, name) => folder(*attempt).join("artifacts").join(name.path()),
        };
        Some(OutputFile {
            name,
            size: Bytes(self.size),
            link,
            location: None,
        })
    }
}

/// Returns an attempt's folder relative to the reports of its run, as in the folder of a run.
fn folder(attempt: AttemptId) -> PathBuf {
    PathBuf::from("attempts").join(attempt.number.to_string())
}

impl ServerClient {
    async fn output(&self, request: RequestBuilder, asked: &Asked<'_>) -> Result<Response, OutputError> {
        match self.ask(request).await {
            Answer::Is(response) => Ok(response),
            Answer::Refused { diagnostic, output } => {
                let known = output.and_then(|word| problem(&word, asked));
                Err(known.unwrap_or(OutputError::NotAnswered(diagnostic)))
            }
        }
    }

    async fn output_json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        asked: &Asked<'_>,
    ) -> Result<T, OutputError> {
        let response = self.output(request, asked).await?;
        response.json().await.map_err(|error| self.unread(&error))
    }

    fn unread(&self, error: &reqwest::Error) -> OutputError {
        OutputError::NotAnswered(Box::new(not_reached(&self.address, error)))
    }
}

#[async_trait]
impl AttemptOutput for ServerClient {
    async fn records(
        &self,
        attempt: AttemptId,
        after: &RecordPosition,
        limit: usize,
    ) -> Result<Records, OutputError> {
        let limit = limit.min(RECORDS_A_PAGE as usize).to_string();
        let request = self.get(&["api", "v1", "attempts", &attempt.to_string(), "records"]);
        let request = request.query(&[("after", after.0.as_str()), ("limit", &limit)]);
        self.output_json(request, &Asked::Records(attempt, after)).await
    }

    fn changes(&self, attempt: AttemptId) -> Box<dyn RecordChanges> {
        let client = self.clone();
        Box::new(Waiting { client, attempt })
    }

    async fn artifacts(&self, attempt: AttemptId) -> Result<Vec<OutputFile>, OutputError> {
        let request = self.get(&["api", "v1", "attempts", &attempt.to_string(), "artifacts"]);
        let list: List<File> = self.output_json(request, &Asked::Artifacts(attempt)).await?;
        let files = list.items.into_iter();
        Ok(files.filter_map(File::into_output).collect())
    }

    fn artifacts_link(&self, attempt: AttemptId) -> PathBuf {
        folder(attempt).join("artifacts")
    }

    async fn file(&self, name: &OutputName) -> Result<Option<OutputFile>, OutputError> {
        let text = output_name::to_text(name);
        let request = self.get(&["api", "v1", "files"]).query(&[("name", &text)]);
        match self.output_json::<File>(request, &Asked::File(name)).await {
            Ok(file) => Ok(file.into_output()),
            Err(OutputError::NoFile(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, name: &OutputName, offset: u64, limit: usize) -> Result<Vec<u8>, OutputError> {
        let text = output_name::to_text(name);
        let (offset, limit) = (offset.to_string(), limit.to_string());
        let request = self.get(&["api", "v1", "files", "content"]);
        let request = request.query(&[("name", &text), ("offset", &offset), ("limit", &limit)]);
        let response = self.output(request, &Asked::File(name)).await?;
        let bytes = response.bytes().await.map_err(|error| self.unread(&error))?;
        Ok(bytes.to_vec())
    }

    async fn kept(&self, run: RunId, limit: usize) -> Result<RunFiles, OutputError> {
        let limit = limit.clamp(1, FILES_LISTED as usize).to_string();
        let request = self.get(&["api", "v1", "runs", &run.to_string(), "files"]);
        self.output_json(request.query(&[("limit", limit)]), &Asked::Run)
            .await
    }
}

/// Waits for records at the server.
struct Waiting {
    client: ServerClient,
    attempt: AttemptId,
}

#[async_trait]
impl RecordChanges for Waiting {
    async fn next(&mut self, after: &RecordPosition) {
        let request = self
            .client
            .get(&["api", "v1", "attempts", &self.attempt.to_string(), "records"]);
        let request = request.query(&[
            ("after", after.0.as_str()),
            ("limit", "1"),
            ("wait", &WAITS_AT_MOST.to_string()),
        ]);
        let asked = Asked::Records(self.attempt, after);
        if self.client.output(request, &asked).await.is_err() {
            // An attempt that has not begun has no records yet, and there is nothing to wait on.
            tokio::time::sleep(super::PAUSE).await;
        }
    }
}
