//! Requests, and what their failures mean.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use requeue_shards::{EngineError, Source};
use tokio::time::Instant;

use crate::lease::{Record, write};

use super::format::{self, Role};
use super::{LeaseSession, Leases};

impl Leases {
    /// Reads a Lease as it is stored, not as a cache of the API server has it.
    pub(super) async fn look(
        &self,
        set: &str,
        role: &Role<'_>,
    ) -> Result<Option<Lease>, EngineError> {
        let found = self.api.get_opt(&format::name(set, role)).await;
        match found.map_err(error_of)? {
            Some(lease) if !format::is_of(set, &lease) => {
                Err(format::unreadable(&lease, "is not of the set"))
            }
            found => Ok(found),
        }
    }

    /// As [`look`](Self::look), for a session that has not ended.
    pub(super) async fn look_as(
        &self,
        session: &LeaseSession,
        role: &Role<'_>,
    ) -> Result<Option<Lease>, EngineError> {
        let member = Role::Member(&session.member);
        let own = self.look(&session.set, &member);
        let (own, found) = futures::try_join!(own, self.look(&session.set, role))?;
        match own {
            Some(own) if format::is_session(&own, &session.uid) => Ok(found),
            _ => Err(EngineError::SessionEnded),
        }
    }

    /// Returns false if there is one.
    pub(super) async fn create_set(&self, set: &str, count: u32) -> Result<bool, EngineError> {
        let lease = format::set(set, count);
        match self.api.create(&PostParams::default(), &lease).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error_of(error)),
        }
    }

    /// Returns `None` if there is one.
    pub(super) async fn create_member(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, EngineError> {
        let role = Role::Member(member);
        let (name, blank) = (format::name(set, &role), format::record(None, set, &role));
        let claim = format::claim(&name, member, ttl);
        let created = write(&self.api, &claim, Some(&blank)).await;
        created.map_err(error_of)
    }

    /// Gives a shard to this holder, or frees it. `None` if it has changed since `record`.
    pub(super) async fn hand_to(
        &self,
        holder: &str,
        ttl: Duration,
        record: &Record,
    ) -> Result<Option<Lease>, EngineError> {
        let lease = record.lease();
        if !holder.is_empty() && !format::can_rise(lease) {
            return Err(format::unreadable(lease, "has used up its transitions"));
        }
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        let claim = format::claim(name, holder, ttl);
        let written = write(&self.api, &claim, Some(record)).await;
        written.map_err(error_of)
    }

    /// Changes the Lease of a session that has not ended.
    pub(super) async fn change(
        &self,
        session: &LeaseSession,
        mut change: Lease,
    ) -> Result<(), EngineError> {
        let role = Role::Member(&session.member);
        let name = format::name(&session.set, &role);
        // A patch cannot change the uid: of another session's Lease it is refused.
        change.metadata.uid = Some(session.uid.clone());
        let params = PatchParams::default();
        let error = match self.api.patch(&name, &params, &Patch::Merge(&change)).await {
            Ok(lease) if format::is_session(&lease, &session.uid) => return Ok(()),
            Ok(_) => return Err(EngineError::SessionEnded),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Err(EngineError::SessionEnded);
            }
            Err(error) => error,
        };
        if matches!(&error, kube::Error::Api(status) if matches!(status.code, 409 | 422)) {
            let lease = self.look(&session.set, &role).await?;
            if !lease.is_some_and(|lease| format::is_session(&lease, &session.uid)) {
                return Err(EngineError::SessionEnded);
            }
        }
        Err(error_of(error))
    }

    /// Whether the session of an owner has not ended, and does not end now.
    pub(super) async fn lasts(&self, set: &str, holder: &str) -> Result<bool, EngineError> {
        let Some((member, uid)) = format::parts(holder) else {
            tracing::warn!(target: "requeue", set, holder, "an owner that is no member");
            return Ok(false);
        };
        // Whatever its labels: one that is not listed would otherwise never be ended.
        let name = format::name(set, &Role::Member(member));
        match self.api.get_opt(&name).await.map_err(error_of)? {
            Some(lease) if format::is_session(&lease, uid) => self.goes_on(lease).await,
            _ => Ok(false),
        }
    }

    /// Ends the session of this Lease, which was just read, if it has expired. Returns whether it
    /// goes on.
    pub(super) async fn goes_on(&self, lease: Lease) -> Result<bool, EngineError> {
        let record = self.observe(lease);
        Ok(Instant::now() < record.expires() || !self.end(&record).await?)
    }

    /// Ends the session of a Lease that has not been renewed. Returns false if it has been.
    pub(super) async fn end(&self, record: &Record) -> Result<bool, EngineError> {
        let meta = &record.lease().metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let version = meta.resource_version.clone();
        let is_ended = self.delete(name, uid, version).await?;
        if is_ended {
            self.forget(name);
        }
        Ok(is_ended)
    }

    /// Deletes a Lease if it is this one, and has this version if one is given. Returns false if it
    /// is another.
    pub(super) async fn delete(
        &self,
        name: &str,
        uid: &str,
        version: Option<String>,
    ) -> Result<bool, EngineError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: version,
                uid: Some(uid.to_owned()),
            }),
            ..DeleteParams::default()
        };
        match self.api.delete(name, &params).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error_of(error)),
        }
    }

    /// Notes what was seen of a member's Lease now.
    pub(super) fn observe(&self, lease: Lease) -> Record {
        let name = lease.metadata.name.clone().unwrap_or_default();
        let mut observed = self.observed();
        let record = Record::read(lease, Instant::now(), observed.get(&name));
        observed.insert(name, record.clone());
        record
    }

    pub(super) fn forget(&self, name: &str) {
        self.observed().remove(name);
    }

    fn observed(&self) -> MutexGuard<'_, std::collections::HashMap<String, Record>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a failed request means.
pub(super) fn error_of(error: kube::Error) -> EngineError {
    let code = match &error {
        kube::Error::Api(status) => status.code,
        kube::Error::Auth(_) => 401,
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
            return EngineError::Unreadable(error.to_string());
        }
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => 400,
        _ => 503,
    };
    of_code(code, Arc::new(error))
}

/// What the status of a response means.
pub(super) fn of_code(code: u16, source: Source) -> EngineError {
    match code {
        401 | 403 => EngineError::Denied(source),
        408 | 410 | 429 | 500.. => EngineError::Unreachable(source),
        _ => EngineError::Refused(source),
    }
}
