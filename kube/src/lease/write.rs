//! Writing a lease, unless another has.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;

use super::record::{Claim, Record};

/// Writes over the lease that is known, or creates it. `None` if it has changed since.
pub(crate) async fn write(
    api: &Api<Lease>,
    claim: &Claim<'_>,
    before: Option<&Record>,
) -> kube::Result<Option<Lease>> {
    let lease = claim.over(before);
    let params = PostParams::default();
    let replaces = lease.metadata.resource_version.is_some();
    let written = if replaces {
        api.replace(claim.name, &params, &lease).await
    } else {
        api.create(&params, &lease).await
    };
    match written {
        Ok(lease) => Ok(Some(lease)),
        // Another has written or created it.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        // Another has deleted it.
        Err(kube::Error::Api(status)) if status.code == 404 && replaces => Ok(None),
        Err(error) => Err(error),
    }
}
