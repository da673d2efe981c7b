//! The service, written by hand: it has two calls.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service, http},
    server::{Grpc, NamedService, UnaryService},
};
use tonic_prost::ProstCodec;

use crate::{
    Allocatable, Container, Held, State,
    wire::{
        AllocatableResourcesResponse, ClaimResource, ContainerDevices, ContainerResources, DynamicResource,
        Empty, ListPodResourcesResponse, Nonsense, PodResources,
    },
};

/// `v1.PodResourcesLister`.
#[derive(Clone)]
pub(crate) struct Lister(pub(crate) Arc<State>);

struct List(Arc<State>);
struct GetAllocatable(Arc<State>);
struct TalkNonsense;

impl NamedService for Lister {
    const NAME: &'static str = "v1.PodResourcesLister";
}

impl Service<http::Request<Body>> for Lister {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let state = Arc::clone(&self.0);
        Box::pin(async move { Ok(answer(state, request).await) })
    }
}

async fn answer(state: Arc<State>, request: http::Request<Body>) -> http::Response<Body> {
    let mut waits = state.waits.subscribe();
    let _ = waits.wait_for(|waits| !waits).await;
    let needs = state
        .answers
        .lock()
        .expect("nobody panics while they hold it")
        .needs;
    tokio::time::sleep(needs).await;
    let method = request.uri().path().rsplit('/').next().unwrap_or_default();
    let is_list = method == "List";
    let is_nonsense = {
        let mut answers = state.answers.lock().expect("nobody panics while they hold it");
        answers.lists += usize::from(is_list);
        answers.is_nonsense
    };
    if is_nonsense {
        return Grpc::new(ProstCodec::default())
            .unary(TalkNonsense, request)
            .await;
    }
    if is_list {
        return Grpc::new(ProstCodec::default()).unary(List(state), request).await;
    }
    Grpc::new(ProstCodec::default())
        .unary(GetAllocatable(state), request)
        .await
}

impl UnaryService<Empty> for List {
    type Response = ListPodResourcesResponse;
    type Future = BoxFuture<Response<Self::Response>, Status>;

    fn call(&mut self, _: Request<Empty>) -> Self::Future {
        let answers = self.0.answers.lock().expect("nobody panics while they hold it");
        let pods = answers.pods.iter().map(|pod| PodResources {
            name: pod.name.clone(),
            namespace: pod.namespace.clone(),
            containers: pod.containers.iter().map(container).collect(),
        });
        let listed = ListPodResourcesResponse {
            pod_resources: pods.collect(),
        };
        Box::pin(async { Ok(Response::new(listed)) })
    }
}

impl UnaryService<Empty> for GetAllocatable {
    type Response = AllocatableResourcesResponse;
    type Future = BoxFuture<Response<Self::Response>, Status>;

    fn call(&mut self, _: Request<Empty>) -> Self::Future {
        let answers = self.0.answers.lock().expect("nobody panics while they hold it");
        let devices = match &answers.allocatable {
            Allocatable::Devices(held) => Ok(one_by_one(held)),
            Allocatable::Unimplemented => Err(Status::unimplemented("unknown method")),
        };
        let answer = devices.map(|devices| Response::new(AllocatableResourcesResponse { devices }));
        Box::pin(async { answer })
    }
}

impl UnaryService<Empty> for TalkNonsense {
    type Response = Nonsense;
    type Future = BoxFuture<Response<Self::Response>, Status>;

    fn call(&mut self, _: Request<Empty>) -> Self::Future {
        Box::pin(async { Ok(Response::new(Nonsense { number: 7 })) })
    }
}

fn container(container: &Container) -> ContainerResources {
    let claims = container.dynamic.iter().map(|(driver, count)| DynamicResource {
        claim_name: "claim".into(),
        claim_resources: (0..*count)
            .map(|number| ClaimResource {
                driver_name: driver.clone(),
                device_name: format!("gpu-{number}"),
            })
            .collect(),
    });
    ContainerResources {
        name: container.name.clone(),
        devices: one_by_one(&container.held),
        cpu_ids: vec![0, 1],
        dynamic_resources: claims.collect(),
    }
}

/// Returns an entry for each device, as the kubelet does.
fn one_by_one(held: &[Held]) -> Vec<ContainerDevices> {
    let each = held
        .iter()
        .flat_map(|held| held.ids.iter().map(move |id| (held, id)));
    let each = each.map(|(held, id)| ContainerDevices {
        resource_name: held.resource.clone(),
        device_ids: vec![id.clone()],
    });
    each.collect()
}
