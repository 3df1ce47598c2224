//! Planted bugs, which the checker has to find.

/// A bug of the replicas, of their engine or of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    Nothing,
    /// A shard is released while its keys run, and the runs ignore that it is lost.
    NoDrain,
    /// A session is believed to last for a TTL from the reply, not from before the message.
    ExpiryFromReply,
    /// The store accepts any fence.
    NoFence,
    /// A mark is deleted although it was stored again.
    MarksNotCompared,
}

impl Plant {
    pub(crate) const BUGS: [Self; 4] = [
        Self::NoDrain,
        Self::ExpiryFromReply,
        Self::NoFence,
        Self::MarksNotCompared,
    ];

    /// Its name on a command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::NoDrain => "no-drain",
            Self::ExpiryFromReply => "expiry-from-reply",
            Self::NoFence => "no-fence",
            Self::MarksNotCompared => "marks-not-compared",
        }
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        let all = Self::BUGS.into_iter().chain([Self::Nothing]);
        all.into_iter().find(|plant| plant.name() == name)
    }
}
