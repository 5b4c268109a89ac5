//! The requests of a study, gathered before it begins.

use super::{LookupRequest, StudyError};

/// Maximum number of requests of a study: 1.2 GB of them.
const LARGEST: u64 = 100_000_000;

/// Requests that were gathered so far, in order.
pub struct Gathered {
    asks: Vec<LookupRequest>,
    limit: Option<u64>,
}

impl Gathered {
    /// Returns an empty list for at most `limit` requests.
    ///
    /// # Errors
    /// Returns an error if the limit is 0.
    pub fn new(limit: Option<u64>) -> Result<Gathered, StudyError> {
        super::at_least("limit", limit.unwrap_or(u64::MAX), 1)?;
        Ok(Gathered { asks: Vec::new(), limit })
    }

    /// Returns `true` if the limit is reached.
    pub fn is_full(&self) -> bool {
        self.limit == Some(self.asks.len() as u64)
    }

    /// Checks that a study has room for `requests` requests, or for the limit if the limit is
    /// smaller.
    ///
    /// # Errors
    /// Returns an error if the requests are too many.
    pub fn room_for(&self, requests: u64) -> Result<(), StudyError> {
        if requests.min(self.limit.unwrap_or(u64::MAX)) > LARGEST {
            return Err(StudyError::ManyRequests { most: LARGEST });
        }
        Ok(())
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn push(&mut self, ask: LookupRequest) -> Result<(), StudyError> {
        self.asks.push(ask);
        self.room_for(self.asks.len() as u64)
    }

    /// Returns the requests so far.
    pub fn asks(&self) -> &[LookupRequest] {
        &self.asks
    }
}
