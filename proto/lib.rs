//! Code generated from the `.proto` files beside this one.

/// Bob's client API: `bob.proto`.
pub mod bob_storage {
    tonic::include_proto!("bob_storage");
}
