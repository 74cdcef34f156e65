//! Code generated from the `.proto` files beside this one; `generate/tests/generated.rs` makes it anew.

/// Bob's client API: `bob.proto`.
pub mod bob_storage {
    include!("bob_storage.rs");
}
