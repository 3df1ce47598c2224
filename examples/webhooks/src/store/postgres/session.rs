//! One connection.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

use super::super::db::Param;
use super::super::{Scope, StoreError};

/// A connection, and what is prepared on it.
pub(crate) struct Session {
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
    is_in_transaction: bool,
    has_savepoints: bool,
    /// Sent with the transaction.
    news: Vec<String>,
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            statements: HashMap::new(),
            is_in_transaction: false,
            has_savepoints: false,
            news: Vec::new(),
        }
    }

    pub(super) fn is_lost(&mut self) -> bool {
        self.client.is_closed()
    }

    /// Returns the number by which the server names the sender of a notification.
    pub(super) fn process(&mut self) -> Result<i32, StoreError> {
        let row = self.client.query_one("SELECT pg_backend_pid()", &[])?;
        Ok(row.try_get(0)?)
    }

    pub(in super::super) fn execute(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
    ) -> Result<u64, StoreError> {
        let statement = self.prepared(sql)?;
        Ok(self.client.execute(&statement, &values(params))?)
    }

    pub(in super::super) fn query(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared(sql)?;
        Ok(self.client.query(&statement, &values(params))?)
    }

    pub(in super::super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        Ok(self.client.batch_execute(sql)?)
    }

    pub(in super::super) fn begin(&mut self, scope: Scope) -> Result<(), StoreError> {
        let sql = match scope {
            Scope::Read | Scope::Delivery => "BEGIN ISOLATION LEVEL READ COMMITTED",
            // One at a time, over all processes.
            Scope::Object | Scope::Change => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT newest FROM versions FOR UPDATE"
            }
        };
        self.is_in_transaction = true;
        self.batch(sql)
    }

    pub(in super::super) fn commit(&mut self) -> Result<(), StoreError> {
        if !self.news.is_empty() {
            let news = std::mem::take(&mut self.news);
            let sql = "SELECT pg_notify('webhooks', news) FROM unnest($1::text[]) AS news";
            let statement = self.prepared(sql)?;
            self.client.execute(&statement, &[&news])?;
        }
        self.batch("COMMIT")?;
        self.is_in_transaction = false;
        Ok(())
    }

    pub(in super::super) fn roll_back(&mut self) {
        self.news.clear();
        if self.is_in_transaction && self.batch("ROLLBACK").is_ok() {
            self.is_in_transaction = false;
        }
    }

    pub(in super::super) fn has_savepoints(&self) -> bool {
        self.has_savepoints
    }

    /// Sets whether a transaction is shared, so that each work in it can be undone.
    pub(super) fn use_savepoints(&mut self, share: bool) {
        self.has_savepoints = share;
    }

    pub(in super::super) fn announce(&mut self, news: String) {
        self.news.push(news);
    }

    fn prepared(&mut self, sql: &'static str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // No statement has a question mark but before the number of a parameter.
        let statement = self.client.prepare(&sql.replace('?', "$"))?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

fn values<'p>(params: &[&'p dyn Param]) -> Vec<&'p (dyn ToSql + Sync)> {
    let value = |param: &&'p dyn Param| *param as &'p (dyn ToSql + Sync);
    params.iter().map(value).collect()
}
