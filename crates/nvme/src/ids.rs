//! Identifiers of the specification, one type each.

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
        }
    )* };
}

id! {
    /// Command identifier (CID), which the host chooses: unique among the commands of a submission
    /// queue that are not complete (Base 4.1.1).
    CommandId(u16);
    /// Namespace identifier (NSID; Base 3.2.1).
    NamespaceId(u32);
    /// Queue identifier (QID): 0 is the admin queue (Base 3.3.3.2).
    QueueId(u16);
    /// Controller identifier (CNTLID) in its subsystem (Base 3.1.3.3).
    ControllerId(u16);
}

impl CommandId {
    /// No command, in entries of the error log (Base 5.1.12.1.2).
    pub const NONE: CommandId = CommandId(0xFFFF);
}

impl NamespaceId {
    /// No namespace: the field is not used.
    pub const NONE: NamespaceId = NamespaceId(0);
    /// All namespaces, for commands that take this value (Base 3.2.1.2).
    pub const ALL: NamespaceId = NamespaceId(0xFFFF_FFFF);
}

impl QueueId {
    /// The admin queue.
    pub const ADMIN: QueueId = QueueId(0);
    /// No queue, in entries of the error log.
    pub const NONE: QueueId = QueueId(0xFFFF);
}

impl ControllerId {
    /// Any controller that is free, in Connect to a subsystem of dynamic controllers (Base
    /// 3.1.3.3).
    pub const DYNAMIC: ControllerId = ControllerId(0xFFFF);
    /// First value that no controller has.
    pub(crate) const RESERVED: u16 = 0xFFF0;
}

/// Queue of a controller, where commands come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The controller.
    pub controller: ControllerId,
    /// Its queue.
    pub queue: QueueId,
}
