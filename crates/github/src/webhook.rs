//! Deliveries of GitHub's webhooks: who sent them, and what they are called.
//!
//! A delivery is judged by its raw bytes: nothing of it is parsed before its signature was compared. What is in it is read by
//! [`payload`](crate::payload).

mod delivery;
mod signature;

pub use delivery::{Delivery, DeliveryId, DeliveryProblem, EventName, Headers};
pub use signature::{SignatureProblem, WebhookSecret, WebhookSecrets};
